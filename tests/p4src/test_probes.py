"""INT-MD transit: what a hop adds to a probe, and that it adds nothing to anything else."""

import struct
from dataclasses import replace
from itertools import combinations

import pytest

from emulator.entries import ActionCall, CounterValue, EntryKey, FieldMatch
from tests.p4src.one_switch import HOST_MAC, SWITCH_MAC, OneSwitch, Sent
from tests.p4src.packets import INVALID, Instruction, IntMd, Ipv4, Protocol, words

NODE_ID = 0xABCD_0123
LEVEL = 3
OUR_INSTRUCTIONS = 0b1111_1101 << 8
"""Node id, ports, hop latency, queue, both times, utilisation: nine words a hop."""

WORDS = {
    Instruction.NODE_ID: 1,
    Instruction.LEVEL1_PORTS: 1,
    Instruction.HOP_LATENCY: 1,
    Instruction.QUEUE: 1,
    Instruction.INGRESS_TIME: 2,
    Instruction.EGRESS_TIME: 2,
    Instruction.LEVEL2_PORTS: 2,
    Instruction.UTILISATION: 1,
}

OLD_STACK = bytes(range(36))
TELEMETRY = IntMd(instructions=OUR_INSTRUCTIONS, hop_words=9, remaining_hop_count=7, stack=OLD_STACK)
PROBE = Ipv4(dscp=LEVEL << 3 | 0b011, telemetry=TELEMETRY)


@pytest.fixture
def switch() -> OneSwitch:
    made = OneSwitch()
    made.control.set_default("egress.node_id", ActionCall("egress.set_node_id", (NODE_ID,)))
    return made


def forwarded(probe: Ipv4, telemetry: IntMd | None = None, port: int = 2) -> list[Sent]:
    """The packet as it leaves; ``telemetry`` is what INT says then, if the hop has changed it."""
    hop = replace(
        probe,
        time_to_live=probe.time_to_live - 1,
        source_mac=SWITCH_MAC + port,
        destination_mac=HOST_MAC + port,
        telemetry=telemetry or probe.telemetry,
    )
    return [Sent(port, hop.octets())]


def pushed(probe: Ipv4, metadata: bytes, port: int = 2) -> list[Sent]:
    """The probe as it leaves with a hop's metadata on its stack."""
    before = probe.telemetry
    assert before is not None
    remaining = before.remaining_hop_count - 1
    return forwarded(probe, replace(before, stack=metadata + before.stack, remaining_hop_count=remaining), port)


def metadata(
    instructions: int, *, now_us: int, level: int = LEVEL, in_port: int = 1, out_port: int = 2, window_bytes: int = 0
) -> bytes:
    """What an idle hop answers."""
    values = {
        Instruction.NODE_ID: words(NODE_ID),
        Instruction.LEVEL1_PORTS: struct.pack("!HH", in_port, out_port),
        Instruction.HOP_LATENCY: words(0),
        Instruction.QUEUE: words(level << 24),
        Instruction.INGRESS_TIME: struct.pack("!Q", now_us),
        Instruction.EGRESS_TIME: struct.pack("!Q", now_us),
        Instruction.LEVEL2_PORTS: words(INVALID, INVALID),
        Instruction.UTILISATION: words(window_bytes),
    }
    return b"".join(value for instruction, value in values.items() if instructions & instruction)


def num_words(instructions: int) -> int:
    """Words that a bitmap asks for."""
    more = (instructions & 0xFF).bit_count()
    return more + sum(count for instruction, count in WORDS.items() if instructions & instruction)


@pytest.mark.parametrize("protocol", [Protocol.UDP, Protocol.TCP])
@pytest.mark.parametrize("payload", [b"", b"odd", b"even"])
def test_a_hop_stands_on_top_of_the_stack(switch: OneSwitch, protocol: Protocol, payload: bytes) -> None:
    switch.wait(123_456)
    probe = replace(PROBE, protocol=protocol, payload=payload)
    assert switch.send(1, probe.octets()) == pushed(probe, metadata(OUR_INSTRUCTIONS, now_us=123_456))
    assert switch.sent(2, LEVEL).packets == 1


def test_the_first_hop_finds_no_stack(switch: OneSwitch) -> None:
    probe = replace(PROBE, telemetry=IntMd(instructions=OUR_INSTRUCTIONS, hop_words=9))
    assert switch.send(1, probe.octets()) == pushed(probe, metadata(OUR_INSTRUCTIONS, now_us=0))


