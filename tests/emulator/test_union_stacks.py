"""Stacks of header unions, indices with a sign, and assertions."""

from functools import cache

import pytest

from tests.bmv2.session import Packet
from tests.bmv2.small_programs import UNIONS, EmulatedProgram

INDEX, UNION, ASSERT, ASSUME, ASSERT_LATE = range(1, 6)
SMALL, LARGE = b"\x01\x11", b"\x02\x22\x33\x44"


@cache
def switch() -> EmulatedProgram:
    """The program, compiled once."""
    return EmulatedProgram(UNIONS)


def sent(what: int, index: int = 0, count: int = 0, options: bytes = b"", rest: bytes = b"\0") -> list[bytes]:
    """What leaves because of a packet."""
    octets = bytes([what, index & 255, count, 0x55, 0x66]) + options + rest
    return [packet.octets for packet in switch().send(Packet(1, octets))]


@pytest.mark.parametrize(
    ("index", "elements"),
    [(0, b"\xee\x66"), (1, b"\x55\xee"), (2, b"\x55\x66"), (-1, b"\x55\x66"), (-128, b"\x55\x66")],
)
def test_an_index_below_zero_is_behind_the_end(index: int, elements: bytes) -> None:
    assert sent(INDEX, index) == [bytes([INDEX, index & 255, 0]) + elements + b"\0"]


@pytest.mark.parametrize("options", [b"", SMALL, LARGE, SMALL + LARGE, LARGE + SMALL + LARGE, SMALL * 3])
def test_elements_of_a_stack_of_unions_leave_as_they_came(options: bytes) -> None:
    assert sent(0, options=options, rest=b"\0rest") == [bytes([0, 0, 0, 0x55, 0x66]) + options + b"\0rest"]


def test_more_elements_than_the_stack_has_are_payload() -> None:
    assert sent(0, options=SMALL * 4) == [bytes([0, 0, 0, 0x55, 0x66]) + SMALL * 4 + b"\0"]


def test_one_member_of_an_element_is_valid() -> None:
    made = b"\x02\xab\xcd\xef"
    assert sent(UNION, options=SMALL) == [bytes([UNION, 0, 0, 0x55, 0x66]) + made + b"\0"]
    assert sent(UNION, options=SMALL + LARGE) == [bytes([UNION, 0, 1, 0x55, 0x66]) + made + LARGE + b"\0"]
    assert sent(UNION, options=LARGE) == [bytes([UNION, 0, 0, 0x55, 0x66]) + LARGE + b"\0"]


@pytest.mark.parametrize("what", [ASSERT, ASSERT_LATE])
def test_a_failed_assertion_drops_the_packet_and_is_counted(what: int) -> None:
    emulated = switch()
    before = emulated.fabric.drops(emulated.control.name)
    assert sent(what, count=3) == []
    after = emulated.fabric.drops(emulated.control.name)
    assert after.failed_assertions - before.failed_assertions == 1
    assert (after.too_many_repeats, after.by_program) == (before.too_many_repeats, before.by_program)
    assert len(sent(what, count=4)) == 1


def test_an_assumption_is_an_assertion() -> None:
    assert sent(ASSUME, options=SMALL * 2) == []
    assert len(sent(ASSUME, options=SMALL * 3)) == 1
