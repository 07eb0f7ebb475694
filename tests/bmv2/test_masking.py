"""Masking hides what may differ, and nothing else."""

from dataclasses import replace

import pytest

from tests.bmv2.masking import mask_of, masked
from tests.p4src.packets import Instruction, IntMd, Ipv4, Protocol

ALL = sum(int(instruction) for instruction in Instruction)
# Node id, ports, latency, queue, ingress time, egress time, second ports, utilisation.
HOP = bytes(range(1, 41))
HIDDEN = HOP[:8] + bytes(4) + HOP[12:13] + bytes(3 + 8 + 8) + HOP[32:40]
OLD = bytes(range(200, 212))
UTILISATION = b"\1\2\3\4"
RECEIVED = Ipv4(dscp=1, telemetry=IntMd(instructions=ALL, hop_words=11, stack=OLD))


def with_stack(packet: Ipv4, stack: bytes) -> Ipv4:
    assert packet.telemetry is not None
    return replace(packet, telemetry=replace(packet.telemetry, stack=stack))


@pytest.mark.parametrize("protocol", [Protocol.UDP, Protocol.TCP])
@pytest.mark.parametrize("error", [0, 0x0100])
def test_the_checksum_is_that_of_the_packet_with_zeros(protocol: Protocol, error: int) -> None:
    received = replace(RECEIVED, protocol=protocol)
    sent, expected = with_stack(received, HOP + UTILISATION + OLD), with_stack(received, HIDDEN + bytes(4) + OLD)
    mask = mask_of(received.octets(), sent.octets())
    assert masked(sent.octets(), mask) == expected.octets()
    damaged = replace(sent, l4_checksum_error=error).octets()
    assert (masked(damaged, mask) == expected.octets()) == (error == 0)


def test_udp_without_a_checksum_stays_without() -> None:
    received = replace(RECEIVED, udp_checksum=False)
    sent = with_stack(received, HOP + UTILISATION + OLD).octets()
    assert masked(sent, mask_of(received.octets(), sent)) == with_stack(received, HIDDEN + bytes(4) + OLD).octets()


def test_a_packet_that_has_not_grown_is_compared_whole() -> None:
    octets = with_stack(RECEIVED, HOP + UTILISATION).octets()
    assert mask_of(octets, octets) == ()
    assert masked(octets, ()) == octets
