"""The command ``trainyard``: a table of its commands, each in a module that is imported when the command runs.

The modules of commands import what they need at their top. Only what takes more than some 0.3 s of processor time
(Numba, the emulator, the daemon, databases, Matplotlib) is imported in functions, so that neither the help of a command
nor a message about bad input waits for it.
"""

from collections.abc import Mapping
from typing import ClassVar

import typer

from trainyard.cli.exits import EXIT_STATUS
from trainyard.cli.lazy_group import LazyCommand, LazyGroup, imported

# The agent parses its own options, so that hosts need none of the packages of the other commands.
_PASS_OPTIONS_ON = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


class Commands(LazyGroup):
    """The commands of ``trainyard``. A test compares the summaries with the commands' own."""

    lazy_commands: ClassVar[Mapping[str, LazyCommand]] = {
        "demo": LazyCommand(
            imported("trainyard.cli.run:demo"),
            "Compare no scheduling, priority levels, and levels with paths on mixes of the Crux paper; writes a page.",
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
            imported("trainyard.cli.check:check"), "Check a scenario and print ok, or everything that is wrong with it."
        ),
        "topology": LazyCommand(
            imported("trainyard.cli.topology:topology"),
            "Show the cables of a topology: the nodes at their ends, with ports, and their rates.",
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
        "withdraw": LazyCommand(
            imported("trainyard.cli.withdraw:withdraw"),
            "Withdraw jobs from a running controller, or from the database of one that does not run.",
        ),
        "emulator": LazyCommand(
            imported("trainyard.cli.emulator:emulator"),
            "Run the switches of a topology in wall-clock time and serve P4Runtime for them until SIGTERM or SIGINT.",
        ),
        "port": LazyCommand(
            imported("trainyard.cli.port:port"), "Enable a port of a switch, or disable it: its cable is down then."
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


application = typer.Typer(
    name="trainyard",
    help="Paths and priority levels for every flow of every training job on a shared cluster.",
    epilog=EXIT_STATUS,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    cls=Commands,
    callback=lambda: None,
)
