"""Push and pop on stacks of header unions."""

import json
from functools import cache
from random import Random

import pytest

from tests.bmv2.session import Packet
from tests.bmv2.small_programs import PUSHES, EmulatedProgram
from tests.emulator.interpreter import Interpreter

PUSH, PUSH_LARGE, POP, POP_TWO = 1, 2, 3, 4
SMALL, LARGE, OTHER = b"\x01\x11", b"\x02\x22\x33\x44", b"\x01\x55"
MADE = b"\x02\xab\xcd\xef"


@cache
def switch() -> EmulatedProgram:
    """The program, compiled once."""
    return EmulatedProgram(PUSHES)


def left(what: int, *options: bytes) -> bytes:
    """The options that leave, of those with which a packet came."""
    [packet] = switch().send(Packet(1, bytes([what]) + b"".join(options) + b"\0rest"))
    assert packet.octets[:1] == bytes([what])
    assert packet.octets.endswith(b"\0rest")
    return packet.octets[1:-5]


@pytest.mark.parametrize("options", [(), (SMALL,), (LARGE, SMALL), (SMALL, LARGE, OTHER), (LARGE, LARGE, SMALL)])
def test_elements_move_with_all_their_members(options: tuple[bytes, ...]) -> None:
    assert left(PUSH, *options) == b"".join(options[:2])
    assert left(PUSH_LARGE, *options) == MADE + b"".join(options[:2])
    assert left(POP, *options) == b"".join(options[1:])
    assert left(POP_TWO, *options) == b"".join(options[2:])


def test_any_options_do_as_the_interpreter_says() -> None:
    random, reference = Random(5), Interpreter(json.loads(PUSHES.json.read_text()))
    for _ in range(200):
        options = b"".join(random.choice([SMALL, LARGE, OTHER, MADE]) for _ in range(random.randrange(4)))
        octets = bytes([random.randrange(6)]) + options + b"\0" * random.randrange(2)
        expected = reference.process(octets)
        assert expected is not None
        assert switch().send(Packet(1, octets)) == [Packet(expected.port, expected.octets)]
