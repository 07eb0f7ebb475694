"""The compiled program does to every packet what a plain interpreter of the same JSON does."""

from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.entries import (
    ActionCall,
    CounterValue,
    EntryAction,
    EntryKey,
    FieldMatch,
    GroupReference,
    MemberReference,
)
from tests.emulator.fabrics import exact, flow_key, prefix, routing_of
from tests.emulator.interpreter import Interpreter
from tests.emulator.lone_switch import LoneSwitch
from tests.emulator.packets import ETHERNET, IPV4_TYPE, ipv4_packet
from tests.emulator.programs import trainyard, trainyard_json
from tests.topologies.builders import TESTBED
from topologies.addressing import FIRST_SOURCE_PORT, LAST_SOURCE_PORT, UDP_PROTOCOL, FiveTuple
from topologies.ecmp import flow_hash
from topologies.routing import Routing

DOCUMENT = trainyard_json()
FLOW, LEVEL, ROUTING, NEXT_HOP = "ingress.flow", "ingress.level", "ingress.routing", "ingress.next_hop"
ECMP, NODE, COUNTER = "ingress.ecmp", "ingress.node", "egress.level_counter"

addresses = st.sampled_from([0x0A000001, 0x0A000002, 0x0A000101, 0x0A008001, 0xFFFFFFFF, 0]) | st.integers(0, 2**32 - 1)
ports = st.sampled_from([0, 4791, 49152]) | st.integers(0, 2**16 - 1)
protocols = st.sampled_from([6, 17, 6, 17, 1, 255])
next_hops = st.integers(0, 3)
levels = st.integers(0, 7)
depths = st.integers(0, 200)
five_tuples = st.builds(FiveTuple, addresses, addresses, protocols, ports, ports)


@dataclass(frozen=True)
class Configuration:
    """What a switch holds."""

    multiplier: int
    entries: dict[str, dict[EntryKey, EntryAction]]
    members: dict[int, ActionCall] = field(default_factory=dict)
    groups: dict[int, tuple[int, ...]] = field(default_factory=dict)


flow_actions = (
    st.builds(lambda hop: ActionCall("ingress.steer", (hop,)), next_hops)
    | st.builds(lambda level: ActionCall("ingress.prioritise", (level,)), levels)
    | st.builds(lambda hop, level: ActionCall("ingress.steer_and_prioritise", (hop, level)), next_hops, levels)
)
macs = st.integers(0, 2**48 - 1)
forwards = st.builds(lambda *arguments: ActionCall("ingress.forward", arguments), st.integers(0, 511), macs, macs)


@st.composite
def configurations(draw: st.DrawFn, flows: list[FiveTuple]) -> Configuration:
    """Tables in which the packets of ``flows`` find something."""
    destinations = st.sampled_from([flow.destination_address for flow in flows])
    members = draw(st.dictionaries(st.integers(1, 6), next_hops, min_size=1))
    member_ids = st.sampled_from(sorted(members))
    groups = draw(st.dictionaries(st.integers(1, 3), st.lists(member_ids, max_size=7).map(tuple), min_size=1))
    references = member_ids.map(MemberReference) | st.sampled_from(sorted(groups)).map(GroupReference)
    lengths = st.sampled_from([0, 8, 24, 31, 32]) | st.integers(0, 32)
    return Configuration(
        draw(st.integers(0, 2**32 - 1)),
        {
            FLOW: draw(st.dictionaries(st.sampled_from(flows).map(flow_key), flow_actions)),
            LEVEL: draw(
                st.dictionaries(
                    st.integers(0, 63).map(lambda dscp: exact((dscp, 6))),
                    levels.map(lambda level: ActionCall("ingress.set_level", (level,))),
                )
            ),
            ROUTING: draw(st.dictionaries(st.builds(prefix, destinations, lengths), references, min_size=1)),
            NEXT_HOP: draw(st.dictionaries(next_hops.map(lambda hop: exact((hop, 16))), forwards, min_size=2)),
        },
        {number: ActionCall("ingress.set_next_hop", (hop,)) for number, hop in members.items()},
        groups,
    )


