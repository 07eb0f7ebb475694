"""A plain interpreter of entries: the slow reference of what a switch, and a fabric of them, does with a packet."""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from controller.southbound.openflow.entries import (
    Entry,
    FlowEntry,
    FlowKey,
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
from topologies.addressing import Address
from topologies.fabric import Fabric, Nic, Path


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet as far as entries see it. ``ports`` are those of TCP and UDP."""

    source: Address
    destination: Address
    protocol: int = 17
    ports: tuple[int, int] = (0, 0)
    dscp: int = 0
    time_to_live: int = 64
    ether_type: int = 0x0800
    source_mac: int = 2
    destination_mac: int = 4


class Left(NamedTuple):
    """A packet that left by a port, from one of its queues."""

    port: int
    queue: int
    packet: Packet


class ForController(NamedTuple):
    """A packet that the controller gets, up to so many bytes."""

    most_bytes: int


class Dropped(NamedTuple):
    """A packet that ended in a table, or None: at its port."""

    table: Table | None


Outcome = Left | ForController | Dropped


class Switch:
    """A switch with these entries. Raises ValueError where entries contradict each other or lead to nothing."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._groups: dict[int, Group] = {}
        self._tables: dict[Table, dict[FlowKey, FlowEntry]] = {table: {} for table in Table}
        for entry in entries:
            if isinstance(entry, Group):
                other: Entry = self._groups.setdefault(entry.group_id, entry)
            else:
                other = self._tables[entry.key.table].setdefault(entry.key, entry)
            if other is not entry:
                raise ValueError(f"there are {other} and {entry}")

    def outcomes(self, packet: Packet, ingress_port: int, down: Set[int] = frozenset()) -> set[Outcome]:
        """Return what may become of a packet; several where a hash decides. ``down`` ports are known to the switch."""
        table, queue = Table.ADMISSION, 0
        while True:
            entry = self._entry(table, packet)
            if entry is None:
                return {Dropped(table)}
            found: set[Outcome] = set()
            for number, action in enumerate(entry.actions):
                match action:
                    case SetDscp():
                        packet = replace(packet, dscp=action.dscp)
                    case SetQueue():
                        queue = action.queue
                    case ToController():
                        found.add(ForController(action.most_bytes))
                    case Forward():
                        found.add(_forwarded(action, packet, queue, ingress_port, down))
                    case ToGroup():
                        group = self._groups.get(action.group_id)
                        if group is None:
                            raise ValueError(f"{entry} leads to no group")
                        buckets = list(_possible(group, down))
                        found |= {_forwarded(bucket, packet, queue, ingress_port, down) for bucket in buckets}
                        found |= {Dropped(None)} if not buckets else set()
                if found and (number < len(entry.actions) - 1 or entry.goto is not None):
                    raise ValueError(f"{entry} does more with a packet that has left")
            if entry.goto is None:
                return found or {Dropped(table)}
            if entry.goto <= table:
                raise ValueError(f"{entry} leads back")
            table = entry.goto

    def _entry(self, table: Table, packet: Packet) -> FlowEntry | None:
        matching = [entry for key, entry in self._tables[table].items() if _matches(key.match, packet)]
        highest = max((entry.key.priority for entry in matching), default=0)
        first = [entry for entry in matching if entry.key.priority == highest]
        if len(first) > 1:
            raise ValueError(f"it is open which of these is meant: {first}")
        return first[0] if first else None


class Walk(NamedTuple):
    """A way that a packet may take: its links, the switches' outcomes, and what became of it at last."""

    path: Path
    hops: tuple[Left, ...]
    end: Outcome


def walks(
    switches: Mapping[str, Switch],
    fabric: Fabric,
    packet: Packet,
    source: Nic,
    down: Mapping[str, Set[int]],
) -> Iterator[Walk]:
    """Iterate over the ways of a packet from a NIC until it reaches a host or ends, by TTL where it goes in a circle.

    ``down`` has the ports of a switch that are down.
    """
    link_at = {(link.source, link.source_port): link for link in fabric.links}
    begun: list[tuple[Path, tuple[Left, ...]]] = [((source.link,), ())]
    while begun:
        path, hops = begun.pop()
        here = fabric.links[path[-1]]
        if here.destination in fabric.host_index:
            yield Walk(path, hops, hops[-1])
            continue
        arrived = hops[-1].packet if hops else packet
        for outcome in switches[here.destination].outcomes(arrived, here.destination_port, down[here.destination]):
            if isinstance(outcome, Left):
                begun.append(((*path, link_at[here.destination, outcome.port].index), (*hops, outcome)))
            else:
                yield Walk(path, hops, outcome)


def _possible(group: Group, down: Set[int]) -> Iterator[Forward]:
    """The buckets that a group may choose."""
    alive = [bucket for bucket in group.buckets if bucket.port not in down]
    match group.kind:
        case GroupType.INDIRECT:
            (bucket,) = group.buckets
            yield bucket
        case GroupType.FAST_FAILOVER:
            yield from alive[:1]
        case GroupType.SELECT:
            yield from dict.fromkeys(alive)


def _forwarded(action: Forward, packet: Packet, queue: int, ingress_port: int, down: Set[int]) -> Outcome:
    if packet.time_to_live <= 1 or action.port == ingress_port or action.port in down:
        return Dropped(None)
    changed = replace(
        packet,
        time_to_live=packet.time_to_live - 1,
        source_mac=action.source_mac,
        destination_mac=action.destination_mac,
    )
    return Left(action.port, queue, changed)


def _matches(match: Match, packet: Packet) -> bool:
    source_port, destination_port = packet.ports
    exact = (
        (match.ether_type, packet.ether_type),
        (match.dscp, packet.dscp),
        (match.protocol, packet.protocol),
        (match.source_port, source_port),
        (match.destination_port, destination_port),
    )
    prefixes = (match.source, packet.source), (match.destination, packet.destination)
    return all(wanted is None or wanted == field for wanted, field in exact) and all(
        prefix is None or address in prefix for prefix, address in prefixes
    )
