"""``trainyard evaluate churn``."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from trainyard.cli.evaluations.shared import JsonOption, each, prepare, show
from trainyard.cli.inputs import ReportOption
from trainyard.cli.sweeping import WorkersOption

if TYPE_CHECKING:
    from experiments.papers.job_events import EventChange


def churn(
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many sequences of jobs, seeded from 1 on.")] = 5,
    jobs: Annotated[int, typer.Option("--jobs", min=1, max=10_000, help="Jobs that come and go in each.")] = 50,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """What arrivals and departures of jobs change: rules, paths and levels per event, with and without damping."""
    from experiments.papers.churn import VARIANTS, Course, changes, findings, json_object, measured
    from experiments.papers.random_jobs import FabricName

    prepare(report)
    # By seed, so that an interrupted evaluation has some of every policy.
    cells = [(fabric, variant) for fabric in FabricName for variant in VARIANTS]
    courses = [Course(variant, fabric, seed, jobs) for seed in range(1, seeds + 1) for fabric, variant in cells]
    found: dict[tuple[FabricName, str], dict[int, Sequence[EventChange]]] = {cell: {} for cell in cells}
    try:
        for course, events in each(changes, courses, "courses of jobs", workers):
            found[course.fabric, course.variant][course.seed] = events
    finally:
        variants = [measured(fabric, variant, by_seed) for (fabric, variant), by_seed in found.items() if by_seed]
        if as_json:
            for variant in variants:
                print(json.dumps(json_object(variant)), flush=True)
        if variants:
            show(findings(variants), as_json=as_json, report=report)