@pytest.mark.parametrize(
    "instructions", sorted({sum(pair) for pair in combinations([*Instruction, 0], 2)} | {0xFF00 - Instruction.QUEUE})
)
def test_only_what_is_asked_for_is_answered_and_in_order(switch: OneSwitch, instructions: int) -> None:
    telemetry = IntMd(instructions=instructions, hop_words=num_words(instructions), stack=OLD_STACK)
    probe = replace(PROBE, telemetry=telemetry)
    assert switch.send(1, probe.octets()) == pushed(probe, metadata(instructions, now_us=0))


@pytest.mark.parametrize("instructions", [0xFF80, 0x8001, 0xFFFF, 0x00FF])
def test_unknown_instructions_are_answered_with_all_ones(switch: OneSwitch, instructions: int) -> None:
    telemetry = IntMd(instructions=instructions, hop_words=num_words(instructions), stack=OLD_STACK)
    probe = replace(PROBE, telemetry=telemetry)
    ones = words(*[INVALID] * (instructions & 0xFF).bit_count())
    assert switch.send(1, probe.octets()) == pushed(probe, metadata(instructions, now_us=0) + ones)


@pytest.mark.parametrize("hop_words", range(4, 32))
def test_words_of_an_unknown_domain_are_all_ones(switch: OneSwitch, hop_words: int) -> None:
    instructions = Instruction.NODE_ID | Instruction.INGRESS_TIME | 1
    probe = replace(PROBE, telemetry=IntMd(instructions=instructions, hop_words=hop_words, domain_id=5))
    ones = words(*[INVALID] * (hop_words - 3))
    assert switch.send(1, probe.octets()) == pushed(probe, metadata(instructions, now_us=0) + ones)


def test_too_few_words_for_the_instructions_get_none(switch: OneSwitch) -> None:
    telemetry = IntMd(instructions=OUR_INSTRUCTIONS, hop_words=8, stack=OLD_STACK)
    probe = replace(PROBE, telemetry=telemetry)
    assert switch.send(1, probe.octets()) == forwarded(probe)


@pytest.mark.parametrize(("stack_words", "fits"), [(243, True), (244, False)])
def test_a_stack_as_long_as_the_shim_can_tell_is_left_alone(switch: OneSwitch, stack_words: int, fits: bool) -> None:
    telemetry = IntMd(instructions=OUR_INSTRUCTIONS, hop_words=9, stack=bytes(4 * stack_words))
    probe = replace(PROBE, telemetry=telemetry, payload=bytes(20))
    expected = pushed(probe, metadata(OUR_INSTRUCTIONS, now_us=0)) if fits else forwarded(probe)
    assert switch.send(1, probe.octets()) == expected


@pytest.mark.parametrize("already", [False, True])
def test_without_hops_left_the_e_bit_is_set(switch: OneSwitch, already: bool) -> None:
    telemetry = replace(TELEMETRY, remaining_hop_count=0, hop_count_exceeded=already)
    probe = replace(PROBE, telemetry=telemetry)
    assert switch.send(1, probe.octets()) == forwarded(probe, replace(telemetry, hop_count_exceeded=True))


@pytest.mark.parametrize("already", [False, True])
@pytest.mark.parametrize(("spare_bytes", "fits"), [(36, True), (35, False), (0, False)])
def test_beyond_the_mtu_the_m_bit_is_set(switch: OneSwitch, already: bool, spare_bytes: int, fits: bool) -> None:
    telemetry = replace(TELEMETRY, mtu_exceeded=already)
    probe = replace(PROBE, telemetry=telemetry)
    mtu_bytes = len(probe.octets()) - 14 + spare_bytes
    switch.insert("egress.mtu", 2, ActionCall("egress.set_mtu", (mtu_bytes,)))
    metadata_now = metadata(OUR_INSTRUCTIONS, now_us=0)
    expected = pushed(probe, metadata_now) if fits else forwarded(probe, replace(telemetry, mtu_exceeded=True))
    assert switch.send(1, probe.octets()) == expected


# ---- checksums -------------------------------------------------------------------------------------------------------


def test_udp_without_a_checksum_stays_without(switch: OneSwitch) -> None:
    probe = replace(PROBE, udp_checksum=False)
    assert switch.send(1, probe.octets()) == pushed(probe, metadata(OUR_INSTRUCTIONS, now_us=0))


