"""Loops inside of actions, fields of headers that are not valid, and packets that leave by a port without a cable."""

import json
from functools import cache

import pytest

from emulator.compiler.jumps import MAX_REPEATS
from tests.bmv2.session import Packet
from tests.bmv2.small_programs import LOOPS, EmulatedProgram
from tests.emulator.interpreter import Interpreter

SUM, SQUARE, ODD, FOREVER, LEFT, NEVER = range(6)
NO_CABLE = 7


@cache
def switch() -> EmulatedProgram:
    """The program, compiled once."""
    return EmulatedProgram(LOOPS)


def request(what: int, count: int, port: int = 2, result: int = 0, rest: bytes = b"") -> bytes:
    """A packet that asks for something."""
    return bytes([what, count, port]) + result.to_bytes(4, "big") + rest


def answered(octets: bytes) -> int:
    """The result that a packet brings to port 2."""
    [sent] = switch().send(Packet(1, octets))
    assert sent.port == 2
    assert sent.octets[:3] == octets[:3]
    return int.from_bytes(sent.octets[3:7], "big")


@pytest.mark.parametrize(
    ("what", "results"),
    [
        (SUM, {0: 0, 1: 0, 5: 10, 255: 255 * 254 // 2}),
        (SQUARE, {0: 0, 1: 1, 9: 81, 255: 255 * 255}),
        (ODD, {0: 0, 1: 0, 2: 1, 7: 3, 102: 50, 255: 50}),
    ],
)
def test_a_loop_in_an_action_runs_as_often_as_it_says(what: int, results: dict[int, int]) -> None:
    assert {count: answered(request(what, count)) for count in results} == results


def test_the_interpreter_runs_them_as_often() -> None:
    reference = Interpreter(json.loads(LOOPS.json.read_text()))
    for what in (SUM, SQUARE, ODD, FOREVER):
        for count in (0, 3):
            octets = request(what, count)
            expected = reference.process(octets)
            assert [sent.octets for sent in switch().send(Packet(1, octets))] == ([expected.octets] if expected else [])


def test_a_loop_without_end_drops_its_packet_and_is_counted() -> None:
    emulated = switch()
    before = emulated.fabric.drops(emulated.control.name)
    assert emulated.send(Packet(1, request(FOREVER, 0))) == []
    after = emulated.fabric.drops(emulated.control.name)
    assert after.too_many_repeats - before.too_many_repeats == 1
    assert after.by_program == before.by_program
    # The most that a program may have is not too much.
    assert MAX_REPEATS > 255 * 255 + 255
    assert answered(request(SUM, 3)) == 3


def test_what_a_header_held_is_read_after_it_is_invalid_and_not_that_of_another_packet() -> None:
    held = 0x1234_5678
    assert answered(request(NEVER, 0)) == 0
    # What the action has copied, egress reads once more.
    assert answered(request(LEFT, 0, result=99, rest=held.to_bytes(4, "big"))) == held ^ held
    assert answered(request(SUM, 0, result=99)) == 99
    assert answered(request(NEVER, 0)) == 0


def test_a_packet_for_a_port_without_a_cable_passes_egress_and_is_lost_then() -> None:
    emulated = switch()
    before = emulated.fabric.drops(emulated.control.name).no_such_port
    counted = emulated.control.counter("egress.leaving", NO_CABLE).packets
    for _ in range(3):
        assert emulated.send(Packet(1, request(SUM, 1, port=NO_CABLE))) == []
    assert emulated.control.counter("egress.leaving", NO_CABLE).packets - counted == 3
    assert emulated.fabric.drops(emulated.control.name).no_such_port - before == 3
