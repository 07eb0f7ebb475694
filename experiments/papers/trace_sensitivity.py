"""What a trace's result hangs on: utilisation without Crux and with it, where one assumption at a time is another."""

from collections.abc import Mapping

from experiments.papers import trace_cases
from experiments.papers.trace_cases import TraceCase, TraceEvaluation
from experiments.report.findings import Bar, BarChart, Findings, FindingsTable
from experiments.report.numbers import percent, signed
from experiments.traces.json_form import trace_object
from experiments.traces.results import TraceResult
from workloads.schedulers.scheduler_name import Scheduler
from workloads.traces.variants import Variant

POLICIES = ("ecmp", "crux")
"""Without Crux, and with it."""
_DASH = "\N{EN DASH}"

ASSUMPTIONS = (
    *trace_cases.ASSUMPTIONS,
    "One assumption is changed at a time, for all jobs at once. A job runs as long as it was logged to where it runs "
    "alone, whatever is assumed: with other compute times or volumes it has another number of iterations to do.",
    "Other labels are those that say nothing of the model. With 1 or 4 hosts per ToR there are as many hosts as "
    "before, or two more, and as many aggregation switches.",
)


def json_object(case: TraceCase, result: TraceResult, topology: str, assumptions: tuple[str, ...]) -> dict[str, object]:
    """A run as JSON has it."""
    return {
        "evaluation": "trace-sensitivity",
        "topology": topology,
        "variant": case.variant,
        "scheduler": case.scheduler,
        **trace_object(result),
        "assumptions": assumptions,
    }


def findings(
    results: Mapping[TraceCase, TraceResult], trace: str, topology: str, assumptions: tuple[str, ...]
) -> Findings:
    """What is finished, of a trace of this name on a kind of topology."""
    by_cell = {(case.scheduler, case.variant, case.policy): result for case, result in results.items()}
    schedulers = [scheduler for scheduler in Scheduler if any(scheduler is cell[0] for cell in by_cell)]
    return Findings(
        title=f"What hangs on assumptions: {trace} on {topology}",
        tables=tuple(_table(scheduler, by_cell) for scheduler in schedulers),
        charts=tuple(
            BarChart(f"Utilisation of allocated GPUs, placed by {scheduler}", tuple(_bars(scheduler, by_cell)))
            for scheduler in schedulers
        ),
        assumptions=assumptions,
    )


_Cells = Mapping[tuple[Scheduler, Variant, str], TraceResult]


def _table(scheduler: Scheduler, by_cell: _Cells) -> FindingsTable:
    rows = []
    for variant in Variant:
        found = [by_cell.get((scheduler, variant, policy)) for policy in POLICIES]
        if any(found):
            weighted = _with_gain([None if one is None else one.gpu_utilisation for one in found])
            over_time = _with_gain([None if one is None else one.series.mean_utilisation for one in found])
            rows.append((str(variant), *weighted, *over_time))
    columns = ("Variant", *map(str, POLICIES), "Gain, points", *(f"{policy}, over time" for policy in POLICIES), "Gain")
    return FindingsTable(f"Utilisation of allocated GPUs, placed by {scheduler}", columns, tuple(rows))


def _with_gain(shares: list[float | None]) -> tuple[str, str, str]:
    without, scheduled = shares
    shown = [_DASH if share is None else percent(share) for share in shares]
    gain = _DASH if without is None or scheduled is None else signed((scheduled - without) * 100, 1)
    return shown[0], shown[1], gain


def _bars(scheduler: Scheduler, by_cell: _Cells) -> list[Bar]:
    cells = [(variant, policy) for variant in Variant for policy in POLICIES]
    found = {cell: by_cell[scheduler, *cell].gpu_utilisation for cell in cells if (scheduler, *cell) in by_cell}
    return [Bar(f"{variant}, {policy}", percent(share), share) for (variant, policy), share in found.items()]


EVALUATION = TraceEvaluation(ASSUMPTIONS, json_object, findings)
