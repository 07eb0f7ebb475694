"""Forwarding: what leaves, where, and what is counted for what does not."""

import struct
from dataclasses import replace
from enum import IntEnum

import pytest

from emulator.entries import ActionCall, CounterValue, EntryKey, FieldMatch
from emulator.meters import MeterRates
from emulator.ports import CPU_PORT
from tests.p4src.one_switch import HOST_MAC, SWITCH_MAC, OneSwitch, Sent
from tests.p4src.packets import Ipv4, Protocol, ethernet


class Drop(IntEnum):
    """Indexes of the drop counter, as in shared/constants.p4."""

    MALFORMED = 1
    ETHER_TYPE = 2
    CHECKSUM = 3
    TIME_TO_LIVE = 4
    NO_ROUTE = 5
    NO_NEXT_HOP = 6
    PACKET_IN = 7


PACKET = Ipv4()
ARP = ethernet(bytes(46), ether_type=0x0806)
LLDP = ethernet(
    bytes.fromhex("0207040200000000010402050106020078") + b"\x0a\x02s1" + bytes(2),
    ether_type=0x88CC,
    destination=0x01_80_C2_00_00_0E,
)


@pytest.fixture
def switch() -> OneSwitch:
    return OneSwitch()


def forwarded(packet: Ipv4, port: int = 2) -> Sent:
    """The packet as it leaves by a port where nothing but the hop itself has changed it."""
    hop = replace(
        packet,
        time_to_live=packet.time_to_live - 1,
        source_mac=SWITCH_MAC + port,
        destination_mac=HOST_MAC + port,
    )
    return Sent(port, hop.octets())


@pytest.mark.parametrize(
    "packet",
    [
        PACKET,
        replace(PACKET, protocol=Protocol.TCP),
        replace(PACKET, protocol=Protocol.ICMP),
        replace(PACKET, payload=b""),
        replace(PACKET, flags=0b010),
        replace(PACKET, flags=0b001),
        replace(PACKET, fragment_offset=185),
        *(replace(PACKET, options=bytes(range(1, 4 * words + 1))) for words in range(1, 11)),
        replace(PACKET, udp_checksum=False),
        replace(PACKET, l4_checksum_error=0x0101),
    ],
    ids=str,
)
def test_a_packet_is_readdressed_to_its_destination(switch: OneSwitch, packet: Ipv4) -> None:
    assert switch.send(1, packet.octets()) == [forwarded(packet)]


def test_options_of_an_earlier_packet_are_forgotten(switch: OneSwitch) -> None:
    for words in range(10, 0, -1):
        packet = replace(PACKET, options=bytes(range(1, 4 * words + 1)))
        assert switch.send(1, packet.octets()) == [forwarded(packet)]


@pytest.mark.parametrize("words", range(11))
def test_a_wrong_ipv4_checksum_is_dropped(switch: OneSwitch, words: int) -> None:
    packet = replace(PACKET, options=bytes(range(1, 4 * words + 1)), checksum_error=0x0100)
    assert switch.send(1, packet.octets()) == []
    assert switch.dropped() == {Drop.CHECKSUM: 1}


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (replace(PACKET, time_to_live=1).octets(), Drop.TIME_TO_LIVE),
        (replace(PACKET, time_to_live=0).octets(), Drop.TIME_TO_LIVE),
        (replace(PACKET, destination=0x0A_00_00_09).octets(), Drop.NO_ROUTE),
        (replace(PACKET, destination=0xFF_FF_FF_FF).octets(), Drop.NO_ROUTE),
        (ethernet(bytes(46), ether_type=0x86DD), Drop.ETHER_TYPE),
        (PACKET.octets()[:30], Drop.MALFORMED),
        (PACKET.octets()[:14], Drop.MALFORMED),
        (PACKET.octets()[:13], Drop.MALFORMED),
        (PACKET.octets()[:14] + b"\x65" + PACKET.octets()[15:], Drop.MALFORMED),
        (PACKET.octets()[:14] + b"\x44" + PACKET.octets()[15:], Drop.MALFORMED),
    ],
)
def test_what_cannot_be_forwarded_is_dropped_and_counted(switch: OneSwitch, frame: bytes, reason: Drop) -> None:
    assert switch.send(1, frame) == []
    assert switch.control.counter("ingress.drop_counter", reason) == CounterValue(1, len(frame))
    assert switch.dropped() == {reason: 1}


