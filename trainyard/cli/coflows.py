"""``trainyard coflows``: a trace of coflows on one big switch."""

from pathlib import Path
from typing import Annotated

import typer

from experiments.report.numbers import count, seconds
from simulator.coflow_options import BPS_PER_PORT_GBPS, CoflowPolicy, Recompute
from topologies.files import FileError, read_text
from trainyard.cli.answers import Answer, OutputFormat, OutputOption, Writer
from trainyard.cli.exits import refuse, tell
from trainyard.cli.output import number_table
from workloads.coflow_trace import MOST_BYTES, CoflowTrace, CoflowTraceError, parse_coflow_trace

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="Trace in the format of the coflow benchmark or of Sincronia.")
]
PolicyOption = Annotated[CoflowPolicy, typer.Option("--policy", help="Policy that shares the ports.")]
RecomputeOption = Annotated[
    Recompute,
    typer.Option(help="coflow: set rates when a coflow arrives or ends; flow: at the end of every flow too."),
]
PortOption = Annotated[float, typer.Option("--port-gbps", help="Rate of every port, in units of 2^30 bit/s.")]
OfflineOption = Annotated[bool, typer.Option("--offline", help="Let all coflows arrive at the start.")]

_LEAST_GBPS, _MOST_GBPS = 1e-6, 1e6


def coflows(
    file: FileArgument,
    policy: PolicyOption,
    recompute: RecomputeOption = Recompute.FLOW,
    port_gbps: PortOption = 1.0,
    offline: OfflineOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Run a trace of coflows on one big switch and show their completion times."""
    # The simulator brings Numba, which --help and bad options do not wait for.
    from simulator.coflows import run_coflows

    if not _LEAST_GBPS <= port_gbps <= _MOST_GBPS:
        refuse(f"--port-gbps: expected a number from {_LEAST_GBPS:g} to {_MOST_GBPS:g}, got {port_gbps}")
    trace = _read_coflows(file)
    run = run_coflows(trace, policy, recompute, port_gbps * BPS_PER_PORT_GBPS, offline=offline)
    measured = {"average_cct_s": run.average_cct_s, "p95_cct_s": run.p95_cct_s, "makespan_s": run.makespan_s}
    document = {"policy": policy, "num_coflows": len(trace.names), **measured}
    table = number_table(f"{file.name} under {policy}", "Coflows", "Flows", "Average CCT", "p95 CCT", "Makespan")
    table.add_row(count(len(trace.names)), count(trace.num_flows), *map(seconds, measured.values()))
    Writer(output).write(Answer(document, [document], lambda: table))


def _read_coflows(file: Path) -> CoflowTrace:
    """Return the coflows of a file, or end the command with what is wrong with it and where.

    A file that disagrees with itself is told on stderr.
    """
    try:
        trace = parse_coflow_trace(read_text(file, MOST_BYTES))
    except CoflowTraceError as error:
        refuse(f"{file}: {error}")
    except FileError as error:
        refuse(str(error))
    if trace.warning is not None:
        tell(f"{file}: {trace.warning}")
    return trace