@pytest.mark.parametrize("protocol", [Protocol.UDP, Protocol.TCP])
def test_a_wrong_l4_checksum_stays_wrong(switch: OneSwitch, protocol: Protocol) -> None:
    probe = replace(PROBE, protocol=protocol)
    [good] = switch.send(1, probe.octets())
    at = 14 + 20 + (6 if protocol == Protocol.UDP else 16)
    damaged = bytearray(probe.octets())
    damaged[at] ^= 0x10
    [bad] = switch.send(1, bytes(damaged))
    assert len(good.octets) == len(bad.octets)
    assert good.octets[at : at + 2] != bad.octets[at : at + 2]


@pytest.mark.parametrize("protocol", [Protocol.UDP, Protocol.TCP])
def test_checksums_are_right_for_every_residue(switch: OneSwitch, protocol: Protocol) -> None:
    switch.control.set_default("egress.node_id", ActionCall("egress.set_node_id", (NODE_ID,)))
    telemetry = IntMd(instructions=Instruction.NODE_ID, hop_words=1)
    # The last word takes the checksum through values around 0 and all ones, before the hop and behind it.
    base = replace(PROBE, protocol=protocol, telemetry=telemetry, payload=bytes(2))
    at = 14 + 20 + (6 if protocol == Protocol.UDP else 16)
    [before] = struct.unpack_from("!H", base.octets(), at)
    [behind] = struct.unpack_from("!H", pushed(base, words(NODE_ID))[0].octets, at)
    for middle in (before, behind):
        for payload in range(middle - 2, middle + 3):
            probe = replace(base, payload=struct.pack("!H", payload % 0x1_0000))
            assert switch.send(1, probe.octets()) == pushed(probe, words(NODE_ID))


# ---- what is no probe ------------------------------------------------------------------------------------------------

NOT_INT = [
    replace(PROBE, telemetry=None),
    replace(PROBE, telemetry=None, payload=b""),
    replace(PROBE, telemetry=replace(TELEMETRY, type=2)),
    replace(PROBE, telemetry=replace(TELEMETRY, next_protocol_type=1)),
    replace(PROBE, telemetry=replace(TELEMETRY, version=1)),
    replace(PROBE, telemetry=replace(TELEMETRY, length=2)),
    replace(PROBE, payload=b"", telemetry=replace(TELEMETRY, length=13)),
    replace(PROBE, payload=b"", protocol=Protocol.TCP, telemetry=replace(TELEMETRY, length=13)),
    replace(PROBE, protocol=Protocol.TCP, tcp_options=bytes(4)),
    replace(PROBE, protocol=Protocol.ICMP),
    replace(PROBE, options=bytes(4)),
    replace(PROBE, flags=0b001),
    replace(PROBE, fragment_offset=100),
]


@pytest.mark.parametrize("packet", NOT_INT, ids=str)
def test_what_only_looks_like_a_probe_is_data(switch: OneSwitch, packet: Ipv4) -> None:
    switch.insert_flow(packet, ActionCall("ingress.prioritise", (LEVEL,)))
    assert switch.send(1, packet.octets()) == forwarded(replace(packet, dscp=packet.dscp & ~1))
    assert switch.control.counter("ingress.not_int_counter", 1).packets == 1


@pytest.mark.parametrize("cut_bytes", range(14 + 20, 14 + 20 + 8 + 16 + 36, 3))
def test_a_probe_cut_short_is_data(switch: OneSwitch, cut_bytes: int) -> None:
    probe = replace(PROBE, payload=b"")
    [sent] = switch.send(1, probe.octets()[:cut_bytes])
    assert len(sent.octets) == cut_bytes
    assert sent.octets[34:] == probe.octets()[34:cut_bytes]
    assert sent.octets[15] >> 2 == probe.dscp & ~1


def test_int_behind_the_end_of_ipv4_is_data(switch: OneSwitch) -> None:
    telemetry = replace(TELEMETRY, length=13)
    frame = bytearray(replace(PROBE, telemetry=telemetry, payload=b"", udp_checksum=False).octets() + bytes(4))
    struct.pack_into("!H", frame, 38, struct.unpack_from("!H", frame, 38)[0] + 4)
    [sent] = switch.send(1, bytes(frame))
    assert len(sent.octets) == len(frame)
    assert sent.octets[15] >> 2 == PROBE.dscp & ~1


