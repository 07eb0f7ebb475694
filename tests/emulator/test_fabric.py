"""Single packets: the way they take, what they look like at its end, and why they are dropped."""

from collections.abc import Callable

import pytest

from emulator.engine.events import END_PS
from emulator.engine.state import OCTETS
from emulator.entries import ActionCall, CounterValue, GroupReference
from emulator.fabric import EmulatedFabric
from emulator.observations import Capture
from emulator.ports import CPU_PORT
from tests.emulator.fabrics import (
    advance,
    dumbbell,
    emulated,
    exact,
    five_tuple,
    flow_key,
    prefix,
    prioritise,
    routing_of,
    star,
)
from tests.emulator.packets import ipv4_packet
from tests.emulator.programs import trainyard
from tests.emulator.single_packets import LATER_PS, drops, links_up, send, uplink
from topologies.addressing import FiveTuple, switch_mac
from topologies.specification import ClosSpecification


def test_injected_packet_goes_through_the_switches_to_its_nic() -> None:
    result = emulated(dumbbell(2))
    fabric = result.fabric
    connection = five_tuple(fabric, "h1", "h3")
    (capture,) = send(result, "h1", ipv4_packet(connection, time_to_live=64, dscp=0b010_000, payload=b"payload"))
    nic = fabric.nics["h3"][0]
    last_hop = fabric.links[fabric.reverse(nic.link)]
    assert capture.link == last_hop.index
    source_mac = switch_mac(fabric.switch_index["t1"], last_hop.source_port)
    expected = ipv4_packet(connection, time_to_live=62, dscp=0b010_000, payload=b"payload")
    assert capture.octets == nic.mac.to_bytes(6, "big") + source_mac.to_bytes(6, "big") + expected[12:]
    assert capture.length == len(expected)
    ps_per_byte = result.ps_per_byte
    (bottleneck,) = [link.index for link in fabric.links if (link.source, link.destination) == ("t0", "t1")]
    on_the_wire_ps = sum(len(expected) * ps_per_byte[link] + 1_000_000 for link in (bottleneck, last_hop.index))
    assert capture.time_ps == pytest.approx(on_the_wire_ps, abs=2)
    assert result.packet_hops == 2
    assert result.captured() == ()


def test_level_of_an_injected_packet_is_counted_where_it_leaves() -> None:
    result = emulated(dumbbell(1))
    connection = five_tuple(result.fabric, "h0", "h1")
    packet = ipv4_packet(connection)
    prioritise(result, connection, 4)
    (capture,) = send(result, "h0", packet)
    assert capture.octets[15] >> 2 == 4 << 3
    for switch in result.switches.values():
        counted = [switch.counter("egress.level_counter", index) for index in range(4096)]
        assert sum(value.packets for value in counted) == 1
        assert CounterValue(1, len(packet)) in counted[4::8]
    assert result.switches["t0"].direct_counter("ingress.flow", flow_key(connection)) == CounterValue(1, len(packet))


def test_bytes_beyond_those_given_are_zeros() -> None:
    result = emulated(star(2))
    packet = ipv4_packet(five_tuple(result.fabric, "h0", "h1"))
    (capture,) = send(result, "h0", packet, length=1500)
    assert capture.length == 1500
    assert capture.octets[26 : len(packet)] == packet[26:]
    assert not any(capture.octets[len(packet) :])
    to_receiver = result.fabric.reverse(uplink(result.fabric, "h1"))
    assert result.sent_bytes()[to_receiver].tolist() == [1500] + [0] * 7


def test_header_that_is_not_given_whole_is_kept_as_the_program_rewrites_it() -> None:
    """Addresses of zeros, left out; the packet takes the default route and has a new checksum behind them."""
    result = emulated(star(2))
    port = result.fabric.links[uplink(result.fabric, "h1")].destination_port
    result.switches["s"].insert_member("ingress.ecmp", 100, ActionCall("ingress.set_next_hop", (port,)))
    result.switches["s"].insert_group("ingress.ecmp", 100, (100,), max_size=1)
    result.switches["s"].insert("ingress.routing", prefix(0, 0), GroupReference(100))
    whole = ipv4_packet(FiveTuple(0, 0, 0, 0, 0), time_to_live=64)
    (expected,) = send(result, "h0", whole, length=100)
    (capture,) = send(result, "h0", whole[:26], length=100)
    assert capture.octets.ljust(100, b"\0") == expected.octets.ljust(100, b"\0")


def test_packet_with_more_bytes_than_are_kept_or_than_it_has_is_refused() -> None:
    result = emulated(star(2))
    with pytest.raises(ValueError, match=f"a packet of 2000 bytes keeps {OCTETS}, not {OCTETS + 1}"):
        result.inject(0, bytes(OCTETS + 1), length=2000)
    with pytest.raises(ValueError, match="a packet of 10 bytes keeps 10, not 11"):
        result.inject(0, bytes(11), length=10)
    result.run(LATER_PS)
    assert result.captured() == ()