class Oddity(Enum):
    """What is special about a packet."""

    RANDOM = auto()
    NOT_IPV4 = auto()
    TIME_TO_LIVE = auto()
    FRAGMENT = auto()
    OPTIONS = auto()
    CHECKSUM = auto()
    BIT = auto()
    CUT = auto()


@st.composite
def packets(draw: st.DrawFn, flows: list[FiveTuple]) -> bytes:
    """Packets of these flows, half of them odd."""
    oddity = draw(st.none() | st.sampled_from(Oddity))
    if oddity is Oddity.RANDOM:
        return draw(st.sampled_from([b"", ETHERNET + IPV4_TYPE])) + draw(st.binary(max_size=60))
    packet = ipv4_packet(
        draw(st.sampled_from(flows)),
        time_to_live=draw(st.integers(0, 2)) if oddity is Oddity.TIME_TO_LIVE else 64,
        dscp=draw(st.integers(0, 63)),
        ecn=draw(st.integers(0, 3)),
        identification=draw(st.integers(0, 2**16 - 1)),
        fragment=draw(st.sampled_from([0x4000, 0x2000, 0x8000, 1, 0x1FFF])) if oddity is Oddity.FRAGMENT else 0,
        options=draw(st.sampled_from([b"\x01\x01\x01\x00", bytes(40)])) if oddity is Oddity.OPTIONS else b"",
        checksum_error=draw(st.sampled_from([1, 0x100, 0xFFFF])) if oddity is Oddity.CHECKSUM else 0,
        payload=draw(st.binary(max_size=12)),
    )
    if oddity is Oddity.NOT_IPV4:
        return packet[:12] + draw(st.binary(min_size=2, max_size=2)) + packet[14:]
    if oddity is Oddity.BIT:
        at, bit = draw(st.integers(0, len(packet) - 1)), draw(st.integers(0, 7))
        return packet[:at] + bytes([packet[at] ^ 1 << bit]) + packet[at + 1 :]
    return packet[: draw(st.integers(0, len(packet)))] if oddity is Oddity.CUT else packet


@st.composite
def scenarios(draw: st.DrawFn) -> tuple[Configuration, list[bytes]]:
    """A switch's tables and packets that come to it."""
    flows = draw(st.lists(five_tuples, min_size=1, max_size=4))
    return draw(configurations(flows)), draw(st.lists(packets(flows), min_size=4, max_size=12))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(scenarios(), depths, depths)
def test_compiled_program_and_interpreter_do_the_same(
    scenario: tuple[Configuration, list[bytes]], depth_then: int, depth_now: int
) -> None:
    configuration, octets = scenario
    switch, reference = LoneSwitch(trainyard()), Interpreter(DOCUMENT)
    configure(switch, configuration)
    reference.entries |= configuration.entries
    reference.members, reference.groups = configuration.members, configuration.groups
    reference.defaults[NODE] = ActionCall("ingress.set_node", (configuration.multiplier,))
    for packet in octets:
        arguments = packet, 1, (depth_then, depth_now)
        assert switch.process(*arguments) == reference.process(*arguments)
    counted = {
        (FLOW, key): [value.packets, value.bytes]
        for key in configuration.entries[FLOW]
        if (value := switch.control.direct_counter(FLOW, key)).packets
    }
    assert counted == reference.direct_counters
    cells = {
        (array["name"], index): switch.control.counter(array["name"], index)
        for array in DOCUMENT["counter_arrays"]
        if not array["is_direct"]
        for index in range(array["size"])
    }
    assert {cell: [value.packets, value.bytes] for cell, value in cells.items() if value != CounterValue(0, 0)} == (
        reference.counters
    )


