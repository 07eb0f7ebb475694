"""What a decision changes of the one before it, for people and for programs."""

from typing import Any

from rich.console import Group
from rich.text import Text

from experiments.report.numbers import change, count, quantity
from policies.plan import Plan
from policies.plan_difference import plan_difference
from topologies.fabric import Fabric, Path
from trainyard.cli.layout import number_table, way


def difference_object(before: Plan, after: Plan, fabric: Fabric) -> dict[str, Any]:
    """The value of ``difference`` in what ``trainyard plan --diff --json`` prints."""
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
    """Gain by the policy's model, levels that change, and flows that move."""
    difference, worth = plan_difference(before, after), after.worth
    lines = [f"Came: {', '.join(difference.came) or 'nobody'}. Went: {', '.join(difference.went) or 'nobody'}."]
    if worth is not None:
        lines.append(
            f"Modelled: {quantity(worth.decided)} of computation per second, {change(worth.decided, worth.in_force)}"
            f" beside keeping what is in force."
        )
    levels = number_table(f"Level changes: {count(len(difference.levels))}", "Group", "Before", "After")
    for level in difference.levels:
        levels.add_row(Text(f"{level.job} {level.group}"), count(level.before), count(level.after))
    moved = number_table(
        f"Moved flows: {count(len(difference.moved))}", "Flow", "Before", "After", left=("Before", "After")
    )
    for flow in difference.moved:
        name = f"{flow.key.job} {flow.key.group} {flow.key.flow}"
        moved.add_row(Text(name), *(Text(_way(path, fabric)) for path in (flow.before, flow.after)))
    return Group(Text("\n".join(lines)), levels, moved)


def _way(path: Path | None, fabric: Fabric) -> str:
    return "hash" if path is None else way(fabric.nodes_of(path), [fabric.parallel_index(link) for link in path])
