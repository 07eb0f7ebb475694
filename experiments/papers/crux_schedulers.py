"""Crux beside job schedulers, Figure 25 of its paper (SIGCOMM 2024): utilisation under each, without Crux and with it.

A scheduler keeps jobs from sharing links; Crux helps where they share them all the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from experiments.papers import traces
from experiments.papers.table_cells import share_bar, with_gain
from experiments.papers.traces import MeasuredTrace, TraceEvaluation, TraceTopology
from experiments.report.findings import Bar, BarChart, Findings, FindingsTable
from experiments.traces.results import trace_object
from workloads.schedulers.catalogue import Scheduler
from workloads.traces.variants import Variant

POLICIES = ("ecmp", "crux")
"""Without Crux, and with it."""

PUBLISHED = {Scheduler.AFFINITY: (0.39, 0.62), Scheduler.MURI: (0.59, 0.73), Scheduler.HIVED: (0.64, 0.75)}
"""The paper's utilisation on its Clos without Crux and with it; affinity stands for the paper's "none"."""

ASSUMPTIONS = (
    *traces.ASSUMPTIONS,
    'Affinity is the placement of the paper\'s cluster, and is compared with its "none"; the paper has no figure for '
    "random.",
    "Muri starts the shortest job first. Jobs share GPUs only where not all fit, at most two, from their start: they "
    "compute in turn, one iteration each, and send meanwhile. Groups are placed by affinity. If the cluster is never "
    "full, Muri is the same as affinity.",
    "HiveD has one tenant, and so no virtual clusters.",
)


def _published(scheduler: Scheduler) -> tuple[float | None, float | None]:
    return PUBLISHED.get(scheduler, (None, None))


def _bars(schedulers: list[Scheduler], weighted: Mapping[tuple[Scheduler, str], float]) -> list[Bar]:
    bars = []
    for scheduler in schedulers:
        for policy, published in zip(POLICIES, _published(scheduler), strict=True):
            if (share := weighted.get((scheduler, policy))) is not None:
                bars.append(share_bar(f"{scheduler}, {policy}", share))
            if published is not None:
                bars.append(share_bar(f"{scheduler}, {policy}, paper", published, published=True))
    return bars


@dataclass(frozen=True)
class CruxSchedulers(TraceEvaluation):
    """The evaluation ``crux-schedulers``."""

    assumed = ASSUMPTIONS
    topology = TraceTopology.CLOS

    def combinations(self) -> Iterable[tuple[Variant, Scheduler, str]]:
        """Return every scheduler without Crux and with it."""
        return [(Variant.AS_ASSUMED, scheduler, policy) for scheduler in Scheduler for policy in POLICIES]

    def json_object(self, measured: MeasuredTrace) -> dict[str, object]:
        """Return the JSON object of a run."""
        case, result = measured
        return {
            "evaluation": "crux-schedulers",
            "topology": self.topology_kind,
            "scheduler": case.scheduler,
            **trace_object(result),
            "published_gpu_utilisation": _published(case.scheduler)[POLICIES.index(case.policy)],
            "assumptions": self.all_assumptions,
        }

    def findings(self, measured: Sequence[MeasuredTrace]) -> Findings:
        """Return utilisation and gains by scheduler."""
        by_cell = {(case.scheduler, case.policy): result for case, result in measured}
        schedulers = [
            scheduler for scheduler in Scheduler if any((scheduler, policy) in by_cell for policy in POLICIES)
        ]
        weighted = {cell: result.gpu_utilisation for cell, result in by_cell.items()}
        over_time = {cell: result.series.mean_utilisation for cell, result in by_cell.items()}
        columns = ("Scheduler", *map(str, POLICIES), "Gain, points", "Paper, without", "Paper, with", "Paper, gain")
        return Findings(
            title=f"Crux beside job schedulers: {self.subject}",
            tables=tuple(
                FindingsTable(
                    title,
                    columns,
                    tuple(
                        (
                            str(scheduler),
                            *with_gain(*(found.get((scheduler, policy)) for policy in POLICIES)),
                            *with_gain(*_published(scheduler)),
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
            assumptions=self.all_assumptions,
        )
