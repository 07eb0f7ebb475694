"""The entries of OpenFlow switches as states that a writer keeps, and updates of them."""

from controller.southbound import states
from controller.southbound.openflow import groups, pipeline
from controller.southbound.openflow.entries import Entry, FlowEntry, FlowKey, Group, GroupType, Table, ToGroup
from controller.southbound.openflow.fields import decode_match
from controller.southbound.openflow.flow_stats import HeldFlow
from controller.southbound.states import EntryKey, EntryKind, Meaning

SwitchEntry = Entry | HeldFlow
"""An entry, or one with our cookie that a switch holds and our words do not tell; that one can only be deleted."""

_TABLES = frozenset(Table)

State = states.State[SwitchEntry]
Update = states.Update[SwitchEntry]


def key_of(entry: SwitchEntry) -> EntryKey:
    """Return the identity of an entry."""
    if isinstance(entry, HeldFlow):
        return EntryKey(EntryKind.ROUTING, (entry.table, entry.priority, entry.match))
    return pipeline.key_of(entry)


def place_of(held: HeldFlow) -> EntryKey | None:
    """Return the identity that an entry of ours would have in the place of this one; None where none can be there.

    Raises:
        MalformedError: Its match is truncated.
    """
    match = decode_match(held.match)
    if match is None or held.table not in _TABLES:
        return None
    return pipeline.key_of(FlowEntry(FlowKey(Table(held.table), held.priority, match)))


def _holds_same(one: SwitchEntry, other: SwitchEntry) -> bool:
    return one == other


def _next_hop_of(entry: SwitchEntry) -> int | None:
    """The port that a rule steers to; None where its group has others to choose from, as that leaves by itself."""
    if isinstance(entry, FlowEntry) and key_of(entry).kind in (EntryKind.FLOW, EntryKind.MEASURING):
        for action in entry.actions:
            if isinstance(action, ToGroup) and groups.is_of_port(action.group_id):
                return action.group_id
    return None


def _is_known_neighbour(entry: SwitchEntry, unknown: SwitchEntry) -> bool:
    return isinstance(entry, Group) and isinstance(unknown, Group) and groups.is_known_neighbour(entry, unknown)


MEANING: Meaning[SwitchEntry] = Meaning(key_of, _holds_same, _next_hop_of, _is_known_neighbour)


def unreadable_group(group_id: int) -> Group:
    """Return what stands for a group of ours that our words do not tell: one that does nothing."""
    return Group(group_id, GroupType.SELECT, ())
