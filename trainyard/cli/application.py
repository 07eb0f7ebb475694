"""The command ``trainyard``: a table of its commands, each in a module that is imported when the command runs.

The modules of commands import what they need at their top. Only what takes more than some 0.3 s of processor time
(Numba, the emulator, the daemon, databases, Matplotlib) is imported in functions, so that neither the help of a command
nor a message about bad input waits for it.
"""

import platform
from collections.abc import Mapping
from typing import Annotated, ClassVar

import typer

from trainyard.cli.exits import EXIT_STATUS
from trainyard.cli.lazy_group import LazyCommand, LazyGroup, imported

# The agent parses its own options, so that hosts need none of the packages of the other commands.
_PASS_OPTIONS_ON = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
_REST_IS_A_COMMAND = {"ignore_unknown_options": True, "allow_interspersed_args": False}


class Commands(LazyGroup):
    """The commands of ``trainyard``. A test compares the summaries with the commands' own."""

    lazy_commands: ClassVar[Mapping[str, LazyCommand]] = {
        "demo": LazyCommand(
            imported("trainyard.cli.run:demo"),
            "Compare no scheduling, priority levels, and levels with paths on mixes of the Crux paper.",
        ),
        "run": LazyCommand(
            imported("trainyard.cli.run:run"),
            "Run a scenario under each policy and compare GPU utilisation and iteration times.",
        ),
        "sweep": LazyCommand(
            imported("trainyard.cli.sweep:sweep"),
            "Run scenarios under every policy, setting and seed; started again, it runs only what is missing.",
        ),
        "plan": LazyCommand(
            imported("trainyard.cli.plan:plan"),
            "Show what a policy decides once all jobs of a scenario have arrived; nothing is started.",
        ),
        "check": LazyCommand(
            imported("trainyard.cli.check:check"),
            "Check a scenario, a model, a controller's configuration or a fabric file; print ok, or all that is wrong.",
        ),
        "model": LazyCommand(
            imported("trainyard.cli.model:model"),
            "Show the blocks of a model, public or in a file: parameters, FLOPs, and what each passes on.",
        ),
        "advise": LazyCommand(
            imported("trainyard.cli.advise:advise"),
            "Predict an iteration of a job, show where its time goes, and rank other ways to divide it.",
        ),
        "topology": LazyCommand(
            imported("trainyard.cli.topology:topology"),
            "Show the cables of a topology: the nodes at their ends, with ports, and their rates.",
        ),
        "expand": LazyCommand(
            imported("trainyard.cli.topology:expand"),
            "Write a topology out as a fabric file: every NIC with its addresses, every port with its number, every "
            "cable.",
        ),
        "discover": LazyCommand(
            imported("trainyard.cli.discover:discover"),
            "Write a fabric file from a running fabric without a controller; what is left to fill in has a comment.",
        ),
        "import": LazyCommand(
            imported("trainyard.cli.imports:imports"),
            "Write a fabric file from a table of cables, or from containerlab's topology of a lab.",
        ),
        "qos": LazyCommand(
            imported("trainyard.cli.qos:qos"),
            "Print the configuration with which a switch serves levels: queues in strict priority.",
        ),
        "policies": LazyCommand(
            imported("trainyard.cli.check:policies"),
            "List the registered policies: name, the distribution that each comes from, and what it does.",
        ),
        "coflows": LazyCommand(
            imported("trainyard.cli.coflows:coflows"),
            "Run a trace of coflows on one big switch and show their completion times.",
        ),
        "trace": LazyCommand(
            imported("trainyard.cli.traces:trace"),
            "Show what a trace holds, what is left out of it, and how it compares with published figures.",
        ),
        "generate-trace": LazyCommand(
            imported("trainyard.cli.traces:generate_trace"),
            "Generate a trace like Lingjun's, write it to a folder in the same three files, and show how well it fits.",
        ),
        "run-trace": LazyCommand(
            imported("trainyard.cli.traces:run_trace"),
            "Run a trace of weeks on the simulator and show utilisation, slowdowns and how much was computed.",
        ),
        "evaluate": LazyCommand(
            imported("trainyard.cli.evaluate:evaluate"),
            "Repeat published experiments, and print the results beside the published figures.",
        ),
        "controller": LazyCommand(
            imported("trainyard.cli.controller:controller"),
            "Run the controller until SIGTERM or SIGINT; the rules stay on the switches.",
        ),
        "certificates": LazyCommand(
            imported("trainyard.cli.identities:certificates"),
            "Make a small certificate authority for a trial, and certificates that it signs.",
        ),
        "token": LazyCommand(
            imported("trainyard.cli.identities:token"),
            "Make a random token: print it on stderr, and its line for the controller's file of tokens on stdout.",
        ),
        "show": LazyCommand(
            imported("trainyard.cli.show:show"), "Show what a running controller knows and has decided."
        ),
        "explain": LazyCommand(
            imported("trainyard.cli.explain:explain"),
            "Explain why a running controller gave a job its level, or a flow its path.",
        ),
        "dump": LazyCommand(
            imported("trainyard.cli.record:dump"),
            "Write the record of a controller's decisions as lines of JSON; the controller may be running.",
        ),
        "replay": LazyCommand(
            imported("trainyard.cli.record:replay"),
            "Decide the Plans of a record again; exit status 1 where a Plan differs.",
        ),
        "audit": LazyCommand(
            imported("trainyard.cli.audit:audit"),
            "Show the newest entries of a controller's audit trail; the controller may be running.",
        ),
        "database": LazyCommand(
            imported("trainyard.cli.database:database"),
            "Back up, restore, verify and upgrade the database of a controller.",
        ),
        "withdraw": LazyCommand(
            imported("trainyard.cli.withdraw:withdraw"),
            "Withdraw jobs from a running controller, or from the database of one that does not run.",
        ),
        "reload": LazyCommand(
            imported("trainyard.cli.reload:reload"),
            "Have every controller named read its configuration file again, and say what has changed.",
        ),
        "drain": LazyCommand(
            imported("trainyard.cli.drain:drain"),
            "Move all flows off a switch, a cable or a host, and say when it is safe to work on it.",
        ),
        "undrain": LazyCommand(
            imported("trainyard.cli.drain:undrain"), "Use a switch, a cable or a host again that was drained."
        ),
        "pause": LazyCommand(
            imported("trainyard.cli.pause:pause"),
            "Have the controller make no Plans until resume; what is in force stays, and dead links are left all the "
            "same.",
        ),
        "resume": LazyCommand(
            imported("trainyard.cli.pause:resume"), "Have the controller make Plans again after pause or release."
        ),
        "pin": LazyCommand(
            imported("trainyard.cli.pin:pin"),
            "Have a job have a level, or a flow a path, whatever the policy decides, until the time is over.",
        ),
        "unpin": LazyCommand(imported("trainyard.cli.pin:unpin"), "Have the policy decide again what was pinned."),
        "release": LazyCommand(
            imported("trainyard.cli.pause:release"),
            "Take all rules of Trainyard out of the switches; base routing stays. A running controller pauses, too.",
        ),
        "apply": LazyCommand(
            imported("trainyard.cli.apply:apply"),
            "Plan once and write it to the switches of a controller that does not run; --dry-run only says what.",
        ),
        "emulator": LazyCommand(
            imported("trainyard.cli.emulator:emulator"),
            "Run the switches of a topology in wall-clock time and serve P4Runtime for them until SIGTERM or SIGINT.",
        ),
        "trace-packet": LazyCommand(
            imported("trainyard.cli.trace_packet:trace_packet"),
            "Show what would happen to a packet in the switches of a running emulator, step by step; nothing changes.",
        ),
        "host": LazyCommand(
            imported("trainyard.cli.host:host"),
            "Run a program in a host of a running emulator, whose hosts are those of --hosts.",
            _REST_IS_A_COMMAND,
        ),
        "port": LazyCommand(
            imported("trainyard.cli.port:port"), "Enable a port of a switch, or disable it: its cable is down then."
        ),
        "completion": LazyCommand(
            imported("trainyard.cli.completion:completion"),
            "Print the script with which a shell completes commands and options.",
        ),
        "runtime": LazyCommand(
            imported("trainyard.cli.runtime:runtime"),
            "Run programs over islands of devices: the server, and what it does.",
        ),
        "agent": LazyCommand(
            imported("trainyard.cli.controller:agent"),
            "Run the agent of a host, which probes paths and reports to the controller, until SIGTERM or SIGINT.",
            _PASS_OPTIONS_ON,
        ),
    }


def _say_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        print(f"trainyard {version('trainyard')}, Python {platform.python_version()}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_say_version, is_eager=True, help="Print the versions of Trainyard and Python."
        ),
    ] = False,
) -> None:
    """Options of the command as a whole."""


application = typer.Typer(
    name="trainyard",
    help="Paths and priority levels for every flow of every training job on a shared cluster.",
    epilog=EXIT_STATUS,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    cls=Commands,
    callback=_options,
    context_settings={"help_option_names": ["-h", "--help"]},
)
