"""``trainyard evaluate coflow``."""

import json

from simulator.coflow_options import CoflowPolicy, Recompute
from trainyard.cli.coflows import FileArgument, RecomputeOption, read_coflows
from trainyard.cli.evaluations.shared import JsonOption, prepare, show
from trainyard.cli.inputs import ReportOption
from trainyard.progress import progress


def coflow(
    file: FileArgument,
    recompute: RecomputeOption = Recompute.FLOW,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """The coflow benchmark, from github.com/coflow/coflow-benchmark: completion times under fair, FIFO, Varys and
    Sincronia."""
    from experiments.papers.coflow import findings, json_object, measure

    trace, sha256 = read_coflows(file)
    prepare(report)
    measured = []
    try:
        for policy in CoflowPolicy:
            with progress(f"{file.name} under {policy}"):
                measured.append(measure(trace, policy, recompute))
            if as_json:
                print(json.dumps(json_object(trace, measured[-1], recompute, sha256)), flush=True)
    finally:
        if measured:
            show(findings(trace, measured, recompute, sha256), as_json=as_json, report=report)
