"""Parsing of probes built here and by scapy; other packets are refused with the reason."""

import struct
from dataclasses import replace
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.fields import BitField, ByteField, IntField, ShortField, XByteField
from scapy.layers.inet import IP, TCP, UDP
from scapy.packet import Packet, Raw

from hostlib.telemetry.parsing import Malformed, MalformedProbeError, parse_probe
from hostlib.telemetry.probes import ETHERNET_BYTES, HOP_LIMIT, Mark, Probe, probe_packet, wire_bytes
from hostlib.types import FiveTuple
from hostlib.wire.int_md import HOP_WORDS, INSTRUCTIONS, Hop, Instruction, read_stack, words_of
from tests.p4src.packets import IntMd, Ipv4, Protocol

MARK = Mark(session=7, sequence=8, port_sequence=2, sent_ns=123_456_789)
FLOW = FiveTuple(IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2"), 17, 50_000, 4791)
PROBE = Probe(FLOW, 3, MARK)

FIRST_HOP = struct.pack("!IHHIIQQI", 1, 2, 17, 30, 3 << 24 | 4, 1_000, 1_030, 90_000)
LAST_HOP = struct.pack("!IHHIIQQI", 5, 1, 3, 10, 3 << 24, 77, 87, 0xFFFF_FFFF)
HOPS = (
    Hop(1, 2, 17, 30, level=3, queue_packets=4, ingress_us=1_000, egress_us=1_030, window_bytes=90_000),
    Hop(5, 1, 3, 10, level=3, queue_packets=0, ingress_us=77, egress_us=87, window_bytes=None),
)
ON_ARRIVAL = IntMd(
    instructions=INSTRUCTIONS, hop_words=HOP_WORDS, remaining_hop_count=HOP_LIMIT - 2, stack=LAST_HOP + FIRST_HOP
)
ARRIVED = Ipv4(source_port=50_000, destination_port=4791, dscp=3 << 3 | 1, telemetry=ON_ARRIVAL, payload=MARK.octets())


def ipv4(packet: Ipv4) -> bytes:
    """The packet without its Ethernet header."""
    return packet.octets()[ETHERNET_BYTES:]


def reason(packet: bytes) -> Malformed:
    with pytest.raises(MalformedProbeError) as caught:
        parse_probe(packet)
    return caught.value.reason


# ---- probes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [Protocol.UDP, Protocol.TCP])
def test_what_is_sent_is_what_the_specification_asks_for(protocol: Protocol) -> None:
    sent = probe_packet(replace(PROBE, five_tuple=replace(FLOW, protocol=int(protocol))))
    telemetry = IntMd(instructions=INSTRUCTIONS, hop_words=HOP_WORDS, remaining_hop_count=HOP_LIMIT)
    by_hand = ipv4(replace(ARRIVED, protocol=protocol, telemetry=telemetry))
    l4_bytes = 8 if protocol == Protocol.UDP else 20
    # Identification and, of TCP, numbers, flags and window are nobody's business, and checksums hang on them.
    assert sent[:4] + sent[8:10] + sent[12:24] == by_hand[:4] + by_hand[8:10] + by_hand[12:24]
    assert sent[6:8] == b"\x40\x00"  # not to be fragmented
    assert sent[20 + l4_bytes :] == by_hand[20 + l4_bytes :]
    assert len(sent) + ETHERNET_BYTES == wire_bytes(0, protocol)
    parsed = parse_probe(sent)
    assert (parsed.five_tuple.protocol, parsed.dscp, parsed.mark, parsed.hops) == (protocol, 3 << 3 | 1, MARK, ())


@pytest.mark.parametrize("protocol", [Protocol.UDP, Protocol.TCP])
def test_hops_come_in_the_order_of_the_way(protocol: Protocol) -> None:
    parsed = parse_probe(ipv4(replace(ARRIVED, protocol=protocol)))
    assert parsed.hops == HOPS
    assert parsed.is_complete
    assert parsed.five_tuple == replace(FLOW, protocol=int(protocol))


def test_padding_and_a_missing_udp_checksum_are_no_faults() -> None:
    assert parse_probe(ipv4(replace(ARRIVED, udp_checksum=False)) + bytes(6)).hops == HOPS


@pytest.mark.parametrize("flag", ["hop_count_exceeded", "mtu_exceeded"])
def test_a_stack_that_had_no_room_is_known_to_be_incomplete(flag: str) -> None:
    telemetry = replace(ON_ARRIVAL, **{flag: True})
    assert not parse_probe(ipv4(replace(ARRIVED, telemetry=telemetry))).is_complete


@given(
    ports=st.tuples(*[st.integers(0, 0xFFFF)] * 2),
    addresses=st.tuples(*[st.integers(0, 0xFFFF_FFFF)] * 2),
    protocol=st.sampled_from([6, 17]),
    level=st.integers(0, 7),
    numbers=st.tuples(*[st.integers(0, 0xFFFF_FFFF)] * 3, st.integers(0, (1 << 64) - 1)),
)
def test_what_is_built_is_read(
    ports: tuple[int, int], addresses: tuple[int, int], protocol: int, level: int, numbers: tuple[int, int, int, int]
) -> None:
    flow = FiveTuple(IPv4Address(addresses[0]), IPv4Address(addresses[1]), protocol, *ports)
    probe = Probe(flow, level, Mark(*numbers))
    parsed = parse_probe(probe_packet(probe))
    assert (parsed.five_tuple, parsed.dscp >> 3, parsed.mark) == (flow, level, probe.mark)


# ---- the stack -------------------------------------------------------------------------------------------------------

words = st.integers(0, 0xFFFF_FFFF)


@given(bitmap=st.integers(1, 0xFFFF), spare_words=st.integers(0, 5), num_hops=st.integers(0, 4), data=st.data())
def test_every_bitmap_is_read_word_by_word(bitmap: int, spare_words: int, num_hops: int, data: st.DataObject) -> None:
    """Compare with a reader that takes the words of the bitmap's bits one by one."""
    hop_words = words_of(bitmap) + spare_words
    stacks = [data.draw(st.lists(words, min_size=hop_words, max_size=hop_words)) for _ in range(num_hops)]
    expected = []
    for stack in reversed(stacks):
        left, found = list(stack), {}
        for bit in range(16):
            if bitmap & 1 << 15 - bit:
                found[bit] = [left.pop(0) for _ in range(2 if bit in (4, 5, 6) else 1)]
        expected.append(
            Hop(
                node_id=_known(found.get(0), 32),
                ingress_port=_known([found[1][0] >> 16] if 1 in found else None, 16),
                egress_port=_known([found[1][0] & 0xFFFF] if 1 in found else None, 16),
                latency_us=_known(found.get(2), 32),
                level=_known([found[3][0] >> 24] if 3 in found else None, 8),
                queue_packets=_known([found[3][0] & 0xFF_FFFF] if 3 in found else None, 24),
                ingress_us=_known(found.get(4), 64),
                egress_us=_known(found.get(5), 64),
                window_bytes=_known(found.get(7), 32),
            )
        )
    octets = b"".join(struct.pack(f"!{hop_words}I", *stack) for stack in stacks)
    assert read_stack(octets, bitmap, hop_words) == tuple(expected)


def _known(words: list[int] | None, bits: int) -> int | None:
    if words is None:
        return None
    value = words[0] if len(words) == 1 else words[0] << 32 | words[1]
    return None if value == (1 << bits) - 1 else value


@pytest.mark.parametrize("instructions", [*Instruction, INSTRUCTIONS])
def test_all_ones_are_not_known(instructions: int) -> None:
    count = words_of(instructions)
    assert read_stack(b"\xff" * 4 * count, instructions, count) == (Hop(),)


def test_a_stack_of_broken_hops_cannot_be_read() -> None:
    with pytest.raises(ValueError, match="35 bytes"):
        read_stack(bytes(35))
    with pytest.raises(ValueError, match="need 9 words"):
        read_stack(bytes(32), INSTRUCTIONS, 8)


# ---- scapy -----------------------------------------------------------------------------------------------------------


class Shim(Packet):
    name = "INT shim"
    fields_desc = [  # noqa: RUF012 - as scapy has it
        BitField("type", 1, 4),
        BitField("npt", 0, 2),
        BitField("reserved", 0, 2),
        ByteField("length", 3),
        ShortField("next_protocol", 0),
    ]


class Header(Packet):
    name = "INT-MD"
    fields_desc = [  # noqa: RUF012 - as scapy has it
        BitField("version", 2, 4),
        BitField("discard", 1, 1),
        BitField("exceeded", 0, 1),
        BitField("mtu", 0, 1),
        BitField("reserved", 0, 12),
        BitField("hop_ml", 9, 5),
        XByteField("remaining", 16),
        ShortField("instructions", 0xFD00),
        ShortField("domain", 0),
        ShortField("domain_instructions", 0),
        ShortField("domain_flags", 0),
    ]


class HopWords(Packet):
    name = "INT hop"
    fields_desc = [  # noqa: RUF012 - as scapy has it
        IntField("node", 0),
        ShortField("ingress", 0),
        ShortField("egress", 0),
        IntField("latency", 0),
        ByteField("queue", 0),
        BitField("occupancy", 0, 24),
        BitField("ingress_time", 0, 64),
        BitField("egress_time", 0, 64),
        IntField("utilisation", 0),
    ]


@pytest.mark.parametrize("l4", [UDP, TCP])
@pytest.mark.parametrize("num_hops", [0, 1, 5, 16])
def test_what_scapy_builds_is_read(l4: type[Packet], num_hops: int) -> None:
    hops = [
        HopWords(
            node=99 - n, ingress=n, egress=n + 1, latency=n, queue=7, occupancy=n, ingress_time=n, egress_time=2 * n
        )
        for n in range(num_hops)
    ]
    packet = IP(src="10.1.2.3", dst="10.4.5.6", tos=0b111_001 << 2) / l4(sport=49_152, dport=4791)
    packet /= Shim(length=3 + 9 * num_hops) / Header(remaining=16 - num_hops)
    for hop in hops:
        packet /= hop
    parsed = parse_probe(bytes(packet / Raw(MARK.octets())))
    assert parsed.mark == MARK
    assert str(parsed.five_tuple.source_address) == "10.1.2.3"
    assert parsed.hops == tuple(Hop(99 - n, n, n + 1, n, 7, n, n, 2 * n, 0) for n in reversed(range(num_hops)))


# ---- what is refused -------------------------------------------------------------------------------------------------

REFUSED = {
    Malformed.IPV4: [
        replace(ARRIVED, options=bytes(4)),
        replace(ARRIVED, flags=1),
        replace(ARRIVED, fragment_offset=9),
    ],
    Malformed.IPV4_CHECKSUM: [replace(ARRIVED, checksum_error=1)],
    Malformed.PROTOCOL: [replace(ARRIVED, protocol=Protocol.ICMP)],
    Malformed.NOT_ANNOUNCED: [replace(ARRIVED, dscp=3 << 3)],
    Malformed.L4_CHECKSUM: [
        replace(ARRIVED, l4_checksum_error=4),
        replace(ARRIVED, protocol=Protocol.TCP, l4_checksum_error=4),
    ],
    Malformed.L4_LENGTH: [replace(ARRIVED, protocol=Protocol.TCP, tcp_options=bytes(4))],
    Malformed.SHIM: [
        replace(ARRIVED, telemetry=replace(ON_ARRIVAL, type=2)),
        replace(ARRIVED, telemetry=replace(ON_ARRIVAL, next_protocol_type=1)),
        replace(ARRIVED, telemetry=replace(ON_ARRIVAL, length=2)),
    ],
    Malformed.VERSION: [replace(ARRIVED, telemetry=replace(ON_ARRIVAL, version=1))],
    Malformed.DOMAIN: [replace(ARRIVED, telemetry=replace(ON_ARRIVAL, domain_id=5))],
    Malformed.STACK_LENGTH: [replace(ARRIVED, telemetry=replace(ON_ARRIVAL, length=255))],
    Malformed.INSTRUCTIONS: [
        replace(ARRIVED, telemetry=replace(ON_ARRIVAL, hop_words=6)),
        replace(ARRIVED, telemetry=replace(ON_ARRIVAL, hop_words=18)),
        replace(ARRIVED, telemetry=replace(ON_ARRIVAL, instructions=0xFF00)),
        replace(ARRIVED, telemetry=replace(ON_ARRIVAL, instructions=0, hop_words=0)),
    ],
    Malformed.HOP_WORDS: [replace(ARRIVED, telemetry=replace(ON_ARRIVAL, length=3 + 17))],
    Malformed.HOP_COUNT: [
        replace(ARRIVED, telemetry=replace(ON_ARRIVAL, remaining_hop_count=HOP_LIMIT - 1)),
        replace(ARRIVED, telemetry=replace(ON_ARRIVAL, remaining_hop_count=0)),
        replace(ARRIVED, telemetry=replace(ON_ARRIVAL, length=3 + 9)),
    ],
    Malformed.MARK: [replace(ARRIVED, payload=b""), replace(ARRIVED, payload=b"TYP0" + MARK.octets()[4:])],
    Malformed.CUT_SHORT: [replace(ARRIVED, telemetry=None, payload=bytes(15))],
}


@pytest.mark.parametrize(("expected", "packet"), [(why, packet) for why, some in REFUSED.items() for packet in some])
def test_what_is_malformed_is_refused_for_its_reason(expected: Malformed, packet: Ipv4) -> None:
    assert reason(ipv4(packet)) is expected


def test_lengths_that_do_not_fit_are_refused() -> None:
    whole = ipv4(ARRIVED)
    assert reason(whole[:19]) is Malformed.CUT_SHORT
    assert reason(whole[:-1]) is Malformed.IPV4_LENGTH
    udp = bytearray(ipv4(replace(ARRIVED, udp_checksum=False)))
    struct.pack_into("!H", udp, 24, len(udp) - 21)
    assert reason(bytes(udp)) is Malformed.L4_LENGTH
    for protocol, header_bytes in ((17, 8), (6, 20)):
        packet = IP(src="10.0.0.1", dst="10.0.0.2", tos=4, proto=protocol) / Raw(bytes(header_bytes - 1))
        assert reason(bytes(packet)) is Malformed.CUT_SHORT


@given(st.binary(max_size=300))
def test_noise_is_refused(noise: bytes) -> None:
    with pytest.raises(MalformedProbeError):
        parse_probe(noise)


@given(at=st.integers(0, len(ipv4(ARRIVED)) - 1), flipped=st.integers(1, 255), checked=st.booleans())
def test_a_damaged_probe_is_refused_or_read_never_more(at: int, flipped: int, checked: bool) -> None:
    damaged = bytearray(ipv4(replace(ARRIVED, udp_checksum=checked)))
    damaged[at] ^= flipped
    try:
        parsed = parse_probe(bytes(damaged))
    except MalformedProbeError:
        return
    assert not checked  # else a checksum had to show it
    assert len(parsed.hops) <= HOP_LIMIT
