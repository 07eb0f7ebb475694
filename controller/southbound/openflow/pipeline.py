"""The pipeline of an OpenFlow switch: what it does with every packet before the Plan and routing decide.

It gives packets the same paths and levels as the P4 program in ``p4src/``. What it cannot do:

- It knows no INT: a probe is data to it. ``SetDscp`` writes all six bits, so a marked packet loses the bits that are
  not ours, which the P4 program keeps (OpenFlow 1.3 cannot write a part of a field).
- It believes the DSCP of every port, and checks no IPv4 checksum.
- It never sends a packet back by the port where it came in (OpenFlow 1.3.5, section 4.5).

A packet whose TTL would reach 0 ends at ``Forward``; switches hand it only to controllers that ask for such packets.
"""

from controller.southbound.openflow import groups
from controller.southbound.openflow.entries import (
    Action,
    Entry,
    FlowEntry,
    FlowKey,
    Group,
    Match,
    SetDscp,
    SetQueue,
    Table,
    ToController,
)
from controller.southbound.states import EntryKey, EntryKind
from topologies.openflow_specification import Queues

IPV4 = 0x0800
ARP = 0x0806
LLDP = 0x88CC

WHOLE_PACKET = 0xFFFF
"""As many bytes as a packet has: the switch keeps none of it in a buffer (OFPCML_NO_BUFFER)."""

LEVELS = range(1, 8)
"""The levels above the lowest one, which is 0 and needs no entry."""

MISS_PRIORITY = 0
ROUTE_PRIORITY = 1
"""That of a route to all addresses; a longer prefix has as much more as it has bits."""
MEASURING_PRIORITY = 64
"""In table ROUTING, entries that count what a job sends take precedence over routes."""
JOB_PRIORITY = 100
FLOW_PRIORITY = 200
"""In table RULES, flows take precedence over jobs."""

_DSCP_OF_CLASS = 8
"""Class selector n, CSn, is DSCP 8n (RFC 2474, section 4.2.2.2)."""


_KIND_OF_TABLE = {
    Table.ADMISSION: EntryKind.ADMISSION,
    Table.LEVEL: EntryKind.PASSAGE,
    Table.RULES: EntryKind.PASSAGE,
    Table.ROUTING: EntryKind.ROUTING,
}
_KIND_OF_RULE = {JOB_PRIORITY: EntryKind.JOB, FLOW_PRIORITY: EntryKind.FLOW}


def key_of(entry: Entry) -> EntryKey:
    """Return the identity of an entry: its match or its group's id. Two with the same key do the same if equal."""
    if isinstance(entry, Group):
        is_of_rules = groups.is_of_rules(entry.group_id)
        return EntryKey(EntryKind.RULE_GROUP if is_of_rules else EntryKind.GROUP, entry.group_id)
    table, priority, match = entry.key
    if table is Table.LEVEL and match.dscp is not None:
        return EntryKey(EntryKind.LEVEL, entry.key)
    if table is Table.ROUTING and match.dscp is not None:
        return EntryKey(EntryKind.MEASURING, entry.key)
    if table is Table.RULES:
        return EntryKey(_KIND_OF_RULE.get(priority, EntryKind.PASSAGE), entry.key)
    return EntryKey(_KIND_OF_TABLE[table], entry.key)


def dscp_of(level: int) -> int:
    """Return the mark of a level."""
    return _DSCP_OF_CLASS * level


def level_actions(level: int, queues: Queues) -> tuple[Action, ...]:
    """Return the actions that mark packets with a level and, where entries name it, choose its queue."""
    mark = SetDscp(dscp_of(level))
    return (mark, SetQueue(level)) if queues is Queues.SET_QUEUE else (mark,)


def pipeline_entries(queues: Queues) -> list[FlowEntry]:
    """Return the entries that are the same on every switch: who is admitted, the queues, and what no rule or route has.

    Where ports find the queue by DSCP, table LEVEL is empty and packets go past it.
    """
    names_queue = queues is Queues.SET_QUEUE
    entries = [
        _entry(Table.ADMISSION, 1, Match(ether_type=IPV4), goto=Table.LEVEL if names_queue else Table.RULES),
        *(
            _entry(Table.ADMISSION, 1, Match(ether_type=ether_type), ToController(WHOLE_PACKET))
            for ether_type in (ARP, LLDP)
        ),
        _entry(Table.ADMISSION, MISS_PRIORITY, Match()),
        _entry(Table.RULES, MISS_PRIORITY, Match(), goto=Table.ROUTING),
        _entry(Table.ROUTING, MISS_PRIORITY, Match()),
    ]
    if names_queue:
        entries.append(_entry(Table.LEVEL, MISS_PRIORITY, Match(), goto=Table.RULES))
        entries += (_queue_of_mark(level, other_bits) for level in LEVELS for other_bits in range(_DSCP_OF_CLASS))
    return entries


def _queue_of_mark(level: int, other_bits: int) -> FlowEntry:
    """The entry for one DSCP: OpenFlow cannot match the class alone."""
    match = Match(ether_type=IPV4, dscp=dscp_of(level) + other_bits)
    return _entry(Table.LEVEL, 1, match, SetQueue(level), goto=Table.RULES)


def _entry(table: Table, priority: int, match: Match, *actions: Action, goto: Table | None = None) -> FlowEntry:
    return FlowEntry(FlowKey(table, priority, match), actions, goto)
