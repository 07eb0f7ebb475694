"""The command line put together: every command stands in a module of its own."""

import typer

from controller.cli.checking import check
from controller.cli.coflows import coflows
from controller.cli.demonstration import demo
from controller.cli.dumping import dump
from controller.cli.emulating import emulator
from controller.cli.evaluating import evaluate
from controller.cli.exits import EXIT_STATUS
from controller.cli.explaining import explain
from controller.cli.planning import plan
from controller.cli.policies import policies
from controller.cli.probing import agent
from controller.cli.replaying import replay
from controller.cli.running import run
from controller.cli.running_traces import run_trace
from controller.cli.serving import controller
from controller.cli.showing import show
from controller.cli.sweeping import sweep
from controller.cli.traces import generate_trace, trace

application = typer.Typer(
    name="trainyard",
    help="Paths and priority levels for every flow of every training job on a shared cluster.",
    epilog=EXIT_STATUS,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
commands = (
    *(demo, run, sweep, plan, check, policies, coflows, trace, generate_trace, run_trace),
    *(controller, show, explain, dump, replay, emulator),
)
for command in commands:
    application.command(epilog=EXIT_STATUS)(command)
# It has options of its own, which need none of the packages here.
_AS_THEY_ARE = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
application.command(epilog=EXIT_STATUS, context_settings=_AS_THEY_ARE)(agent)
application.add_typer(evaluate, name="evaluate", epilog=EXIT_STATUS)
