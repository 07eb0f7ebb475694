"""``trainyard show``: what a running controller knows and has decided, as tables or JSON."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer
from google.protobuf.message import Message
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
    Listing,
)
from experiments.report.numbers import count, counted, percent, quantity
from trainyard.cli.connecting import CaOption, CertificateOption, KeyOption, Shown, TokenFileOption, connect_or_exit
from trainyard.cli.options import DEFAULT_CONTROLLER, AnswerJsonOption, ControllerOption
from trainyard.cli.output import PrintableConsole, number_table, path_words


class Subject(StrEnum):
    """What ``trainyard show`` can show."""

    JOBS = "jobs"
    PATHS = "paths"
    LEVELS = "levels"
    RULES = "rules"
    SWITCHES = "switches"
    LINKS = "links"
    CANDIDATES = "candidates"
    LOADS = "loads"
    DROPS = "drops"
    CONTROLLER = "controller"


SubjectArgument = Annotated[
    Subject, typer.Argument(metavar="WHAT", help=f"One of {', '.join(Subject)}.", show_choices=False)
]


def show(
    what: SubjectArgument,
    controller: ControllerOption = DEFAULT_CONTROLLER,
    as_json: AnswerJsonOption = False,
    ca: CaOption = None,
    certificate: CertificateOption = None,
    key: KeyOption = None,
    token_file: TokenFileOption = None,
) -> None:
    """Show what a running controller knows and has decided."""
    view = _VIEWS[what]
    with connect_or_exit(controller, Shown(ca, certificate, key, token_file)) as operations:
        states = operations.list(view.listing)
    if as_json:
        print(json.dumps({what: [message_object(state) for state in states]}))
    else:
        PrintableConsole().print(view.table(states))


def message_object(message: Message) -> dict[str, Any]:
    """Return a message for JSON, with the keys of the wire format and without absent fields.

    Unlike Protobuf's own JSON, 64-bit integers are numbers: jq compares strings letter by letter.
    """
    return {
        field.name: _value(field, getattr(message, field.name))
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    }


def _value(field: Any, value: Any) -> Any:
    if field.is_repeated:
        return [_single(field, each) for each in value]
    return _single(field, value)


def _single(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return message_object(value)
    return value if field.enum_type is None else field.enum_type.values_by_number[value].name


def profile_words(profile: wire.ProfileState) -> str:
    """Return where the profile of a job comes from, and what was measured of it."""
    if profile.source != wire.MEASURED:
        return wire.ProfileSource.Name(profile.source).lower().replace("_", " ")
    return (
        f"measured {profile.age_s:.0f} s ago, {profile.iterations} iterations of {profile.period_s:.3g} s,"
        f" {profile.transfer_s:.3g} s of transfer"
    )


_POLICY_FIELDS = ("intensity", "correction_factor", "priority")


def jobs(states: Sequence[wire.JobState]) -> Table:
    """Return a row for every job."""
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
            *(quantity(getattr(job, name) if job.HasField(name) else None) for name in _POLICY_FIELDS),
            f"{job.lease_s:.0f} s",
        )
    return table


def paths(states: Sequence[wire.FlowState]) -> Table:
    """Return a row for every flow."""
    columns = ("Flow", "Path", "Chosen by", "Level", "Order", "5-tuple")
    table = number_table(counted(len(states), "flow"), *columns, left=("Path", "Chosen by", "5-tuple"))
    for flow in states:
        table.add_row(
            Text(f"{flow.job}/{flow.flow_group}/{flow.flow}"),
            Text(path_words(flow.path.nodes, flow.path.links)),
            "none: cut off" if flow.is_cut_off else "plan" if flow.steered else "hash",
            count(flow.level),
            count(flow.order),
            Text(flow.five_tuple),
        )
    return table


def levels(states: Sequence[wire.LevelState]) -> Table:
    """Return a row for every priority level in use."""
    table = number_table("Levels in use, most urgent first", "Level", "Flows", "Bytes", "Jobs", left=("Jobs",))
    for level in states:
        table.add_row(str(level.level), count(level.flows), quantity(level.size_bytes), Text(", ".join(level.jobs)))
    return table


def rules(states: Sequence[wire.RuleState]) -> Table:
    """Return a row for every rule of the Plan in force."""
    columns = ("Switch", "5-tuple", "Sent to", "Level")
    table = number_table(counted(len(states), "rule"), *columns, left=("5-tuple", "Sent to"))
    for rule in states:
        table.add_row(
            rule.switch,
            Text(rule.five_tuple),
            f"{rule.next_node}, port {rule.port}" if rule.HasField("port") else "as hashed",
            count(rule.level) if rule.HasField("level") else "as marked",
        )
    return table


def switches(states: Sequence[wire.SwitchState]) -> Table:
    """Return a row for every switch, with its rules and its connection."""
    columns = ("Switch", "Address", "Device", "Rules", "Planned", "Drifted", "Condition", "For", "Problem")
    table = number_table(counted(len(states), "switch", "switches"), *columns, left=("Address", "Condition", "Problem"))
    for switch in states:
        condition = wire.Condition.Name(switch.condition).lower().replace("_", " ")
        table.add_row(
            switch.name,
            switch.address,
            str(switch.device_id),
            count(switch.num_rules if switch.HasField("num_rules") else None),
            count(switch.num_planned_rules),
            count(switch.drifted),
            condition,
            f"{switch.changed_ago_s:,.0f} s",
            Text(switch.problem),
        )
    return table


def links(states: Sequence[wire.LinkState]) -> Table:
    """Return a row for every cable that is not used, and why."""
    columns = ("Cable", "State", "Failures", "Last", "Held for")
    table = number_table(f"{counted(len(states), 'cable')} not used", *columns, left=("State",))
    for link in states:
        table.add_row(
            Text(path_words((link.source, link.destination), (link.parallel,))),
            _link_state(link),
            count(link.falls),
            f"{link.fell_ago_s:.1f} s ago",
            f"{link.held_for_s:.1f} s" if link.HasField("held_for_s") else count(None),
        )
    return table


def _link_state(link: wire.LinkState) -> str:
    if link.is_down:
        return "down"
    if link.HasField("held_for_s"):
        return "up, held back for flapping"
    return "missed by " + (f"all but {', '.join(link.claimants)}" if link.claimants else "probes")


def candidates(states: Sequence[wire.PairState]) -> Table:
    """Return a row for every candidate path of every pair of NICs, and what probes found of it."""
    complete = sum(pair.is_complete for pair in states)
    columns = ("From", "To", "Path", "State", "Source ports", "Age", "Loss")
    received, late, missing, duplicates = (
        sum(getattr(pair, name) for pair in states) for name in ("received", "late", "missing", "duplicates")
    )
    title = (
        f"{counted(len(states), 'pair')} of NICs, all paths known of {complete:,}\n"
        f"{counted(received, 'probe')} received, {late:,} late; {missing:,} missing, {duplicates:,} reported twice"
    )
    table = number_table(title, *columns, left=("To", "Path", "State", "Source ports"))
    for pair in states:
        for candidate in pair.candidates:
            table.add_row(
                Text(pair.source),
                Text(pair.destination),
                Text(path_words(candidate.path.nodes, candidate.path.links)),
                wire.Freshness.Name(candidate.freshness).lower().replace("_", " "),
                Text(", ".join(map(str, candidate.source_ports))),
                f"{candidate.age_s:.1f} s" if candidate.HasField("age_s") else count(None),
                percent(candidate.loss),
            )
    return table


def loads(states: Sequence[wire.LoadState]) -> Table:
    """Return a row for every link that switches have reported."""
    columns = ("Link", "Load", "Foreign", "Rate", "Age", "Latency by level", "Queue by level")
    table = number_table(counted(len(states), "link"), *columns, left=("Latency by level", "Queue by level"))
    for link in states:
        latencies = [f"{level.level}: {level.latency_us} µs" for level in link.levels if level.HasField("latency_us")]
        queues = [f"{level.level}: {level.queue_packets}" for level in link.levels if level.HasField("queue_packets")]
        table.add_row(
            Text(path_words((link.source, link.destination), (link.parallel,))),
            percent(link.load_bps / link.rate_bps) if link.HasField("load_bps") else count(None),
            percent(link.foreign_bps / link.rate_bps) if link.HasField("foreign_bps") else count(None),
            f"{quantity(link.rate_bps)}bit/s",
            f"{link.age_s:.1f} s",
            ", ".join(latencies),
            ", ".join(queues),
        )
    return table


def drops(states: Sequence[wire.DropState]) -> Table:
    """Return a row for every reason for which a host or the controller rejected probes."""
    table = number_table("Rejected probes", "Rejected by", "Reason", "Count", left=("Reason",))
    for drop in states:
        table.add_row(Text(drop.host or "controller"), Text(drop.reason), count(drop.count))
    return table


def controllers(states: Sequence[wire.ControllerState]) -> Table:
    """Return the state of the controller, its policy and its database."""
    table = number_table("", "Controller", "State", left=("State",))
    for state in states:
        if state.HasField("name"):
            table.add_row("Active", Text(f"{state.name}, term {state.term}"))
        table.add_row("Plan in force", count(state.plan_number or None))
        table.add_row("Policy", Text(state.policy))
        table.add_row("Failed decisions", count(state.failed_decisions))
        for refused in state.refusals:
            of = f", tenant {refused.tenant}" if refused.tenant else ""
            table.add_row("Refused calls", Text(f"{count(refused.calls)} {refused.status}{of}"))
        if state.policy_problem:
            table.add_row("Last failure", Text(state.policy_problem))
        table.add_row("Last recorded Plan", count(state.recorded_plan_number or None))
        table.add_row("Database", Text(state.database or "none"))
        if state.database:
            table.add_row("Database problem", Text(state.database_problem or "none"))
            table.add_row("Lost audit entries", count(state.lost_writes))
        table.add_row("Worst stall", f"{state.worst_stall_s:.3f} s")
        table.add_row("Stalls over 0.05 s", count(state.stalls))
        table.add_row("Stalls over 0.25 s", count(state.long_stalls))
    return table


@dataclass(frozen=True, slots=True)
class _View:
    """A listing of the operations service, and the table of its states."""

    listing: Listing[Any]
    table: Callable[[Sequence[Any]], Table]


_VIEWS: Mapping[Subject, _View] = {
    Subject.JOBS: _View(LIST_JOBS, jobs),
    Subject.PATHS: _View(LIST_FLOWS, paths),
    Subject.LEVELS: _View(LIST_LEVELS, levels),
    Subject.RULES: _View(LIST_RULES, rules),
    Subject.SWITCHES: _View(LIST_SWITCHES, switches),
    Subject.LINKS: _View(LIST_LINKS, links),
    Subject.CANDIDATES: _View(LIST_CANDIDATES, candidates),
    Subject.LOADS: _View(LIST_LOADS, loads),
    Subject.DROPS: _View(LIST_DROPS, drops),
    Subject.CONTROLLER: _View(LIST_CONTROLLERS, controllers),
}