def test_a_flow_without_its_next_hop_is_dropped(switch: OneSwitch) -> None:
    switch.insert_flow(PACKET, ActionCall("ingress.steer", (77,)))
    assert switch.send(1, PACKET.octets()) == []
    assert switch.dropped() == {Drop.NO_NEXT_HOP: 1}


@pytest.mark.parametrize("cut_bytes", [34, 36, 41])
def test_a_packet_without_whole_ports_is_routed(switch: OneSwitch, cut_bytes: int) -> None:
    assert switch.send(1, PACKET.octets()[:cut_bytes]) == [Sent(2, forwarded(PACKET).octets[:cut_bytes])]


# ---- levels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dscp", range(0, 64, 2))
def test_level_and_class_come_from_dscp(switch: OneSwitch, dscp: int) -> None:
    packet = replace(PACKET, dscp=dscp)
    assert switch.send(1, packet.octets()) == [forwarded(packet)]
    assert switch.sent(2, dscp >> 3) == CounterValue(1, len(packet.octets()))


def test_an_untrusted_port_has_level_0(switch: OneSwitch) -> None:
    switch.insert("ingress.port", 1, ActionCall("ingress.distrust"))
    packet = replace(PACKET, dscp=0b101_110)
    assert switch.send(1, packet.octets()) == [forwarded(replace(packet, dscp=0b000_110))]
    assert switch.send(3, packet.octets()) == [forwarded(packet)]


@pytest.mark.parametrize(
    ("action", "port", "dscp"),
    [
        (ActionCall("ingress.steer", (3,)), 3, 0b010_100),
        (ActionCall("ingress.prioritise", (6,)), 2, 0b110_100),
        (ActionCall("ingress.steer_and_prioritise", (3, 6)), 3, 0b110_100),
    ],
)
def test_a_flow_entry_sets_way_and_level(switch: OneSwitch, action: ActionCall, port: int, dscp: int) -> None:
    packet = replace(PACKET, dscp=0b010_100)
    switch.insert("ingress.port", 3, ActionCall("ingress.distrust"))
    key = switch.insert_flow(packet, action)
    other = replace(packet, source_port=packet.source_port + 1)
    assert switch.send(1, packet.octets()) == [forwarded(replace(packet, dscp=dscp), port)]
    assert switch.send(1, other.octets()) == [forwarded(other)]
    assert switch.control.direct_counter("ingress.flow", key) == CounterValue(1, len(packet.octets()))


def job_key(packet: Ipv4) -> EntryKey:
    """All packets of the source's /24, of the protocol and to the port."""
    any_destination = FieldMatch(0, 0)
    protocol, port = FieldMatch(int(packet.protocol), 0xFF), FieldMatch(packet.destination_port, 0xFFFF)
    return EntryKey((FieldMatch(packet.source & ~0xFF, 0xFFFF_FF00), any_destination, protocol, port), priority=10)


def test_a_job_has_a_level_where_its_flows_have_no_entry(switch: OneSwitch) -> None:
    known, unknown = PACKET, replace(PACKET, source=0x0A_00_00_03)
    outside = replace(PACKET, destination_port=9)
    switch.insert_flow(known, ActionCall("ingress.prioritise", (2,)))
    switch.control.insert("ingress.job", job_key(PACKET), ActionCall("ingress.prioritise_job", (5,)))
    assert switch.send(1, known.octets()) == [forwarded(replace(known, dscp=2 << 3))]
    assert switch.send(1, unknown.octets()) == [forwarded(replace(unknown, dscp=5 << 3))]
    assert switch.send(1, outside.octets()) == [forwarded(outside)]
    assert switch.control.direct_counter("ingress.job", job_key(PACKET)) == CounterValue(1, len(unknown.octets()))


