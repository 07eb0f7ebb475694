"""``trainyard evaluate``: what papers published, measured anew.

Every case is reported as soon as it is measured. Interrupted, or where a run fails, a command still prints and writes
what it has so far, before it ends as it would have.
"""

import typer

from trainyard.cli.evaluations.churn import churn
from trainyard.cli.evaluations.coflow import coflow
from trainyard.cli.evaluations.crux_microbench import crux_microbench
from trainyard.cli.evaluations.crux_testbed import crux_testbed
from trainyard.cli.evaluations.echelon import echelon
from trainyard.cli.evaluations.robustness import robustness
from trainyard.cli.evaluations.trace_loads import crux_trace_loads
from trainyard.cli.evaluations.traces import crux_schedulers, crux_trace, trace_sensitivity
from trainyard.cli.exits import EXIT_STATUS

evaluate = typer.Typer(help="Measure anew what papers published, and print it beside.", no_args_is_help=True)
COMMANDS = (
    *(crux_testbed, crux_microbench, crux_trace, crux_trace_loads, crux_schedulers, trace_sensitivity),
    *(coflow, churn, robustness, echelon),
)
for command in COMMANDS:
    evaluate.command(epilog=EXIT_STATUS)(command)
