"""Checksums over the payload: of all bytes, whatever their number, and of zeros that no packet stores."""

from functools import cache

import pytest

from emulator.compiler.layout import UnsupportedError
from emulator.compiler.program import compile_program
from tests.bmv2.session import Packet
from tests.bmv2.small_programs import PAYLOAD, EmulatedProgram
from tests.p4src.packets import internet_checksum

RIGHT, WRONG = 2, 3
PAYLOADS = [b"", b"\x01", b"\x01\x02", b"odd", bytes(range(200)), bytes(range(256)) + bytes(range(253))]


@cache
def switch() -> EmulatedProgram:
    """The program, compiled once."""
    return EmulatedProgram(PAYLOAD)


def packet(what: int, payload: bytes, error: int = 0) -> bytes:
    """A packet whose checksum is right, or not."""
    return bytes([what]) + (internet_checksum(bytes([0, what]) + payload) ^ error).to_bytes(2, "big") + payload


@pytest.mark.parametrize("payload", PAYLOADS, ids=len)
def test_a_checksum_is_verified_over_the_payload(payload: bytes) -> None:
    for error, port in ((0, RIGHT), (1, WRONG)):
        octets = packet(0, payload, error)
        assert switch().send(Packet(1, octets)) == [Packet(port, octets)]


@pytest.mark.parametrize("payload", PAYLOADS[:-1], ids=len)
def test_a_checksum_is_computed_over_the_payload(payload: bytes) -> None:
    checksum = internet_checksum(b"\x01\x12\x34" + payload).to_bytes(2, "big")
    assert switch().send(Packet(1, packet(1, payload))) == [Packet(RIGHT, b"\x01" + checksum + b"\x12\x34" + payload)]


def test_bytes_that_a_packet_does_not_store_are_zeros() -> None:
    emulated, octets = switch(), packet(0, b"begin")
    emulated.fabric.inject(0, octets, 1400)
    emulated.fabric.run(emulated.fabric.now_ps + 10**9)
    [capture] = emulated.fabric.captured()
    assert emulated.fabric.fabric.links[capture.link].source_port == RIGHT
    assert capture.length == 1400


def test_real_frames_store_too_little_for_it() -> None:
    with pytest.raises(UnsupportedError, match="a checksum of the payload, where real interfaces are attached,"):
        compile_program(PAYLOAD.json.read_text(), is_wired=True)
