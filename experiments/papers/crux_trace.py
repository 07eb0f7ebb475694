"""Crux's simulation of a trace, Figures 23 and 24 of its paper (SIGCOMM 2024, section 6.3): utilisation by policy.

The paper prints a mean for each policy in Figure 23 and draws utilisation over twelve days in Figure 24; the means of
the curves are lower than those printed, so that it stays open how the mean is weighted. Both readings are shown.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from experiments.papers import trace_cases
from experiments.papers.trace_cases import DAY_S, TraceCase, TraceEvaluation
from experiments.report.findings import Bar, BarChart, Findings, FindingsTable
from experiments.report.numbers import count, percent, signed
from experiments.report.panels import Panel, PanelChart
from experiments.traces.json_form import trace_object
from experiments.traces.results import Distribution, TraceResult
from workloads.schedulers.scheduler_name import Scheduler

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
_DASH = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class Published:
    """Utilisation by policy: as Figure 23 prints it, and the mean over time of Figure 24's curves."""

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
"""By the kind of topology."""

ASSUMPTIONS = (
    *trace_cases.ASSUMPTIONS,
    "Placement: the paper's cluster tries the same host, then the same switch, as affinity does; its simulation may "
    "have had the trace's own hosts, which are not known. 36.3 % of its jobs met contention, which under affinity "
    "nearly none does here: so jobs placed at random are shown, too, where many do.",
    "The double-sided topology has 348 hosts and cables of 100 Gbit/s, eight between a ToR and an aggregation switch "
    "and one between that and a core switch, so that hosts could send a ToR 14 times what it can pass on.",
    "How Sincronia, TACCL* and CASSINI were put into the paper's simulation is not described: here a job's transfers "
    "of an iteration are a coflow, and paths the hash's where a policy chooses none.",
    "The means of Figure 24 are read off its curves.",
    "Slowdown is a finished job's time on GPUs over its logged run time, without queueing.",
)


def json_object(case: TraceCase, result: TraceResult, topology: str, assumptions: tuple[str, ...]) -> dict[str, object]:
    """A run as JSON has it."""
    published = PUBLISHED.get(topology, Published({}, {}))
    return {
        "evaluation": "crux-trace",
        "topology": topology,
        "scheduler": case.scheduler,
        **trace_object(result),
        "published_gpu_utilisation": published.printed.get(case.policy),
        "published_mean_gpu_utilisation": published.over_time.get(case.policy),
        "assumptions": assumptions,
    }


def findings(
    results: Mapping[TraceCase, TraceResult], trace: str, topology: str, assumptions: tuple[str, ...]
) -> Findings:
    """What is finished, scheduler by scheduler, of a trace of this name on a kind of topology."""
    published = PUBLISHED.get(topology, Published({}, {}))
    parts = [_Part(scheduler, of, published) for scheduler in Scheduler if (of := _placed_by(scheduler, results))]
    return Findings(
        title=f"Crux's trace simulation: {trace} on {topology}",
        tables=tuple(table for part in parts for table in part.tables()),
        charts=tuple(chart for part in parts for chart in (part.bars(), part.panels())),
        assumptions=assumptions,
    )


def _placed_by(scheduler: Scheduler, results: Mapping[TraceCase, TraceResult]) -> dict[str, TraceResult]:
    found = {case.policy: result for case, result in results.items() if case.scheduler is scheduler}
    return {policy: found[policy] for policy in (*POLICIES, *found) if policy in found}


@dataclass(frozen=True, slots=True)
class _Part:
    """The results under one scheduler, by policy."""

    scheduler: Scheduler
    results: Mapping[str, TraceResult]
    published: Published

    def tables(self) -> Iterator[FindingsTable]:
        """Utilisation, what Crux gains, slowdowns."""
        yield self._table(
            "GPU utilisation",
            ("Of allocated", "Paper", "Mean over time", "Paper, read off", "Of all", "Days"),
            lambda policy, result: (
                percent(result.gpu_utilisation),
                _or_dash(self.published.printed.get(policy)),
                percent(result.series.mean_utilisation),
                _or_dash(self.published.over_time.get(policy)),
                percent(result.cluster_utilisation),
                f"{result.ended_s / DAY_S:.2f}",
            ),
        )
        if (scored := self.results.get(_SCORED)) is not None and len(self.results) > 1:
            yield self._table(
                f"What {_SCORED} gains, in points",
                ("Of allocated", "Mean over time", "Paper"),
                lambda policy, result: (
                    _points(scored.gpu_utilisation - result.gpu_utilisation),
                    _points(scored.series.mean_utilisation - result.series.mean_utilisation),
                    _points(self._published_gain(policy)),
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
        """Utilisation beside the paper's."""
        bars = []
        for policy, result in self.results.items():
            bars.append(Bar(str(policy), percent(result.gpu_utilisation), result.gpu_utilisation))
            if (printed := self.published.printed.get(policy)) is not None:
                bars.append(Bar(f"{policy}, paper", percent(printed), printed, published=True))
        return BarChart(f"Utilisation of allocated GPUs, placed by {self.scheduler}", tuple(bars))

    def panels(self) -> PanelChart:
        """GPUs over time (Figure 24)."""
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
        title = f"GPUs that are allocated (light) and that compute (dark), placed by {self.scheduler}"
        return PanelChart(title, f"up to {count(round(top))} GPUs", longest_s / DAY_S, tuple(panels))

    def _table(
        self,
        title: str,
        columns: tuple[str, ...],
        cells: Callable[[str, TraceResult], tuple[str, ...]],
        but: str | None = None,
    ) -> FindingsTable:
        rows = ((str(policy), *cells(policy, of)) for policy, of in self.results.items() if policy != but)
        return FindingsTable(f"{title}, placed by {self.scheduler}", ("Policy", *columns), tuple(rows))

    def _published_gain(self, policy: str) -> float | None:
        printed = self.published.printed
        return printed[_SCORED] - printed[policy] if policy in printed else None


def _of_slowdowns(of: Distribution | None) -> tuple[str, ...]:
    if of is None:
        return (_DASH,) * 5
    return (
        *(f"{value:.3f}" for value in (of.p50, of.p99, of.worst)),
        *map(percent, (of.share_above_2, of.share_above_10)),
    )


def _or_dash(share: float | None) -> str:
    return _DASH if share is None else percent(share)


def _points(difference: float | None) -> str:
    return _DASH if difference is None else signed(difference * 100, 1)


EVALUATION = TraceEvaluation(ASSUMPTIONS, json_object, findings)