def test_clock_that_ends_says_so_and_stands() -> None:
    result = emulated(star(2))
    result.run(END_PS - LATER_PS)
    (capture,) = send(result, "h0", ipv4_packet(five_tuple(result.fabric, "h0", "h1")))
    assert END_PS - LATER_PS < capture.time_ps < END_PS
    assert result.run(END_PS) == ()
    with pytest.raises(ValueError, match=rf"clock ends at {END_PS} ps \(26.7 days\)"):
        result.run(END_PS + 1)
    assert result.now_ps == END_PS


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda result: result.inject(-1, b"x"), "there is no link -1"),
        (lambda result: result.inject(4, b"x"), "there is no link 4; links are numbered from 0, and there are 4"),
        (lambda result: result.inject(10**7, b"x"), "there is no link 10000000"),
        (lambda result: result.set_link(-1, up=False), "there is no link -1"),
        (lambda result: result.set_link(9999, up=False), "there is no link 9999"),
        (lambda result: result.is_up(4), "there is no link 4"),
        (lambda result: result.set_port("nope", 1, enabled=False), "there is no switch 'nope'"),
        (lambda result: result.set_port("s", 9, enabled=False), "switch 's' has no port 9"),
        (lambda result: result.set_switch("nope", up=False), "there is no switch 'nope'"),
        (lambda result: result.packet_out("h0", b"x"), "there is no switch 'h0'"),
        (lambda result: result.drops("nope"), "there is no switch 'nope'"),
        (lambda result: result.set_flow_level(-1, 3), "there is no flow -1"),
        (lambda result: result.set_flow_level(1, 3), "there is no flow 1; flows are numbered from 0, and there are 1"),
        (lambda result: result.set_flow_level(0, 8), "flow 0: the level must be within 0 to 7, not 8"),
        (lambda result: result.set_flow_level(0, -1), "flow 0: the level must be within 0 to 7, not -1"),
        (lambda result: result.start_transfer(1, 1000), "there is no flow 1"),
        (lambda result: result.retransmissions(-1), "there is no flow -1"),
    ],
)
def test_what_is_not_there_is_refused_by_name_and_the_fabric_forwards_on(
    call: Callable[[EmulatedFabric], None], words: str
) -> None:
    result = emulated(star(2))
    flow = result.add_flow(five_tuple(result.fabric, "h0", "h1"))
    with pytest.raises(ValueError, match=words):
        call(result)
    assert links_up(result) == {("h0", "s"), ("s", "h0"), ("h1", "s"), ("s", "h1")}
    result.start_transfer(flow, 10_000)
    assert [completion.flow for completion in advance(result, LATER_PS)] == [flow]
    assert result.captured() == ()


def test_packet_injected_at_a_hosts_end_is_captured_as_it_is() -> None:
    result = emulated(star(2))
    link = result.fabric.reverse(uplink(result.fabric, "h1"))
    result.run(5)
    result.inject(link, b"whatever")
    result.run(LATER_PS)
    assert result.captured() == (Capture(link, 5, b"whatever", 8),)
    assert result.packet_hops == 0


def drops_after(result: EmulatedFabric, packet: bytes) -> dict[str, dict[str, int]]:
    """What the switches have dropped when h0 has sent a packet that nobody gets."""
    assert send(result, "h0", packet) == ()
    return {name: drops(result, name) for name in result.switches}


@pytest.mark.parametrize(("time_to_live", "where"), [(0, "t0"), (1, "t0"), (2, "t1")])
def test_packet_without_time_to_live_is_dropped_where_it_ends(time_to_live: int, where: str) -> None:
    result = emulated(dumbbell(1))
    packet = ipv4_packet(five_tuple(result.fabric, "h0", "h1"), time_to_live=time_to_live)
    assert drops_after(result, packet) == {"t0": {}, "t1": {}} | {where: {"by_program": 1}}


@pytest.mark.parametrize(
    "packet",
    [
        b"",
        bytes(60),
        ipv4_packet(FiveTuple(1, 0x0B000001, 17, 1, 1)),
        ipv4_packet(FiveTuple(1, 0x0A000001, 17, 1, 1), checksum_error=1),
        ipv4_packet(FiveTuple(1, 0x0A000001, 17, 1, 1))[:33],
    ],
    ids=["empty", "not IP", "unknown destination", "bad checksum", "cut off"],
)
def test_packet_that_the_program_does_not_forward(packet: bytes) -> None:
    result = emulated(dumbbell(1))
    assert drops_after(result, packet) == {"t0": {"by_program": 1}, "t1": {}}


