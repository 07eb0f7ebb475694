"""Entries that the program on v1model and the one on Tofino can both be given, and how they are written to each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from emulator.entries import ActionCall, EntryAction, EntryKey, FieldMatch, GroupReference, MemberReference
from emulator.meters import MeterMemory, MeterRates
from tests.p4src.tna.program import RunningProgram
from topologies.addressing import FiveTuple

OWN_HASH_NUMBER = 1
"""What both programs have for multiplier and salt where nobody writes them."""

WINDOW_OF_1024 = 10
"""Tofino counts windows of 2^n times 1,024 units of its clock, v1model of 2^n units."""

SLOT_BITS = 10


@dataclass(frozen=True, slots=True)
class NextHop:
    """A neighbour: the port to it, and the addresses that frames to it bear."""

    port: int
    source_mac: int
    destination_mac: int


@dataclass(frozen=True, slots=True)
class Prefix:
    """Destinations whose first bits are those of an address."""

    address: int
    length: int

    @property
    def mask(self) -> int:
        """The bits that count."""
        return (1 << self.length) - 1 << 32 - self.length


@dataclass(frozen=True, slots=True)
class FlowChoice:
    """What an entry of a flow decides; None leaves it open. One of the two is decided."""

    next_hop: int | None
    level: int | None

    @property
    def call(self) -> ActionCall:
        """Both programs' action."""
        if self.next_hop is None:
            return ActionCall("ingress.prioritise", (self.level or 0,))
        if self.level is None:
            return ActionCall("ingress.steer", (self.next_hop,))
        return ActionCall("ingress.steer_and_prioritise", (self.next_hop, self.level))


@dataclass(frozen=True, slots=True)
class Job:
    """A job's packets, by (value, mask) of source, destination, protocol and destination port."""

    match: tuple[tuple[int, int], ...]
    priority: int
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """What a controller writes. A route leads to a next hop or to a group; a default that is None is the program's."""

    next_hops: Mapping[int, NextHop]
    routes: Mapping[Prefix, tuple[int, ...]]
    flows: Mapping[FiveTuple, FlowChoice]
    jobs: tuple[Job, ...]
    levels: Mapping[int, int]
    port_trust: Mapping[int, bool]
    trusts_ports: bool
    classes: Mapping[int, int]
    mark_from: Mapping[int, int]
    mark_from_default: int | None
    mtu_bytes: Mapping[int, int]
    mtu_default_bytes: int | None
    packet_in_bursts: Mapping[int, int]
    node_id: int | None
    hash_multiplier: int
    hash_salt: int
    slot_mask: int
    window_exponent: int

    def route(self, destination: int) -> tuple[int, ...]:
        """Next hops of the longest prefix of a destination, none where there is no route."""
        found = [prefix for prefix in self.routes if destination & prefix.mask == prefix.address]
        return self.routes[max(found, key=lambda prefix: prefix.length)] if found else ()


Row = tuple[str, tuple[tuple[int, int], ...], ActionCall, int]


def _rows(entries: Entries) -> Iterator[Row]:
    """Entries that are the same for both programs: table, (value, mask) by field, action, priority."""
    for hop, found in entries.next_hops.items():
        arguments = found.port, found.source_mac, found.destination_mac
        yield "ingress.next_hop", _exact((hop, 16)), ActionCall("ingress.forward", arguments), 0
    for five_tuple, choice in entries.flows.items():
        yield "ingress.flow", flow_match(five_tuple), choice.call, 0
    for job in entries.jobs:
        yield "ingress.job", job.match, ActionCall("ingress.prioritise_job", (job.level,)), job.priority
    for dscp, level in entries.levels.items():
        yield "ingress.level", _exact((dscp, 6)), ActionCall("ingress.set_level", (level,)), 0
    for port, is_trusted in entries.port_trust.items():
        yield "ingress.port", _exact((port, 9)), ActionCall(f"ingress.{'trust' if is_trusted else 'distrust'}"), 0
    for level, number in entries.classes.items():
        yield "ingress.traffic_class", _exact((level, 3)), ActionCall("ingress.set_class", (number,)), 0
    for port, depth in entries.mark_from.items():
        yield "egress.ecn", _exact((port, 9)), ActionCall("egress.mark_from", (depth,)), 0
    for port, num_bytes in entries.mtu_bytes.items():
        yield "egress.mtu", _exact((port, 9)), ActionCall("egress.set_mtu", (num_bytes,)), 0


