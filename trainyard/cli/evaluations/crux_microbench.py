"""``trainyard evaluate crux-microbench``."""

import json
from typing import Annotated

import typer

from experiments.papers.microbench.assumption import Assumption
from trainyard.cli.evaluations.shared import JsonOption, each, prepare, show
from trainyard.cli.exits import refuse
from trainyard.cli.inputs import ReportOption
from trainyard.cli.sweeping import WorkersOption

LoadOption = Annotated[float, typer.Option("--load-to", help="Up to which load of the hottest link.")]
AssumeOption = Annotated[
    Assumption, typer.Option("--assume", help="What jobs are drawn from, as the paper does not say.")
]


def crux_microbench(
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many cases, seeded from 1 on.")] = 1500,
    load_to: LoadOption = 2.5,
    assume: AssumeOption = Assumption.OURS,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """Crux's microbenchmark (Figure 16): paths, priorities and compression of several policies against the optimum."""
    from experiments.papers.crux_microbench import findings, json_object, summary_object
    from experiments.papers.microbench.cases import bands_to
    from experiments.papers.microbench.measured import CaseAsked, CaseMeasured, measure_asked

    try:
        bands_to(load_to)
    except ValueError as error:
        refuse([f"--load-to: {error}"])
    prepare(report)
    asked = [CaseAsked(seed, load_to, assume) for seed in range(1, seeds + 1)]
    found: list[CaseMeasured] = []
    try:
        for _, case in each(measure_asked, asked, "cases", workers):
            found.append(case)
            if as_json:
                print(json.dumps(json_object(case, assume)), flush=True)
    finally:
        # Not as they came, on which the last digits of means would hang.
        measured = sorted(found, key=lambda case: case.seed)
        if measured:
            if as_json:
                print(json.dumps(summary_object(measured, assume)), flush=True)
            show(findings(measured, assume), as_json=as_json, report=report)
