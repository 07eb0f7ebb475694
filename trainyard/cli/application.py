"""The command line put together: a table of the commands, each in a module that is imported when it runs."""

from collections.abc import Mapping
from typing import ClassVar

import typer

from trainyard.cli.exits import EXIT_STATUS
from trainyard.cli.lazy_group import LazyCommand, LazyGroup

# The agent reads its own options, so that hosts need none of the packages of the other commands.
_PASS_OPTIONS_ON = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


class Commands(LazyGroup):
    """The commands of ``trainyard``; a test holds every summary equal to the command's own."""

    commands_by_name: ClassVar[Mapping[str, LazyCommand]] = {
        "demo": LazyCommand(
            "trainyard.cli.demonstration:demo",
            "Run mixes of the paper without scheduling, with levels alone, and with paths too; ends with tables and a "
            "page.",
        ),
        "run": LazyCommand(
            "trainyard.cli.running:run", "Run a scenario under one policy after the other and say what came of it."
        ),
        "sweep": LazyCommand(
            "trainyard.cli.sweeping:sweep",
            "Run scenarios under every policy, setting and seed; started again, no more than what is missing.",
        ),
        "plan": LazyCommand(
            "trainyard.cli.planning:plan",
            "Show the decision alone, once all jobs have arrived: nothing is started.",
        ),
        "check": LazyCommand("trainyard.cli.checking:check", "Say ok, or everything that is wrong with a scenario."),
        "policies": LazyCommand("trainyard.cli.policies:policies", "List the policies, one a line."),
        "coflows": LazyCommand(
            "trainyard.cli.coflows:coflows",
            "Run a trace of coflows on one big switch, and say how long they take.",
        ),
        "trace": LazyCommand(
            "trainyard.cli.traces:trace",
            "Say what a folder with a trace holds, what of it can be used, and how it compares with what was "
            "published.",
        ),
        "generate-trace": LazyCommand(
            "trainyard.cli.traces:generate_trace",
            "Make up a trace like Lingjun's, write it to a folder in the same three files, and show how well it fits.",
        ),
        "run-trace": LazyCommand(
            "trainyard.cli.running_traces:run_trace",
            "Run a trace of weeks on the simulator: utilisation, slowdowns, and what it took to find them.",
        ),
        "evaluate": LazyCommand(
            "trainyard.cli.evaluating:evaluate", "Measure anew what papers published, and print it beside."
        ),
        "controller": LazyCommand(
            "trainyard.cli.serving:controller",
            "Run the controller until SIGTERM or SIGINT; rules stay on the switches.",
        ),
        "show": LazyCommand("trainyard.cli.showing:show", "Show what a running controller knows and has decided."),
        "explain": LazyCommand(
            "trainyard.cli.explaining:explain",
            "Say why a running controller gave a job or a flow what it has.",
        ),
        "dump": LazyCommand(
            "trainyard.cli.dumping:dump",
            "Write the record of a controller's decisions as lines of JSON; the controller may be running.",
        ),
        "replay": LazyCommand(
            "trainyard.cli.replaying:replay",
            "Decide a controller's Plans again from its record; exit status 1 where one is not the same.",
        ),
        "emulator": LazyCommand(
            "trainyard.cli.emulating:emulator",
            "Run the switches of a topology in wall-clock time and serve P4Runtime for them until SIGTERM or SIGINT.",
        ),
        "agent": LazyCommand(
            "trainyard.cli.probing:agent",
            "Probe for a host, and tell the controller what its probes meet, until SIGTERM or SIGINT.",
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
)


@application.callback()
def _trainyard() -> None:
    """Paths and priority levels for every flow of every training job on a shared cluster."""
