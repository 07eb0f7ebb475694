"""What ``trainyard show`` shows: what it asks of the controller, and the table that comes of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from controller.api.operations import operations_pb2 as wire
from controller.api.operations.methods import (
    LIST_CANDIDATES,
    LIST_CONTROLLERS,
    LIST_DROPS,
    LIST_FLOWS,
    LIST_JOBS,
    LIST_LEVELS,
    LIST_LINKS,
    LIST_LOADS,
    LIST_RULES,
    LIST_SWITCHES,
)
from experiments.report.numbers import count, counted, quantity
from hostlib.wire.methods import Method
from trainyard.cli.layout import number_table, way
from trainyard.cli.profile_words import profile_words
from trainyard.cli.shown import Shown
from trainyard.cli.telemetry_views import candidates, drops, loads

_OF_POLICY = ("intensity", "correction_factor", "priority")


def _jobs(states: Sequence[wire.JobState]) -> Table:
    columns = ("Job", "Hosts", "GPUs", "Flows", "Rank", "Level", "Intensity", "Factor", "Priority", "Lease")
    table = number_table(counted(len(states), "job"), *columns, left=("Hosts",))
    for job in states:
        table.add_row(
            Text(job.name),
            Text(", ".join(job.hosts)),
            count(job.gpus),
            count(job.flows) if job.profile.source == wire.TOLD else profile_words(job.profile),
            count(job.rank if job.HasField("rank") else None),
            count(job.level if job.HasField("level") else None),
            *(quantity(getattr(job, name) if job.HasField(name) else None) for name in _OF_POLICY),
            f"{job.lease_s:.0f} s",
        )
    return table


def _paths(states: Sequence[wire.FlowState]) -> Table:
    columns = ("Flow", "Path", "Chosen by", "Level", "Order", "5-tuple")
    table = number_table(counted(len(states), "flow"), *columns, left=("Path", "Chosen by", "5-tuple"))
    for flow in states:
        table.add_row(
            Text(f"{flow.job}/{flow.flow_group}/{flow.flow}"),
            Text(way(flow.path.nodes, flow.path.links)),
            "nobody: cut off" if flow.is_cut_off else "plan" if flow.steered else "hash",
            count(flow.level),
            count(flow.order),
            Text(flow.five_tuple),
        )
    return table


def _levels(states: Sequence[wire.LevelState]) -> Table:
    table = number_table("Levels in use, the most urgent first", "Level", "Flows", "Bytes", "Jobs", left=("Jobs",))
    for level in states:
        table.add_row(str(level.level), count(level.flows), quantity(level.size_bytes), Text(", ".join(level.jobs)))
    return table


def _rules(states: Sequence[wire.RuleState]) -> Table:
    columns = ("Switch", "5-tuple", "Sent to", "Level")
    table = number_table(counted(len(states), "rule"), *columns, left=("5-tuple", "Sent to"))
    for rule in states:
        table.add_row(
            rule.switch,
            Text(rule.five_tuple),
            f"{rule.next_node}, port {rule.port}" if rule.HasField("port") else "where its hash says",
            count(rule.level) if rule.HasField("level") else "as marked",
        )
    return table


def _switches(states: Sequence[wire.SwitchState]) -> Table:
    columns = ("Switch", "Address", "Device", "Rules", "Planned", "Condition", "Problem")
    table = number_table(counted(len(states), "switch", "switches"), *columns, left=("Address", "Condition", "Problem"))
    for switch in states:
        condition = wire.Condition.Name(switch.condition).lower().replace("_", " ")
        table.add_row(
            switch.name,
            switch.address,
            str(switch.device_id),
            count(switch.num_rules if switch.HasField("num_rules") else None),
            count(switch.num_planned_rules),
            condition,
            Text(switch.problem),
        )
    return table


def _why_unused(link: wire.LinkState) -> str:
    if link.is_down:
        return "down"
    if link.HasField("held_for_s"):
        return "up, and held for flapping"
    return "missed by " + (f"all but {', '.join(link.claimants)}" if link.claimants else "probes")


def _links(states: Sequence[wire.LinkState]) -> Table:
    columns = ("Cable", "Is", "Falls", "Last", "Held for")
    table = number_table(f"{counted(len(states), 'cable')} not used", *columns, left=("Is",))
    for link in states:
        table.add_row(
            Text(way((link.source, link.destination), (link.parallel,))),
            _why_unused(link),
            count(link.falls),
            f"{link.fell_ago_s:.1f} s ago",
            f"{link.held_for_s:.1f} s" if link.HasField("held_for_s") else count(None),
        )
    return table


def _controllers(states: Sequence[wire.ControllerState]) -> Table:
    table = number_table("", "Controller", "Is", left=("Is",))
    for state in states:
        if state.HasField("name"):
            table.add_row("Leading", Text(f"{state.name}, term {state.term}"))
        table.add_row("Plan in force", count(state.plan_number or None))
        table.add_row("Policy", Text(state.policy))
        table.add_row("Decisions that failed", count(state.failed_decisions))
        if state.policy_problem:
            table.add_row("Last decision failed", Text(state.policy_problem))
        table.add_row("Last plan recorded", count(state.recorded_plan_number or None))
        table.add_row("Database", Text(state.database or "none"))
        if state.database:
            table.add_row("Takes what it is given", Text(state.database_problem or "yes"))
            table.add_row("Missing from the audit trail", count(state.lost_writes))
    return table


@dataclass(frozen=True, slots=True)
class View:
    """A listing, and a table of its states."""

    listing: Method[wire.ListRequest, Any]
    table: Callable[[Sequence[Any]], Table]


VIEWS: Mapping[Shown, View] = {
    Shown.JOBS: View(LIST_JOBS, _jobs),
    Shown.PATHS: View(LIST_FLOWS, _paths),
    Shown.LEVELS: View(LIST_LEVELS, _levels),
    Shown.RULES: View(LIST_RULES, _rules),
    Shown.SWITCHES: View(LIST_SWITCHES, _switches),
    Shown.LINKS: View(LIST_LINKS, _links),
    Shown.CANDIDATES: View(LIST_CANDIDATES, candidates),
    Shown.LOADS: View(LIST_LOADS, loads),
    Shown.DROPS: View(LIST_DROPS, drops),
    Shown.CONTROLLER: View(LIST_CONTROLLERS, _controllers),
}
