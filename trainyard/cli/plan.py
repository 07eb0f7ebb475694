"""``trainyard plan``: the decision for a scenario, and what it changes of an earlier one."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from controller.api.operations.sentences import path_words
from controller.planning.decision import Decision
from controller.registry.errors import RegistrationError
from experiments.report.numbers import change, count, counted, quantity
from policies.plan import Plan
from policies.plan_difference import plan_difference
from topologies.fabric import Fabric
from topologies.fabric import Path as FabricPath
from trainyard.cli.answers import Answer, OutputFormat, OutputOption, Writer
from trainyard.cli.exits import refuse
from trainyard.cli.inputs import policies_for, read_scenario
from trainyard.cli.options import AllowPolicyImportOption, PoliciesOption, ScenarioArgument
from trainyard.cli.output import number_table
from trainyard.plans import PlanResult, plan_scenario

DifferenceOption = Annotated[
    Path | None,
    typer.Option("--diff", metavar="BEFORE", help="Scenario whose Plan is in force: show what the new Plan changes."),
]


def plan(
    scenario: ScenarioArgument,
    policy: PoliciesOption = None,
    diff: DifferenceOption = None,
    output: OutputOption = OutputFormat.TABLE,
    allow_policy_import: AllowPolicyImportOption = False,
) -> None:
    """Show what a policy decides once all jobs of a scenario have arrived; nothing is started."""
    accepted = read_scenario(scenario, allow_policy_import=allow_policy_import)
    in_force = None if diff is None else read_scenario(diff, allow_policy_import=allow_policy_import)
    fabric = accepted.topology.build()
    if in_force is not None and in_force.topology.build() != fabric:
        refuse(f"{diff}: topology: expected the same as in {scenario}, or paths cannot be compared")
    writer = Writer(output)
    for chosen in policies_for(accepted, policy):
        try:
            before = None if in_force is None else plan_scenario(in_force, fabric, chosen).plan
            decision = plan_scenario(accepted, fabric, chosen, before)
            result = PlanResult.of(accepted.name, decision, fabric)
        except (RegistrationError, ValueError) as error:
            refuse(f"{scenario}: under {chosen.name}: {error}")
        document = result.to_dict()
        views: list[RenderableType] = [_jobs(decision), Text(), _reasons(decision)]
        if before is None:
            views.append(_flows(result))
        else:
            document["difference"] = difference_object(before, decision.plan, fabric)
            views.append(difference_view(before, decision.plan, fabric))
        writer.write(Answer(document, _rows(document), partial(Group, *views)))


def _rows(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for every flow of a Plan, with what is decided for its job."""
    jobs = {job["name"]: job for job in document["jobs"]}
    for flow in document["flows"]:
        of_job = {f"job_{key}": value for key, value in jobs[flow["job"]].items() if key != "name"}
        yield {"policy": document["policy"], **flow, **of_job}


def difference_object(before: Plan, after: Plan, fabric: Fabric) -> dict[str, Any]:
    """Return the value of ``difference`` in what ``plan --diff -o json`` and ``replay -o json`` print."""
    difference, worth = plan_difference(before, after), after.worth
    return {
        "came": list(difference.came),
        "went": list(difference.went),
        "worth_in_force": None if worth is None else worth.in_force,
        "worth_decided": None if worth is None else worth.decided,
        "levels": [
            {"job": level.job, "group": level.group, "before": level.before, "after": level.after}
            for level in difference.levels
        ],
        "moved": [
            {
                "job": flow.key.job,
                "group": flow.key.group,
                "flow": flow.key.flow,
                "before": None if flow.before is None else list(fabric.nodes_of(flow.before)),
                "after": None if flow.after is None else list(fabric.nodes_of(flow.after)),
            }
            for flow in difference.moved
        ],
    }


def difference_view(before: Plan, after: Plan, fabric: Fabric) -> Group:
    """Return what a Plan changes of another: its gain by the policy's model, levels, and paths of flows."""
    difference, worth = plan_difference(before, after), after.worth
    lines = [f"Arrived: {', '.join(difference.came) or 'none'}. Departed: {', '.join(difference.went) or 'none'}."]
    if worth is not None:
        lines.append(
            f"Modelled: {quantity(worth.decided)} of computation per second,"
            f" {change(worth.decided, worth.in_force)} compared with keeping the Plan in force."
        )
    levels = number_table(f"Level changes: {count(len(difference.levels))}", "Group", "Before", "After")
    for level in difference.levels:
        levels.add_row(Text(f"{level.job} {level.group}"), count(level.before), count(level.after))
    moved = number_table(
        f"Moved flows: {count(len(difference.moved))}", "Flow", "Before", "After", left=("Before", "After")
    )
    for flow in difference.moved:
        name = f"{flow.key.job} {flow.key.group} {flow.key.flow}"
        moved.add_row(Text(name), *(Text(_path(path, fabric)) for path in (flow.before, flow.after)))
    return Group(Text("\n".join(lines)), levels, moved)


def _path(path: FabricPath | None, fabric: Fabric) -> str:
    if path is None:
        return "hash"
    return path_words(fabric.nodes_of(path), [fabric.parallel_index(link) for link in path])


def _jobs(decision: Decision) -> Table:
    """Return the jobs in order of rank."""
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


def _reasons(decision: Decision) -> Text:
    """Return the reason of every job's rank and level, one a line."""
    return Text("".join(f"{job.name}: {job.reason}\n" for job in decision.plan.jobs))


def _flows(result: PlanResult) -> Table:
    """Return the path of every flow, its level, its order at the host and its source port."""
    table = number_table("Flows", "Flow", "Path", "Level", "Order", "Port", left=("Path",))
    for flow in result.flows:
        table.add_row(
            Text(f"{flow.job} {flow.group} {flow.flow}"),
            Text(path_words(flow.path, flow.links)),
            count(flow.level),
            count(flow.order),
            str(flow.source_port),
        )
    return table