def test_interpreter_forwards_what_the_program_says() -> None:
    """The interpreter itself, on a packet whose fate is known byte by byte."""
    flow = FiveTuple(0x0A000001, 0x0A000101, UDP_PROTOCOL, 49152, 4791)
    reference = Interpreter(DOCUMENT)
    reference.entries[FLOW][flow_key(flow)] = ActionCall("ingress.steer_and_prioritise", (3, 5))
    reference.entries[NEXT_HOP][exact((3, 16))] = ActionCall("ingress.forward", (9, 0xA, 0xB))
    sent = reference.process(ipv4_packet(flow, time_to_live=64, dscp=0b001_010, ecn=1, payload=b"data"))
    assert sent is not None
    assert (sent.port, sent.level) == (9, 5)
    expected = ipv4_packet(flow, time_to_live=63, dscp=0b101_010, ecn=1, payload=b"data")
    assert sent.octets == (0xB).to_bytes(6, "big") + (0xA).to_bytes(6, "big") + expected[12:]
    assert reference.direct_counters == {(FLOW, flow_key(flow)): [1, len(expected)]}
    assert reference.counters == {(COUNTER, 9 * 8 + 5): [1, len(expected)]}
    assert reference.process(ipv4_packet(flow, time_to_live=1)) is None


def configure(switch: LoneSwitch, configuration: Configuration) -> None:
    """Write a configuration into an empty switch."""
    control = switch.control
    control.set_default(NODE, ActionCall("ingress.set_node", (configuration.multiplier,)))
    for member_id, action in configuration.members.items():
        control.insert_member(ECMP, member_id, action)
    for group_id, member_ids in configuration.groups.items():
        control.insert_group(ECMP, group_id, member_ids, max_size=0)
    for table, entries in configuration.entries.items():
        for key, call in entries.items():
            control.insert(table, key, call)


@cache
def hashing_switch(group_size: int) -> LoneSwitch:
    """A switch with one group for everything, whose member n leads to port n."""
    switch = LoneSwitch(trainyard())
    routes: dict[EntryKey, EntryAction] = {EntryKey((FieldMatch(0, 0),)): GroupReference(1)}
    hops: dict[EntryKey, EntryAction] = {
        exact((port, 16)): ActionCall("ingress.forward", (port, 0, 0)) for port in range(1, group_size + 1)
    }
    members = {port: ActionCall("ingress.set_next_hop", (port,)) for port in range(1, group_size + 1)}
    entries = {ROUTING: routes, NEXT_HOP: hops}
    configure(switch, Configuration(1, entries, members, {1: tuple(members)}))
    return switch


@settings(max_examples=200, deadline=None)
@given(
    st.builds(FiveTuple, addresses, addresses, st.sampled_from([6, 17]), ports, ports),
    st.integers(0, 2**32 - 1),
    st.sampled_from([2, 3, 16, 256]),
)
def test_group_member_is_that_of_the_fabric_hash(flow: FiveTuple, multiplier: int, size: int) -> None:
    switch = hashing_switch(size)
    switch.control.set_default(NODE, ActionCall("ingress.set_node", (multiplier,)))
    sent = switch.process(ipv4_packet(flow))
    assert sent is not None
    assert sent.port == 1 + flow_hash(flow, multiplier) % size


def test_source_ports_reach_every_path_of_the_testbed() -> None:
    routing: Routing = routing_of(TESTBED)
    for destination_host in ("h2", "h11"):
        source, destination = TESTBED.nics["h0"][0], TESTBED.nics[destination_host][3]
        missing = set(routing.candidate_paths(source, destination))
        assert len(missing) == 32
        for port in range(FIRST_SOURCE_PORT, LAST_SOURCE_PORT + 1):
            flow = FiveTuple(source.address, destination.address, UDP_PROTOCOL, port, 4791)
            missing.discard(routing.hashed_path(flow))
            if not missing:
                break
        assert not missing