@pytest.mark.parametrize("dscp", range(0, 64, 2))
def test_data_never_grows(switch: OneSwitch, dscp: int) -> None:
    packet = replace(PROBE, dscp=dscp)
    [sent] = switch.send(1, packet.octets())
    assert len(sent.octets) == len(packet.octets())


# ---- way and level ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "port"),
    [
        (ActionCall("ingress.steer", (3,)), 3),
        (ActionCall("ingress.prioritise", (6,)), 2),
        (ActionCall("ingress.steer_and_prioritise", (3, 6)), 3),
    ],
)
def test_a_probe_goes_its_flows_way_at_its_own_level(switch: OneSwitch, action: ActionCall, port: int) -> None:
    switch.insert_flow(PROBE, action)
    expected = metadata(OUR_INSTRUCTIONS, now_us=0, out_port=port)
    assert switch.send(1, PROBE.octets()) == pushed(PROBE, expected, port)
    assert switch.sent(port, LEVEL).packets == 1


def test_a_probe_is_none_of_its_jobs_packets(switch: OneSwitch) -> None:
    anything = EntryKey((FieldMatch(0, 0),) * 4, priority=1)
    switch.control.insert("ingress.job", anything, ActionCall("ingress.prioritise_job", (6,)))
    assert switch.send(1, PROBE.octets()) == pushed(PROBE, metadata(OUR_INSTRUCTIONS, now_us=0))
    assert switch.control.direct_counter("ingress.job", anything) == CounterValue(0, 0)


def test_a_probe_of_an_untrusted_port_has_level_0(switch: OneSwitch) -> None:
    switch.insert("ingress.port", 1, ActionCall("ingress.distrust"))
    expected = pushed(replace(PROBE, dscp=0b000_011), metadata(OUR_INSTRUCTIONS, now_us=0, level=0))
    assert switch.send(1, PROBE.octets()) == expected


# ---- load ------------------------------------------------------------------------------------------------------------


def hop_of(sent: Sent) -> tuple[int, ...]:
    """Node id, ports, latency, queue id, occupancy, both times and utilisation on top of a probe's stack."""
    return struct.unpack_from("!IHHIBBHQQI", sent.octets, 14 + 20 + 8 + 16)


def test_latency_and_occupancy_are_those_of_the_probes_queue() -> None:
    switch = OneSwitch(rate_bps=1e8)
    data = replace(PROBE, dscp=LEVEL << 3, telemetry=None, payload=bytes(400))
    *_, probe = switch.send(1, *[data.octets()] * 4, PROBE.octets())
    _, _, _, latency_us, queue_id, high, occupancy, ingress_us, egress_us, _ = hop_of(probe)
    assert (queue_id, high, occupancy) == (LEVEL, 0, 3)
    assert egress_us - ingress_us == latency_us
    # Four packets of 442 bytes at 100 Mbit/s and a little more: the emulator adds headers to a link's rate.
    assert latency_us == pytest.approx(4 * len(data.octets()) * 8 / 100, rel=0.05)


def test_utilisation_is_that_of_the_last_complete_window(switch: OneSwitch) -> None:
    window_us = 1 << 14
    data = replace(PROBE, dscp=0, telemetry=None).octets()
    probe_bytes = len(PROBE.octets()) + 36

    def utilisation() -> int:
        return hop_of(switch.send(1, PROBE.octets())[0])[-1]

    switch.send(1, data, data)
    assert utilisation() == 0
    switch.wait(window_us)
    assert utilisation() == 2 * len(data) + probe_bytes
    assert utilisation() == 2 * len(data) + probe_bytes
    switch.wait(2 * window_us)
    assert utilisation() == 2 * probe_bytes
    switch.wait(4 * window_us)
    assert utilisation() == 0


def test_the_windows_length_can_be_set(switch: OneSwitch) -> None:
    switch.control.set_default("egress.utilisation_window", ActionCall("egress.set_window", (11,)))
    data = replace(PROBE, dscp=0, telemetry=None).octets()
    switch.send(1, data)
    switch.wait(1 << 11)
    assert hop_of(switch.send(1, PROBE.octets())[0])[-1] == len(data)


def test_a_window_with_more_bytes_than_the_register_holds_reads_all_ones(switch: OneSwitch) -> None:
    switch.control.set_register("egress.window_bytes", 2, INVALID - 10)
    switch.send(1, replace(PROBE, dscp=0, telemetry=None).octets())
    switch.wait(1 << 14)
    assert hop_of(switch.send(1, PROBE.octets())[0])[-1] == INVALID
