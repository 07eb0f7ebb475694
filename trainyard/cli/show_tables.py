"""The tables of ``trainyard show``, one for each kind of state."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from controller.api.operations import operations_pb2 as wire
from controller.api.operations.sentences import path_words, pause_words, profile_words, until_words
from experiments.report.numbers import count, counted, percent, quantity
from trainyard.cli.output import number_table

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
    columns = ("Cable", "Ports", "State", "Failures", "Last", "Held for")
    table = number_table(f"{counted(len(states), 'cable')} not used", *columns, left=("Ports", "State"))
    for link in states:
        table.add_row(
            Text(path_words((link.source, link.destination), (link.parallel,))),
            Text(link.ports),
            _link_state(link),
            count(link.falls or None),
            f"{link.fell_ago_s:.1f} s ago" if link.falls else count(None),
            f"{link.held_for_s:.1f} s" if link.HasField("held_for_s") else count(None),
        )
    return table


def drained(states: Sequence[wire.DrainState]) -> Table:
    """Return a row for everything that is drained, and what it waits for."""
    table = number_table(
        f"{len(states):,} drained", "What", "Safe", "Waits for", "Quiet", "Since", "By", left=("Waits for", "By")
    )
    for drain in states:
        name = f"{wire.DrainKind.Name(drain.kind).lower()} {drain.name}"
        table.add_row(
            Text(name + " (forced)" * drain.is_forced),
            "yes" if drain.is_safe else "no",
            Text("; ".join(drain.waits_for)),
            f"{drain.quiet_s:,.0f} s" if drain.HasField("quiet_s") else count(None),
            f"{drain.since_ago_s:,.0f} s ago",
            Text(drain.by),
        )
    return table


def pins(states: Sequence[wire.PinState]) -> Table:
    """Return a row for everything that is pinned, and whether it holds."""
    table = number_table(
        counted(len(states), "pin"), "What", "Level", "Path", "Until", "Holds", "By", left=("Path", "Holds", "By")
    )
    for pin in states:
        table.add_row(
            Text(pin.name),
            count(pin.level if pin.HasField("level") else None),
            Text(pin.path),
            until_words(pin.left_s),
            Text("yes" if pin.holds else f"no: {pin.problem}"),
            Text(pin.by),
        )
    return table


def _link_state(link: wire.LinkState) -> str:
    if link.is_down:
        return "down"
    if link.state == "drained":
        return "drained"
    if link.state == "misplaced":
        return "up, ends elsewhere"
    if link.state == "unheard":
        return "up, nothing is heard over it"
    if link.HasField("held_for_s"):
        return "up, held back for flapping"
    return "missed by " + (f"all but {', '.join(link.claimants)}" if link.claimants else "probes")


def cables(states: Sequence[wire.CableState]) -> Table:
    """Return a row for everything in which the fabric file and the world differ."""
    columns = ("Cable", "Problem", "Found", "For", "Used")
    table = number_table(
        f"{counted(len(states), 'difference')} from the fabric file", *columns, left=("Problem", "Found", "Used")
    )
    for cable in states:
        table.add_row(
            Text(cable.place),
            cable.problem,
            Text(cable.found),
            f"{cable.for_s:.1f} s",
            "no" if cable.is_unused else "yes",
        )
    return table


def candidates(states: Sequence[wire.PairState]) -> Table:
    """Return a row for every candidate path of every pair of NICs, and what probes found of it."""
    complete = sum(pair.is_complete for pair in states)
    columns = ("From", "To", "Path", "State", "Source ports", "Age", "Loss")
    received, late, missing, duplicates = (
        sum(getattr(pair, name) for pair in states) for name in ("received", "late", "missing", "duplicates")
    )
    title = (
        f"{counted(len(states), 'pair')} of NICs, {complete:,} of them with all paths known\n"
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
        table.add_row("Planning", Text(pause_words(state.pause) if state.HasField("pause") else "goes on"))
        if state.HasField("reload"):
            table.add_row("Reload", Text(f"goes on, since {state.reload.for_s:,.0f} s: {state.reload.step}"))
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
