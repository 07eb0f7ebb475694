"""Sensitivity of a trace's result: utilisation without Crux and with it, with one assumption at a time changed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from experiments.papers import traces
from experiments.papers.evaluation import InvalidInputError, Option
from experiments.papers.table_cells import share_bar, with_gain
from experiments.papers.traces import MeasuredTrace, SchedulerOption, TopologyOption, TraceEvaluation, TraceTopology
from experiments.report.findings import BarChart, Findings, FindingsTable
from experiments.traces.results import trace_object
from workloads.schedulers.catalogue import Scheduler
from workloads.traces.variants import Variant, variants_of

POLICIES = ("ecmp", "crux")
"""Without Crux, and with it."""

ASSUMPTIONS = (
    *traces.ASSUMPTIONS,
    "One assumption is changed at a time, for all jobs at once. Alone, a job always runs for its logged time: with "
    "other compute times or volumes it has another number of iterations.",
    "Other labels are those that do not name a model. With 1 or 4 hosts per ToR there are as many hosts as before, or "
    "two more, and as many aggregation switches.",
)


@dataclass(frozen=True)
class TraceSensitivity(TraceEvaluation):
    """The evaluation ``trace-sensitivity``."""

    assumed = ASSUMPTIONS

    variant: Annotated[
        tuple[Variant, ...], Option("Assumption to change; may be repeated. Default: all that the topology allows.")
    ] = ()
    scheduler: SchedulerOption = Scheduler.RANDOM
    topology: TopologyOption = TraceTopology.CLOS

    def combinations(self) -> Iterable[tuple[Variant, Scheduler, str]]:
        """Return every variant under every policy."""
        possible = list(variants_of(self.source.assumed()))
        if missing := [one for one in self.variant if one not in possible]:
            raise InvalidInputError(
                f"--variant: the assumed topology does not allow {one!r}" for one in map(str, missing)
            )
        return [(one, self.scheduler, policy) for one in self.variant or possible for policy in POLICIES]

    def json_object(self, measured: MeasuredTrace) -> dict[str, object]:
        """Return the JSON object of a run."""
        case, result = measured
        return {
            "evaluation": "trace-sensitivity",
            "topology": self.topology_kind,
            "variant": case.variant,
            "scheduler": case.scheduler,
            **trace_object(result),
            "assumptions": self.all_assumptions,
        }

    def findings(self, measured: Sequence[MeasuredTrace]) -> Findings:
        """Return utilisation and gains by variant."""
        by_cell = {(case.variant, case.policy): result for case, result in measured}
        rows, bars = [], []
        for variant in Variant:
            found = [by_cell.get((variant, policy)) for policy in POLICIES]
            if any(result is not None for result in found):
                weighted = with_gain(*(None if result is None else result.gpu_utilisation for result in found))
                over_time = with_gain(*(None if result is None else result.series.mean_utilisation for result in found))
                rows.append((str(variant), *weighted, *over_time))
            for policy, result in zip(POLICIES, found, strict=True):
                if result is not None:
                    bars.append(share_bar(f"{variant}, {policy}", result.gpu_utilisation))
        over_time_columns = (*(f"{policy}, over time" for policy in POLICIES), "Gain")
        columns = ("Variant", *map(str, POLICIES), "Gain, points", *over_time_columns)
        title = f"Utilisation of allocated GPUs, placed by {self.scheduler}"
        return Findings(
            title=f"Sensitivity to assumptions: {self.subject}",
            tables=(FindingsTable(title, columns, tuple(rows)),),
            charts=(BarChart(title, tuple(bars)),),
            assumptions=self.all_assumptions,
        )
