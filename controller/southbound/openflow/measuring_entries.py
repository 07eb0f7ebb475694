"""The entries that count by links what the job sends that is being measured.

The ports of OpenFlow switches do not count by level. While a job is measured it has a level for itself. Packets with
the mark of that level then have entries of their own in table ROUTING, which lead them where routing leads them anyway:
by the group of the one port there is, or by a group that chooses among several ports by the same hash as that of
routing. What the entries and the buckets of such groups count is what the job sends over each link.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from controller.rules.flow_rules import RulesBySwitch
from controller.rules.job_rules import JobRule
from controller.southbound.openflow import groups
from controller.southbound.openflow.entries import Entry, FlowEntry, FlowKey, Match, Table, ToGroup
from controller.southbound.openflow.flow_stats import HeldFlow
from controller.southbound.openflow.group_messages import HeldGroup
from controller.southbound.openflow.pipeline import IPV4, MEASURING_PRIORITY, dscp_of
from topologies.addressing import Prefix
from topologies.routing import Routing


class Measuring(NamedTuple):
    """What is to be counted: packets at this level to these hosts."""

    level: int
    hosts: Collection[str]


class PortCounter(NamedTuple):
    """A counter of what leaves by a port: that of an entry, or of a bucket of a group."""

    port: int
    of: tuple[object, ...]


def measuring_of(rules: RulesBySwitch) -> Measuring | None:
    """Return what rules ask to count; None where no job is being measured."""
    measured = [rule for some in rules.values() for rule in some if isinstance(rule, JobRule) and rule.is_measured]
    return Measuring(measured[0].level, dict.fromkeys(rule.destination_host for rule in measured)) if measured else None


def measuring_entries(switch: str, measuring: Measuring, routing: Routing) -> list[Entry]:
    """Return the entries of a switch that count, groups first."""
    fabric = routing.fabric
    ports_to = {
        nic.address: tuple(fabric.links[link].source_port for link in links)
        for host in measuring.hosts
        for nic in fabric.nics[host]
        if (links := routing.next_links(switch, nic))
    }
    choosing = groups.measuring_groups(switch, routing, (ports for ports in ports_to.values() if len(ports) > 1))
    entries: list[Entry] = list(choosing.values())
    for address, ports in ports_to.items():
        match = Match(IPV4, dscp_of(measuring.level), destination=Prefix(address, 32))
        group_id = choosing[ports].group_id if len(ports) > 1 else ports[0]
        entries.append(FlowEntry(FlowKey(Table.ROUTING, MEASURING_PRIORITY, match), (ToGroup(group_id),)))
    return entries


def port_counters(
    level: int,
    held: Sequence[HeldFlow],
    described: Sequence[HeldGroup],
    bucket_bytes: Mapping[int, Sequence[int | None]],
) -> dict[PortCounter, int | None]:
    """Return what has left by ports at a level, by counter; None where a switch does not count it.

    Args:
        level: The level.
        held: The entries that count.
        described: The groups of the switch.
        bucket_bytes: What each bucket of each group has counted.
    """
    found: dict[PortCounter, int | None] = {}
    choosing = set[int]()
    for flow, group_id in _leading_on(level, held):
        if groups.is_of_port(group_id):
            found[PortCounter(group_id, (flow.match,))] = flow.num_bytes
        else:
            choosing.add(group_id)
    for each in described:
        if each.group is not None and each.group_id in choosing and each.group_id in bucket_bytes:
            counts = zip(each.group.buckets, bucket_bytes[each.group_id], strict=False)
            for number, (bucket, count) in enumerate(counts):
                found[PortCounter(bucket.port, (each.group_id, number))] = count
    return found


def _leading_on(level: int, held: Sequence[HeldFlow]) -> Iterator[tuple[HeldFlow, int]]:
    """Yield the entries that count at a level, and the group that each leads to."""
    for flow in held:
        if flow.entry is not None and flow.entry.key.match.dscp == dscp_of(level):
            for action in flow.entry.actions:
                if isinstance(action, ToGroup):
                    yield flow, action.group_id
