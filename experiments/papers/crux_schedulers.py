"""Crux beside job schedulers, Figure 25 of its paper (SIGCOMM 2024): utilisation under each, without Crux and with it.

Both help: a scheduler keeps jobs from meeting, Crux makes the best of it where they do.
"""

from collections.abc import Mapping

from experiments.papers import trace_cases
from experiments.papers.trace_cases import TraceCase, TraceEvaluation
from experiments.report.findings import Bar, BarChart, Findings, FindingsTable
from experiments.report.numbers import percent, signed
from experiments.traces.json_form import trace_object
from experiments.traces.results import TraceResult
from workloads.schedulers.scheduler_name import Scheduler

POLICIES = ("ecmp", "crux")
"""Without Crux, and with it."""

PUBLISHED = {Scheduler.AFFINITY: (0.39, 0.62), Scheduler.MURI: (0.59, 0.73), Scheduler.HIVED: (0.64, 0.75)}
"""The paper's utilisation under each of its schedulers, its none being affinity, without Crux and with it; Clos."""
_DASH = "\N{EN DASH}"

ASSUMPTIONS = (
    *trace_cases.ASSUMPTIONS,
    "Affinity is what the paper's cluster does of itself, and stands beside its none; nothing of the paper stands "
    "beside random.",
    "Muri lets the shortest begin first, and jobs share GPUs only where not all fit, two at most, from their beginning "
    "on: they compute in turns, an iteration each, and send meanwhile. Its groups are placed by affinity. Where the "
    "cluster is never full it is affinity.",
    "HiveD's cells have one tenant: there are no virtual clusters.",
)


def json_object(case: TraceCase, result: TraceResult, topology: str, assumptions: tuple[str, ...]) -> dict[str, object]:
    """A run as JSON has it."""
    return {
        "evaluation": "crux-schedulers",
        "topology": topology,
        "scheduler": case.scheduler,
        **trace_object(result),
        "published_gpu_utilisation": _published(case.scheduler)[POLICIES.index(case.policy)],
        "assumptions": assumptions,
    }


def findings(
    results: Mapping[TraceCase, TraceResult], trace: str, topology: str, assumptions: tuple[str, ...]
) -> Findings:
    """What is finished, of a trace of this name on a kind of topology."""
    by_cell = {(case.scheduler, case.policy): result for case, result in results.items()}
    schedulers = [scheduler for scheduler in Scheduler if any((scheduler, policy) in by_cell for policy in POLICIES)]
    weighted = {cell: result.gpu_utilisation for cell, result in by_cell.items()}
    over_time = {cell: result.series.mean_utilisation for cell, result in by_cell.items()}
    columns = ("Scheduler", *map(str, POLICIES), "Gain, points", "Paper, without", "Paper, with", "Paper, gain")
    return Findings(
        title=f"Crux beside job schedulers: {trace} on {topology}",
        tables=tuple(
            FindingsTable(
                title,
                columns,
                tuple(
                    (
                        str(scheduler),
                        *_with_gain(tuple(found.get((scheduler, policy)) for policy in POLICIES)),
                        *_with_gain(_published(scheduler)),
                    )
                    for scheduler in schedulers
                ),
            )
            for title, found in (
                ("Utilisation of allocated GPUs", weighted),
                ("Mean over time of the share of allocated GPUs that compute", over_time),
            )
        ),
        charts=(BarChart("Utilisation of allocated GPUs", tuple(_bars(schedulers, weighted))),),
        assumptions=assumptions,
    )


def _published(scheduler: Scheduler) -> tuple[float | None, ...]:
    return PUBLISHED.get(scheduler, (None, None))


def _with_gain(shares: tuple[float | None, ...]) -> tuple[str, str, str]:
    without, scheduled = shares
    if without is None or scheduled is None:
        return _or_dash(without), _or_dash(scheduled), _DASH
    return percent(without), percent(scheduled), signed((scheduled - without) * 100, 1)


def _bars(schedulers: list[Scheduler], weighted: Mapping[tuple[Scheduler, str], float]) -> list[Bar]:
    bars = []
    for scheduler in schedulers:
        for policy, published in zip(POLICIES, _published(scheduler), strict=True):
            if (share := weighted.get((scheduler, policy))) is not None:
                bars.append(Bar(f"{scheduler}, {policy}", percent(share), share))
            if published is not None:
                bars.append(Bar(f"{scheduler}, {policy}, paper", percent(published), published, published=True))
    return bars


def _or_dash(share: float | None) -> str:
    return _DASH if share is None else percent(share)


EVALUATION = TraceEvaluation(ASSUMPTIONS, json_object, findings)
