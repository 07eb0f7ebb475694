"""What a switch holds for us: flow entries in a few tables and groups, as typed values without a wire format.

A packet goes through the tables in order::

    ADMISSION ─► LEVEL: the queue of its DSCP ─► RULES: its flow's or job's level and next hop ─► ROUTING: its next hops

Every value is hashable, and two of them that do the same are equal: a difference needs nothing else.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple

from topologies.addressing import MacAddress, Prefix


class Table(IntEnum):
    """The tables of the pipeline, by number."""

    ADMISSION = 0
    """IPv4 goes on, ARP and LLDP go to the controller, all else is dropped."""
    LEVEL = 1
    """A packet waits in the queue that its DSCP names, unless RULES says otherwise."""
    RULES = 2
    """The Plan's decisions, for flows and for the traffic of whole jobs."""
    ROUTING = 3
    """The longest prefix of the destination chooses the next hops."""


@dataclass(frozen=True, slots=True)
class SetDscp:
    """Mark packets with a DSCP."""

    dscp: int


@dataclass(frozen=True, slots=True)
class SetQueue:
    """Have packets wait in this queue of the port by which they leave; Open vSwitch's userspace datapath does not."""

    queue: int


@dataclass(frozen=True, slots=True)
class Forward:
    """Route packets out of a port: decrement their TTL and exchange their MACs."""

    port: int
    source_mac: MacAddress
    destination_mac: MacAddress


@dataclass(frozen=True, slots=True)
class ToGroup:
    """Have a group decide."""

    group_id: int


@dataclass(frozen=True, slots=True)
class ToController:
    """Hand up to so many bytes of packets to the controller."""

    most_bytes: int


Action = SetDscp | SetQueue | Forward | ToGroup | ToController


class Match(NamedTuple):
    """The packets of a flow entry; None where a field does not matter.

    ``ether_type`` is needed for the fields after it, and ``protocol`` (TCP or UDP) for ports.
    """

    ether_type: int | None = None
    dscp: int | None = None
    source: Prefix | None = None
    destination: Prefix | None = None
    protocol: int | None = None
    source_port: int | None = None
    destination_port: int | None = None


class FlowKey(NamedTuple):
    """The identity of a flow entry."""

    table: Table
    priority: int
    match: Match


@dataclass(frozen=True, slots=True)
class FlowEntry:
    """A flow entry: what happens to packets, in this order, and the table where they go on, if they do."""

    key: FlowKey
    actions: tuple[Action, ...] = ()
    goto: Table | None = None


class GroupType(StrEnum):
    """How a group chooses among its buckets."""

    INDIRECT = "indirect"
    """It has one."""
    SELECT = "select"
    """By a hash of the packet's 5-tuple, among those whose port is up."""
    FAST_FAILOVER = "fast failover"
    """The first one whose port is up."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group whose buckets each forward out of a port, and watch it if there are others to choose from.

    ``hash_basis`` makes the choices of a SELECT group independent of those of other switches.
    """

    group_id: int
    kind: GroupType
    buckets: tuple[Forward, ...]
    hash_basis: int = 0


Entry = FlowEntry | Group
