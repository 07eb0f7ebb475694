"""Loops of parser states that extract nothing: as often as the program says, and dropped where they have no end."""

import json
from functools import cache
from pathlib import Path

import pytest

from emulator.compiler import jumps
from emulator.replication import Replica, Replication, Replicator
from emulator.tracing.packet_trace import trace_packet
from emulator.tracing.steps import Dropped, ParserState
from emulator.tracing.text import as_text
from tests.bmv2 import small_programs
from tests.bmv2.replication_sessions import CLONE, SESSION, request
from tests.bmv2.session import Packet
from tests.bmv2.small_programs import REPLICATION, ROUNDS, EmulatedProgram
from tests.emulator.interpreter import Interpreter

COUNT, SKIP, PING, FOREVER = range(1, 5)
NORMAL, INGRESS_CLONE = 0, 1


@cache
def switch() -> EmulatedProgram:
    """The program, compiled once."""
    return EmulatedProgram(ROUNDS)


def sent(what: int, count: int = 0, rounds: int = 0, rest: bytes = b"") -> list[bytes]:
    """What leaves because of a packet."""
    return [packet.octets for packet in switch().send(Packet(1, bytes([what, count, rounds]) + rest))]


@pytest.mark.parametrize(("count", "rounds"), [(1, 0), (5, 0), (255, 0), (0, 0), (3, 200)])
def test_a_loop_runs_as_often_as_it_says(count: int, rounds: int) -> None:
    assert sent(COUNT, count, rounds, b"rest") == [bytes([COUNT, count, count]) + b"rest"]


def test_a_loop_that_skips_ends_with_the_packet() -> None:
    assert sent(SKIP, rest=bytes(6) + b"ab" + b"rest") == [bytes([SKIP, 0, 3]) + b"ab" + b"rest"]
    # Without another word: PacketTooShort, and the packet goes on.
    assert sent(SKIP, rest=bytes(6)) == [bytes([SKIP, 0, 3])]


def test_a_loop_of_two_states_ends() -> None:
    assert sent(PING, 7, rest=b"ab") == [bytes([PING, 7, 7]) + b"ab"]


def test_a_loop_without_end_drops_its_packet_before_ingress_and_is_counted() -> None:
    emulated = switch()
    before = emulated.fabric.drops(emulated.control.name)
    assert sent(FOREVER) == []
    after = emulated.fabric.drops(emulated.control.name)
    assert after.too_many_repeats - before.too_many_repeats == 1
    assert after.by_program == before.by_program
    assert emulated.control.counter("ingress.parsed", FOREVER).packets == 0
    # The next packet is none of the loop's.
    assert sent(COUNT, 2) == [bytes([COUNT, 2, 2])]


def test_the_interpreter_goes_round_as_often() -> None:
    reference = Interpreter(json.loads(ROUNDS.json.read_text()))
    for what in range(6):
        for rest in (b"", b"\0", b"ab", bytes(8), bytes(4) + b"xyz"):
            expected = reference.process(bytes([what, 3, 0]) + rest)
            assert sent(what, 3, rest=rest) == ([expected.octets] if expected else [])


def test_as_many_states_as_allowed_are_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jumps, "MAX_REPEATS", 6)
    emulated = EmulatedProgram(ROUNDS)
    assert emulated.send(Packet(1, bytes([COUNT, 6, 0]))) == [Packet(2, bytes([COUNT, 6, 6]))]
    assert emulated.send(Packet(1, bytes([COUNT, 7, 0]))) == []
    assert emulated.send(Packet(1, bytes([PING, 3, 0]))) == [Packet(2, bytes([PING, 3, 3]))]
    assert emulated.send(Packet(1, bytes([PING, 4, 0]))) == []


def test_a_trace_shows_each_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jumps, "MAX_REPEATS", 1000)
    emulated = EmulatedProgram(ROUNDS)
    trace = trace_packet(emulated.fabric, "switch", 1, bytes([PING, 2, 0]) + b"ab")
    names = [step.name for step in trace.steps if isinstance(step, ParserState)]
    assert names == ["start", "ping", "pong", "ping", "pong", "take"]
    endless = trace_packet(emulated.fabric, "switch", 1, bytes([FOREVER, 0, 0]))
    names = [step.name for step in endless.steps if isinstance(step, ParserState)]
    assert names == ["start", *["forever", "again"] * 500]
    assert isinstance(endless.steps[-1], Dropped)
    assert endless.steps[-1].reason == "too_many_repeats"
    *_, more, last = as_text(endless).splitlines()
    assert (more.strip(), "too_many_repeats" in last) == ("901 more parser states", True)


def test_a_clone_that_is_parsed_without_end_is_dropped_before_egress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of a clone of ingress the parser sees no length: here that leads into a loop.
    program = json.loads(REPLICATION.json.read_text())
    [start] = [state for state in program["parsers"][0]["parse_states"] if state["name"] == "start"]
    first = {
        "name": "first",
        "id": 99,
        "parser_ops": [],
        "transition_key": [{"type": "field", "value": ["standard_metadata", "packet_length"]}],
        "transitions": [
            {"type": "hexstr", "value": "0x00000000", "mask": None, "next_state": "first"},
            {"type": "default", "value": None, "mask": None, "next_state": start["name"]},
        ],
    }
    program["parsers"][0]["parse_states"].append(first)
    program["parsers"][0]["init_state"] = "first"
    (tmp_path / REPLICATION.json.name).write_text(json.dumps(program))
    (tmp_path / REPLICATION.p4info.name).write_text(REPLICATION.p4info.read_text())
    monkeypatch.setattr(small_programs, "FOLDER", tmp_path)
    emulated = EmulatedProgram(REPLICATION)
    emulated.control.replication(Replicator.SESSION).insert(SESSION, Replication((Replica(2, 0),)))
    assert [packet.port for packet in emulated.send(Packet(1, request(CLONE, port=3)))] == [3]
    assert emulated.fabric.drops("switch").too_many_repeats == 1
    assert emulated.control.counter("Done.instances", NORMAL).packets == 1
    assert emulated.control.counter("Done.instances", INGRESS_CLONE).packets == 0
