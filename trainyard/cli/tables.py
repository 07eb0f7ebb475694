"""Plans and results as tables for people."""

import math
from collections.abc import Sequence
from itertools import pairwise

from rich.table import Table
from rich.text import Text

from controller.planning.decision import Decision
from experiments.report.numbers import change, count, counted, percent, quantity, seconds
from experiments.scenarios.results import RunResult
from experiments.sweeps.grid import format_value
from experiments.sweeps.summary import Cell
from policies.enforcement import Enforcement
from trainyard.cli.layout import number_table, way
from trainyard.plans import PlanResult
from workloads.scenario import ProfileSource


def utilisation(results: Sequence[RunResult]) -> Table:
    """GPU utilisation of every policy beside the ideal and the fluid bound."""
    table = number_table(
        f"{results[0].scenario}: GPU utilisation{_rates(results[0])}",
        "Policy",
        "Utilisation",
        "Ideal",
        "Fluid bound",
        "Rules",
    )
    for result in results:
        table.add_row(
            result.policy,
            percent(result.gpu_utilisation),
            percent(result.ideal_gpu_utilisation),
            percent(result.fluid_bound_gpu_utilisation),
            count(result.num_rules),
        )
    return table


def _rates(result: RunResult) -> str:
    """What to say where rates are other than switches would give."""
    return ", ideal rates" if result.enforcement is Enforcement.IDEAL else ""


def overview(comparisons: Sequence[Sequence[RunResult]]) -> Table:
    """GPU utilisation of several scenarios, each under the same policies; limits are those of the last one's window."""
    columns = ("Scenario", *(result.policy for result in comparisons[0]), "Ideal", "Fluid bound")
    table = number_table("GPU utilisation", *columns)
    for results in comparisons:
        limits = (results[-1].ideal_gpu_utilisation, results[-1].fluid_bound_gpu_utilisation)
        utilisations = (*(result.gpu_utilisation for result in results), *limits)
        table.add_row(Text(results[0].scenario), *map(percent, utilisations))
    return table


def between_events(results: Sequence[RunResult]) -> Table:
    """GPU utilisation before, between and after what failed and came back; of a policy in its own window."""
    title = f"{results[0].scenario}: GPU utilisation between events"
    table = number_table(title, "From", *(result.policy for result in results), "Then", left=("Then",))
    begin_s = min(result.window_from_s for result in results)
    moments = sorted({event.at_s for result in results for event in result.events if event.at_s > begin_s})
    for from_s, to_s in pairwise((begin_s, *moments, math.inf)):
        shares = [
            next((stretch.gpu_utilisation for stretch in result.stretches if from_s <= stretch.from_s < to_s), None)
            for result in results
        ]
        happens = [event.in_words for event in results[0].events if event.at_s == to_s]
        table.add_row(f"{round(from_s, 3):g} s", *map(_or_dash, shares), Text(", ".join(happens)))
    return table


def iteration_times(results: Sequence[RunResult]) -> Table:
    """Iteration time of every job under every policy, and how much it differs from the first; and who is measured."""
    first, *others = results
    is_any_measured = any(job.profile is ProfileSource.MEASURED for job in first.jobs)
    columns = ["Job", *(["Profile"] if is_any_measured else []), "GPUs", "Ideal", first.policy]
    columns += [title for other in others for title in (other.policy, "Change")]
    table = number_table(f"{first.scenario}: iteration times", *columns, left=("Profile",))
    times = [{job.name: job.iteration_time_s for job in other.jobs} for other in others]
    for job in first.jobs:
        cells = [count(job.gpus), seconds(job.ideal_iteration_time_s), seconds(job.iteration_time_s)]
        for of_job in times:
            cells += [seconds(of_job[job.name]), change(of_job[job.name], job.iteration_time_s)]
        table.add_row(Text(job.name), *([job.profile] if is_any_measured else []), *cells)
    return table


def plan_jobs(decision: Decision) -> Table:
    """Jobs in order of rank."""
    title = f"{decision.plan.policy}: {counted(len(decision.plan.jobs), 'job')}, {counted(decision.num_rules, 'rule')}"
    table = number_table(title, "Job", "Rank", "Level", "Intensity", "Factor", "Priority")
    for job in decision.plan.jobs:
        table.add_row(
            Text(job.name),
            count(job.rank),
            count(job.level),
            quantity(job.intensity),
            quantity(job.correction_factor),
            quantity(job.priority),
        )
    return table


def plan_reasons(decision: Decision) -> Text:
    """Why every job has its rank and level, one a line."""
    return Text("".join(f"{job.name}: {job.reason}\n" for job in decision.plan.jobs))


def plan_flows(result: PlanResult) -> Table:
    """The path of every flow, its level, its order at the host and its source port."""
    table = number_table("Flows", "Flow", "Path", "Level", "Order", "Port", left=("Path",))
    for flow in result.flows:
        table.add_row(
            Text(f"{flow.job} {flow.group} {flow.flow}"),
            Text(way(flow.path, flow.links)),
            count(flow.level),
            count(flow.order),
            str(flow.source_port),
        )
    return table


def swept(cells: Sequence[Cell]) -> Table:
    """The cells of a sweep: utilisation over the seeds; seeds that failed are counted where there are any."""
    keys = list(cells[0].settings)
    some_failed = any(cell.failed for cell in cells)
    spread = ("Mean", "Deviation", "p5", "p95")
    columns = ("Scenario", *keys, "Policy", "Seeds", *(("Failed",) if some_failed else ()), *spread, "Limit")
    table = number_table("GPU utilisation over seeds, in percent", *columns, left=("Policy",))
    for cell in cells:
        table.add_row(
            Text(cell.scenario),
            *(Text(format_value(cell.settings[key])) for key in keys),
            cell.policy,
            count(cell.finished),
            *((count(cell.failed),) if some_failed else ()),
            *(_in_percent(getattr(cell.gpu_utilisation, column.lower(), None)) for column in spread),
            _in_percent(cell.limit),
        )
    return table


def _or_dash(share: float | None) -> str:
    return "\N{EN DASH}" if share is None else percent(share)


def _in_percent(share: float | None) -> str:
    return "\N{EN DASH}" if share is None else f"{share * 100:.1f}"