def test_fragments_have_no_ports(switch: OneSwitch) -> None:
    packet = replace(PACKET, flags=0b001)
    switch.insert_flow(packet, ActionCall("ingress.prioritise", (2,)))
    switch.insert_flow(replace(packet, source_port=0, destination_port=0), ActionCall("ingress.prioritise", (4,)))
    assert switch.send(1, packet.octets()) == [forwarded(replace(packet, dscp=4 << 3))]


def test_a_level_can_travel_as_another_class(switch: OneSwitch) -> None:
    switch.insert("ingress.traffic_class", 7, ActionCall("ingress.set_class", (5,)))
    packet = replace(PACKET, dscp=0b111_010)
    assert switch.send(1, packet.octets()) == [forwarded(replace(packet, dscp=0b101_010))]
    assert switch.sent(2, 7).packets == 1


# ---- controller ------------------------------------------------------------------------------------------------------


def packet_in(port: int, frame: bytes) -> bytes:
    """A frame as it comes to the controller."""
    return struct.pack("!H", port << 7) + frame


@pytest.mark.parametrize("frame", [ARP, LLDP, LLDP[:14]], ids=["ARP", "LLDP", "LLDP without content"])
def test_arp_and_lldp_go_to_the_controller_with_their_port(switch: OneSwitch, frame: bytes) -> None:
    assert switch.send(3, frame) == []
    assert switch.send(1, frame) == []
    assert switch.packets_in() == [packet_in(3, frame), packet_in(1, frame)]
    assert switch.sent(CPU_PORT, 7).packets == 2
    assert switch.dropped() == {}


@pytest.mark.parametrize("frame", [ARP, LLDP], ids=["ARP", "LLDP"])
def test_a_flood_for_the_controller_is_cut_to_its_ports_rate(switch: OneSwitch, frame: bytes) -> None:
    burst, flood = 5, [frame] * 20
    rates = MeterRates(committed_rate=0, committed_burst=0, peak_rate=1000, peak_burst=burst)
    switch.control.meter("ingress.packet_in_meter").set(3, rates)
    assert switch.send(3, *flood) == []
    assert switch.packets_in() == [packet_in(3, frame)] * burst
    assert switch.dropped() == {Drop.PACKET_IN: len(flood) - burst}
    # Other ports have rates of their own, or none, and what is not for the controller is not measured.
    assert switch.send(1, *flood) == []
    assert switch.packets_in() == [packet_in(1, frame)] * len(flood)
    assert switch.send(3, PACKET.octets()) == [forwarded(PACKET)]
    switch.wait(switch.now_us + 10_000)
    assert switch.send(3, frame) == []
    assert switch.packets_in() == [packet_in(3, frame)]


@pytest.mark.parametrize("frame", [PACKET.octets(), ARP, LLDP, b"short"])
def test_the_controller_sends_by_the_port_it_names(switch: OneSwitch, frame: bytes) -> None:
    assert switch.packet_out(struct.pack("!H", 3 << 7) + frame) == [Sent(3, frame)]
    assert switch.sent(3, 7).packets == 1


# ---- congestion ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ecn", "marked"), [(0, 0), (1, 3), (2, 3), (3, 3)])
def test_ecn_marks_from_a_depth_on(ecn: int, marked: int) -> None:
    switch = OneSwitch(rate_bps=1e9)
    switch.insert("egress.ecn", 2, ActionCall("egress.mark_from", (2,)))
    packet = replace(PACKET, ecn=ecn)
    # The first leaves at once, so that the second finds no packet in the queue, the third one and so on.
    expected = [ecn, ecn, ecn, marked, marked]
    assert switch.send(1, *[packet.octets()] * 5) == [forwarded(replace(packet, ecn=value)) for value in expected]


def test_ecn_does_not_mark_without_an_entry() -> None:
    switch = OneSwitch(rate_bps=1e9)
    packet = replace(PACKET, ecn=1)
    assert switch.send(1, *[packet.octets()] * 20) == [forwarded(packet)] * 20
