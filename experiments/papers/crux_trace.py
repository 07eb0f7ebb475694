"""Crux's simulation of a trace, Figures 23 and 24 of its paper (SIGCOMM 2024, section 6.3): utilisation by policy.

The paper prints a mean for each policy in Figure 23 and draws utilisation over twelve days in Figure 24. The means of
the curves are lower than the printed ones, and the paper does not say how it weights them: both readings are shown.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from experiments.papers import traces
from experiments.papers.evaluation import Option, check_policies
from experiments.papers.table_cells import DASH, percent_or_dash, points_or_dash, share_bar
from experiments.papers.traces import DAY_S, MeasuredTrace, TopologyOption, TraceEvaluation, TraceTopology
from experiments.report.findings import BarChart, Findings, FindingsTable, Panel, PanelChart
from experiments.report.numbers import count, percent
from experiments.traces.results import Distribution, TraceResult, trace_object
from policies.registry import policy_names
from workloads.schedulers.catalogue import Scheduler
from workloads.traces.variants import Variant

POLICIES = (
    "ecmp",
    "crux",
    "sincronia",
    "taccl-star",
    "cassini",
    "crux-pa",
    "crux-ps-pa",
    "trainyard",
)
SCHEDULERS = (Scheduler.AFFINITY, Scheduler.RANDOM)
_SCORED = "crux"


@dataclass(frozen=True, slots=True)
class Published:
    """The paper's utilisation by policy: printed in Figure 23, and the mean over time of Figure 24's curves."""

    printed: Mapping[str, float]
    over_time: Mapping[str, float]


_COMPARED = (
    "sincronia",
    "taccl-star",
    "cassini",
    "crux-pa",
    "crux-ps-pa",
    "crux",
)
PUBLISHED = {
    "clos": Published(
        dict(zip(_COMPARED, (0.39, 0.49, 0.48, 0.51, 0.62, 0.62), strict=True)),
        dict(zip(_COMPARED, (0.243, 0.371, 0.365, 0.374, 0.534, 0.534), strict=True)),
    ),
    "double_sided": Published(dict(zip(_COMPARED, (0.43, 0.46, 0.45, 0.48, 0.51, 0.50), strict=True)), {}),
}
"""The paper's figures, by the kind of topology."""

ASSUMPTIONS = (
    *traces.ASSUMPTIONS,
    "Placement: the paper's cluster tries the same host, then the same switch, as affinity does. Its simulation may "
    "have used the trace's own hosts, which are not known. There 36.3 % of the jobs had contention; here nearly none "
    "has under affinity, so results with random placement, where many have, are shown too.",
    "The double-sided topology has 348 hosts and cables of 100 Gbit/s, eight between a ToR and an aggregation switch "
    "and one between that and a core switch, so that hosts can send a ToR 14 times what it can forward.",
    "The paper does not describe how it simulates Sincronia, TACCL* and CASSINI. Here the transfers of a job's "
    "iteration are a coflow, and ECMP hashing chooses paths where a policy does not.",
    "The means of Figure 24 are read off its curves.",
    "Slowdown is a finished job's time on GPUs over its logged run time; queueing is not included.",
)


def _placed_by(scheduler: Scheduler, measured: Iterable[MeasuredTrace]) -> dict[str, TraceResult]:
    found = {case.policy: result for case, result in measured if case.scheduler is scheduler}
    return {policy: found[policy] for policy in (*POLICIES, *policy_names()) if policy in found}


