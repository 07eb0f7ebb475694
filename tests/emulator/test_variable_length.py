"""Headers with a variable-length field: what leaves is what the interpreter says, for all lengths and errors."""

import json
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bmv2.session import Packet
from tests.bmv2.small_programs import OPTIONS, EmulatedProgram
from tests.emulator.interpreter import Interpreter
from tests.p4src.packets import internet_checksum

HEADER_TOO_SHORT, PACKET_TOO_SHORT = b"\0\1", b"\0\2"


@cache
def switch() -> EmulatedProgram:
    """The program, compiled once."""
    return EmulatedProgram(OPTIONS)


def sent(octets: bytes) -> bytes:
    """What becomes of a packet."""
    [packet] = switch().send(Packet(1, octets))
    assert packet.port == 2
    return packet.octets


def test_options_are_kept_and_summed() -> None:
    for words in range(11):
        options = bytes(range(1, 4 * words + 1))
        head = bytes([0x40 | words, 0])
        checksum = internet_checksum(head + options).to_bytes(2, "big")
        assert sent(head + b"??" + options + b"payload") == head + checksum + options + b"payload"


def test_more_options_than_fit_and_than_there_are_end_the_parser() -> None:
    for words in range(11, 16):
        assert sent(bytes([0x40 | words, 0, 0, 0]) + bytes(60)) == HEADER_TOO_SHORT + bytes([0x40 | words]) + bytes(63)
    assert sent(b"\x45\0\0\0" + bytes(19)) == PACKET_TOO_SHORT + b"\x45" + bytes(22)


heads = st.builds(
    lambda version, words, what, options: bytes([version << 4 | words, what, 0, 0]) + options,
    st.sampled_from([4, 7, 8]),
    st.integers(0, 15),
    st.sampled_from([0, 1, 1, 2]),
    st.binary(max_size=44) | st.integers(0, 44).map(bytes),
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(heads, heads)
def test_all_lengths_are_those_of_the_interpreter(one: bytes, other: bytes) -> None:
    octets = one[: 4 + 4 * (one[0] & 15)] + other
    expected = Interpreter(json.loads(OPTIONS.json.read_text())).process(octets)
    assert expected is not None
    assert sent(octets) == expected.octets
