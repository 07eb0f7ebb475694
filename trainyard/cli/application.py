"""The command line put together: every command stands in a module of its own."""

import typer

from trainyard.cli.checking import check
from trainyard.cli.coflows import coflows
from trainyard.cli.demonstration import demo
from trainyard.cli.dumping import dump
from trainyard.cli.emulating import emulator
from trainyard.cli.evaluating import evaluate
from trainyard.cli.exits import EXIT_STATUS
from trainyard.cli.explaining import explain
from trainyard.cli.planning import plan
from trainyard.cli.policies import policies
from trainyard.cli.probing import agent
from trainyard.cli.replaying import replay
from trainyard.cli.running import run
from trainyard.cli.running_traces import run_trace
from trainyard.cli.serving import controller
from trainyard.cli.showing import show
from trainyard.cli.sweeping import sweep
from trainyard.cli.traces import generate_trace, trace

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