def test_switch_without_a_pipeline_drops_everything_until_it_has_one() -> None:
    fabric = star(2)
    result = EmulatedFabric(fabric, trainyard())
    packet = ipv4_packet(five_tuple(fabric, "h0", "h1"))
    assert drops_after(result, packet) == {"s": {"no_pipeline": 1}}
    result.switches["s"].clear()
    assert drops_after(result, packet) == {"s": {"by_program": 1, "no_pipeline": 1}}


def test_port_without_a_cable() -> None:
    result = emulated(star(2))
    connection = five_tuple(result.fabric, "h0", "h1")
    switch = result.switches["s"]
    switch.insert("ingress.next_hop", exact((77, 16)), ActionCall("ingress.forward", (77, 0, 0)))
    switch.insert("ingress.flow", flow_key(connection), ActionCall("ingress.steer", (77,)))
    assert drops_after(result, ipv4_packet(connection)) == {"s": {"no_such_port": 1}}


def test_full_queue_drops_what_does_not_fit_and_the_others_pass() -> None:
    result = emulated(star(2), queue_limit_bytes=10_000)
    packet = ipv4_packet(five_tuple(result.fabric, "h0", "h1"))
    urgent = ipv4_packet(five_tuple(result.fabric, "h0", "h1"), dscp=56)
    # All arrive in the same moment, so the first is on the link already and ten fill the queue.
    for _ in range(20):
        result.inject(uplink(result.fabric, "h0"), packet, length=1000)
    result.inject(uplink(result.fabric, "h0"), urgent, length=1000)
    result.run(LATER_PS)
    captured = result.captured()
    assert drops(result, "s") == {"queue_full": 9}
    assert len(captured) == 12
    assert sum(capture.octets[15] == 56 << 2 for capture in captured) == 1


def test_thousands_of_packets_at_once_all_arrive() -> None:
    """More packets, events and captures than there is room for at first."""
    result = emulated(star(3))
    packets = [ipv4_packet(five_tuple(result.fabric, "h0", f"h{1 + number % 2}", number)) for number in range(9000)]
    for packet in packets:
        result.inject(uplink(result.fabric, "h0"), packet)
    result.run(LATER_PS)
    captured = result.captured()
    assert sorted(capture.octets[34:36] for capture in captured) == [
        number.to_bytes(2, "big") for number in range(9000)
    ]
    for host in ("h1", "h2"):
        link = result.fabric.reverse(uplink(result.fabric, host))
        assert sum(capture.link == link for capture in captured) == 4500


def test_packets_spread_over_parallel_links_by_the_fabric_hash() -> None:
    fabric = ClosSpecification(
        kind="clos", tors=2, aggs=2, hosts_per_tor=1, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=2
    ).build()
    result, routing = emulated(fabric), routing_of(fabric)
    connections = [five_tuple(fabric, "h0", "h1", source_port=49152 + number) for number in range(64)]
    expected = [0] * len(fabric.links)
    for connection in connections:
        for link in routing.hashed_path(connection)[1:]:
            expected[link] += 100
        assert len(send(result, "h0", ipv4_packet(connection), length=100)) == 1
    assert result.sent_bytes().sum(axis=1).tolist() == expected


def test_packet_out_goes_through_the_pipeline_and_the_cpu_port_leads_to_the_control_plane() -> None:
    result = emulated(star(2))
    connection = five_tuple(result.fabric, "h0", "h1")
    switch, packet = result.switches["s"], ipv4_packet(connection)
    to_second_port = (2 << 7).to_bytes(2, "big")
    result.packet_out("s", to_second_port + packet)
    result.run(LATER_PS)
    (capture,) = result.captured()
    assert capture.octets == packet
    switch.insert("ingress.next_hop", exact((600, 16)), ActionCall("ingress.forward", (CPU_PORT, 1, 2)))
    switch.insert("ingress.flow", flow_key(connection), ActionCall("ingress.steer", (600,)))
    assert send(result, "h0", packet, length=70) == ()
    (packet_in,) = result.packets_in()
    assert packet_in.switch == "s"
    assert packet_in.time_ps == LATER_PS
    assert packet_in.octets[26:] == packet[26:] + bytes(70 - len(packet))
    assert result.packets_in() == ()
    assert drops(result, "s") == {}


def test_more_starts_at_once_than_the_calendar_has_room_for_all_happen() -> None:
    """A run to the time that it is processes everything that is due, however often the engine asks for room."""
    result = emulated(star(400))
    result.run(1000)
    fabric = result.fabric
    for number in range(0, 400, 2):
        for attempt in range(19):
            flow = result.add_flow(five_tuple(fabric, f"h{number}", f"h{number + 1}", source_port=50_000 + attempt))
            result.start_transfer(flow, 4096)
    result.run(1000)
    sent = result.sent_bytes()
    assert all(sent[fabric.nics[f"h{number}"][0].link].sum() > 0 for number in range(0, 400, 2))
