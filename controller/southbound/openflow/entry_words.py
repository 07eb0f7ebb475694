"""Entries of OpenFlow switches in words, as operators know them: flows, routes, groups."""

from collections.abc import Iterator

from controller.southbound.openflow.entries import (
    Action,
    FlowEntry,
    Forward,
    Group,
    GroupType,
    Match,
    SetDscp,
    SetQueue,
    Table,
    ToController,
    ToGroup,
)
from controller.southbound.openflow.flow_stats import HeldFlow
from controller.southbound.openflow.states import SwitchEntry, key_of
from controller.southbound.states import EntryKind

_KINDS = {EntryKind.FLOW: "flow", EntryKind.JOB: "job", EntryKind.MEASURING: "measuring"} | dict.fromkeys(
    (EntryKind.RULE_GROUP, EntryKind.GROUP), "group"
)
_PROTOCOLS = {6: "tcp", 17: "udp"}


def kind_words(entry: SwitchEntry) -> str:
    """The kind of an entry: ``flow``, ``job``, ``group``, or its table."""
    if isinstance(entry, HeldFlow):
        return f"table {entry.table}"
    kind = key_of(entry).kind
    return _KINDS[kind] if kind in _KINDS or isinstance(entry, Group) else entry.key.table.name.lower()


def entry_words(entry: SwitchEntry) -> str:
    """What an entry says, without its kind."""
    match entry:
        case HeldFlow():
            return f"priority {entry.priority}: what others have made of it"
        case Group():
            by = f" {entry.kind.value}" if entry.kind is not GroupType.INDIRECT else ""
            return f"{entry.group_id}:{by} ports {', '.join(str(bucket.port) for bucket in entry.buckets) or 'none'}"
        case FlowEntry():
            done = [*map(_action, entry.actions), *_goto(entry.goto)]
            return f"{_match(entry.key.match) or 'all else'}: {', '.join(done) or 'drop'}"


def _match(match: Match) -> str:
    """What packets an entry is about."""
    if match.protocol is not None and match.source is not None and match.destination is not None:
        protocol = _PROTOCOLS.get(match.protocol, f"protocol {match.protocol}")
        source, destination = match.source.address, match.destination.address
        return f"{protocol} {source}:{match.source_port} > {destination}:{match.destination_port}"
    if match.source is not None:
        return f"{match.source.address} > {match.destination}"
    if match.destination is not None:
        return str(match.destination)
    if match.dscp is not None:
        return f"dscp {match.dscp}"
    return "" if match.ether_type is None else f"ether type {match.ether_type:#06x}"


def _goto(table: Table | None) -> Iterator[str]:
    if table is not None:
        yield f"go to {table.name.lower()}"


def _action(action: Action) -> str:
    match action:
        case SetDscp(dscp):
            return f"dscp {dscp}"
        case SetQueue(queue):
            return f"queue {queue}"
        case Forward(port):
            return f"port {port}"
        case ToGroup(group_id):
            return f"group {group_id}"
        case ToController():
            return "to the controller"