def _defaults(entries: Entries) -> dict[str, ActionCall]:
    """Default actions that are the same for both."""
    calls = {"ingress.port": ActionCall("ingress.trust" if entries.trusts_ports else "ingress.distrust")}
    numbers = {
        ("egress.ecn", "egress.mark_from"): entries.mark_from_default,
        ("egress.mtu", "egress.set_mtu"): entries.mtu_default_bytes,
        ("egress.node_id", "egress.set_node_id"): entries.node_id,
    }
    return calls | {table: ActionCall(name, (given,)) for (table, name), given in numbers.items() if given is not None}


def _exact(*fields: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple((value, (1 << bits) - 1) for value, bits in fields)


def flow_match(flow: FiveTuple) -> tuple[tuple[int, int], ...]:
    """The key of a flow's entry, (value, mask) by field."""
    return _exact(
        (flow.source_address, 32),
        (flow.destination_address, 32),
        (flow.protocol, 8),
        (flow.source_port, 16),
        (flow.destination_port, 16),
    )


class V1modelControl(Protocol):
    """What entries are written by: the emulator's switch has it, and the plain interpreter in a wrapping."""

    def insert(self, table: str, key: EntryKey, action: EntryAction) -> None: ...
    def set_default(self, table: str, action: ActionCall | None) -> None: ...
    def insert_member(self, profile: str, member_id: int, action: ActionCall) -> None: ...
    def insert_group(self, profile: str, group_id: int, member_ids: tuple[int, ...], max_size: int) -> None: ...
    def meter(self, name: str) -> MeterMemory: ...


def write_to_v1model(entries: Entries, switch: V1modelControl) -> None:
    """Give a switch all entries; it must have none."""
    for table, match, call, priority in _rows(entries):
        switch.insert(table, v1model_key(match, priority), call)
    for table, call in _defaults(entries).items():
        switch.set_default(table, call)
    exponent = entries.window_exponent + WINDOW_OF_1024
    switch.set_default("egress.utilisation_window", ActionCall("egress.set_window", (exponent,)))
    if entries.hash_multiplier != OWN_HASH_NUMBER:
        switch.set_default("ingress.node", ActionCall("ingress.set_node", (entries.hash_multiplier,)))
    for hop in {hop for hops in entries.routes.values() for hop in hops}:
        switch.insert_member("ingress.ecmp", hop, ActionCall("ingress.set_next_hop", (hop,)))
    for number, (prefix, hops) in enumerate(entries.routes.items(), 1):
        target: EntryAction = MemberReference(hops[0])
        if len(hops) > 1:
            switch.insert_group("ingress.ecmp", number, hops, 0)
            target = GroupReference(number)
        switch.insert("ingress.routing", v1model_key(((prefix.address, prefix.mask),)), target)
    for port, burst in entries.packet_in_bursts.items():
        switch.meter("ingress.packet_in_meter").set(port, MeterRates(0, 0, 0, burst))


def v1model_key(match: tuple[tuple[int, int], ...], priority: int = 0) -> EntryKey:
    """The emulator's name for an entry."""
    return EntryKey(tuple(FieldMatch(value, mask) for value, mask in match), priority)


def write_to_tofino(entries: Entries, program: RunningProgram) -> dict[tuple[str, EntryKey], list[int]]:
    """Give a running program all entries; the cells that count packets and bytes of its flows and jobs."""
    tables = program.tables
    counted: dict[tuple[str, EntryKey], list[int]] = {}
    for table, match, call, priority in _rows(entries):
        row = tables[table].insert(match, call.action, call.arguments, priority)
        counted[table, v1model_key(match, priority)] = row.counted
    for table, call in _defaults(entries).items():
        tables[table].set_default(call.action, call.arguments)
    tables["egress.utilisation_window"].set_default("egress.set_window", (entries.window_exponent,))
    if entries.hash_salt != OWN_HASH_NUMBER:
        tables["ingress.node"].set_default("ingress.set_node", (entries.hash_salt,))
    for group, (prefix, hops) in enumerate(entries.routes.items()):
        match = ((prefix.address, prefix.mask),)
        if len(hops) == 1:
            tables["ingress.routing"].insert(match, "ingress.set_next_hop", hops)
            continue
        tables["ingress.routing"].insert(match, "ingress.set_ecmp_group", (group, entries.slot_mask))
        for slot in range(entries.slot_mask + 1):
            key = _exact((group, 8), (slot, SLOT_BITS))
            tables["ingress.ecmp"].insert(key, "ingress.set_next_hop", (hops[slot % len(hops)],))
    for port, burst in entries.packet_in_bursts.items():
        program.objects["ingress.packet_in_meter"].burst_packets[port] = burst
    return counted