@dataclass(frozen=True, slots=True)
class _SchedulerResults:
    """The results under one scheduler, by policy."""

    scheduler: Scheduler
    results: Mapping[str, TraceResult]
    published: Published

    def tables(self) -> Iterator[FindingsTable]:
        """Yield the tables of utilisation, Crux's gains and slowdowns."""
        yield self._table(
            "GPU utilisation",
            ("Of allocated", "Paper", "Mean over time", "Paper, read off", "Of all", "Days"),
            lambda policy, result: (
                percent(result.gpu_utilisation),
                percent_or_dash(self.published.printed.get(policy)),
                percent(result.series.mean_utilisation),
                percent_or_dash(self.published.over_time.get(policy)),
                percent(result.cluster_utilisation),
                f"{result.ended_s / DAY_S:.2f}",
            ),
        )
        if (scored := self.results.get(_SCORED)) is not None and len(self.results) > 1:
            yield self._table(
                f"Gain of {_SCORED}, in points",
                ("Of allocated", "Mean over time", "Paper"),
                lambda policy, result: (
                    points_or_dash(scored.gpu_utilisation - result.gpu_utilisation),
                    points_or_dash(scored.series.mean_utilisation - result.series.mean_utilisation),
                    points_or_dash(self._published_gain(policy)),
                ),
                but=_SCORED,
            )
        yield self._table(
            "Slowdown of jobs",
            ("Done", "p50", "p99", "Worst", "Above 2x", "Above 10x", "Queueing, mean"),
            lambda _, result: (
                count(len(result.run_slowdowns)),
                *_of_slowdowns(Distribution.of(result.run_slowdowns)),
                f"{result.mean_queueing_s:.0f} s",
            ),
        )

    def bars(self) -> BarChart:
        """Return the chart of utilisation beside the paper's."""
        bars = []
        for policy, result in self.results.items():
            bars.append(share_bar(str(policy), result.gpu_utilisation))
            if (printed := self.published.printed.get(policy)) is not None:
                bars.append(share_bar(f"{policy}, paper", printed, published=True))
        return BarChart(f"Utilisation of allocated GPUs, placed by {self.scheduler}", tuple(bars))

    def panels(self) -> PanelChart:
        """Return the chart of GPUs over time (Figure 24)."""
        top = max(float(result.series.allocated.max()) for result in self.results.values()) or 1.0
        longest_s = max(result.series.interval_s * len(result.series.allocated) for result in self.results.values())
        panels = []
        for policy, result in self.results.items():
            after = [0.0] * (round(longest_s / result.series.interval_s) - len(result.series.allocated))
            panels.append(
                Panel(
                    str(policy),
                    percent(result.gpu_utilisation),
                    [*(result.series.allocated / top).tolist(), *after],
                    [*(result.series.computing / top).tolist(), *after],
                )
            )
        title = f"Allocated GPUs (light) and computing GPUs (dark), placed by {self.scheduler}"
        return PanelChart(title, f"up to {count(round(top))} GPUs", longest_s / DAY_S, tuple(panels))

    def _table(
        self,
        title: str,
        columns: tuple[str, ...],
        cells: Callable[[str, TraceResult], tuple[str, ...]],
        but: str | None = None,
    ) -> FindingsTable:
        rows = ((str(policy), *cells(policy, of)) for policy, of in self.results.items() if policy is not but)
        return FindingsTable(f"{title}, placed by {self.scheduler}", ("Policy", *columns), tuple(rows))

    def _published_gain(self, policy: str) -> float | None:
        printed = self.published.printed
        return printed[_SCORED] - printed[policy] if policy in printed else None


def _of_slowdowns(of: Distribution | None) -> tuple[str, ...]:
    if of is None:
        return (DASH,) * 5
    return (
        *(f"{value:.3f}" for value in (of.p50, of.p99, of.worst)),
        *map(percent, (of.share_above_2, of.share_above_10)),
    )


@dataclass(frozen=True)
class CruxTrace(TraceEvaluation):
    """The evaluation ``crux-trace``."""

    assumed = ASSUMPTIONS

    policy: Annotated[
        tuple[str, ...], Option("Policy; may be repeated. Default: those of Figure 23, and trainyard.")
    ] = ()
    scheduler: Annotated[
        tuple[Scheduler, ...], Option("Scheduler; may be repeated. Default: affinity and random.")
    ] = ()
    topology: TopologyOption = TraceTopology.CLOS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_policies(self.policy)

    def combinations(self) -> Iterable[tuple[Variant, Scheduler, str]]:
        """Return every scheduler with every policy."""
        return [
            (Variant.AS_ASSUMED, scheduler, policy)
            for scheduler in self.scheduler or SCHEDULERS
            for policy in self.policy or POLICIES
        ]

    def json_object(self, measured: MeasuredTrace) -> dict[str, object]:
        """Return the JSON object of a run."""
        case, result = measured
        published = PUBLISHED.get(self.topology_kind, Published({}, {}))
        return {
            "evaluation": "crux-trace",
            "topology": self.topology_kind,
            "scheduler": case.scheduler,
            **trace_object(result),
            "published_gpu_utilisation": published.printed.get(case.policy),
            "published_mean_gpu_utilisation": published.over_time.get(case.policy),
            "assumptions": self.all_assumptions,
        }

    def findings(self, measured: Sequence[MeasuredTrace]) -> Findings:
        """Return utilisation, gains and slowdowns by scheduler."""
        published = PUBLISHED.get(self.topology_kind, Published({}, {}))
        parts = [
            _SchedulerResults(scheduler, of, published)
            for scheduler in Scheduler
            if (of := _placed_by(scheduler, measured))
        ]
        return Findings(
            title=f"Crux's trace simulation: {self.subject}",
            tables=tuple(table for part in parts for table in part.tables()),
            charts=tuple(chart for part in parts for chart in (part.bars(), part.panels())),
            assumptions=self.all_assumptions,
        )
