"""What the emulator executes beyond Trainyard's own program, against the interpreter."""

import json
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.compiler.program import Program, compile_program
from emulator.entries import ActionCall, CounterValue, EntryAction, EntryKey, FieldMatch, MemberReference
from tests.emulator.constructs import (
    COMPUTE,
    COUNTER,
    MIXED,
    NARROW,
    PICK,
    PROFILE,
    REGISTER,
    SKIP,
    TERNARY,
    constructs_json,
)
from tests.emulator.interpreter import Interpreter
from tests.emulator.lone_switch import LoneSwitch
from tests.p4src.packets import internet_checksum

DOCUMENT = constructs_json()


@cache
def program() -> Program:
    """The program, compiled."""
    return compile_program(json.dumps(DOCUMENT))


calls = (
    st.builds(lambda *arguments: ActionCall(COMPUTE, arguments), st.integers(0, 255), st.integers(0, 0xFFFF))
    | st.builds(lambda argument: ActionCall(PICK, (argument,)), st.integers(0, 0xFFFF))
    | st.just(ActionCall(SKIP))
)
kinds = st.sampled_from([0, 1, 2, 3, 0xEE, 0xFF]) | st.integers(0, 255)


@st.composite
def firsts(draw: st.DrawFn) -> bytes:
    """Bytes of the first header, with a right checksum in ``c`` or something else."""
    kind, a = draw(kinds), draw(st.sampled_from([3, 0, 15]))
    b = draw(st.sampled_from([0x001, 0xF01, 0x010, 0x000, 0x0FF]) | st.integers(0, 0xFFF))
    d = draw(st.sampled_from([0, 1, 2**24 - 1]) | st.integers(0, 2**24 - 1))
    right = internet_checksum(((a << 32 | d << 8 | kind) << 12).to_bytes(6, "big"))
    c = draw(st.just(right) | st.sampled_from([0, 1, 0x8000, 0xFFFF]))
    return (kind << 56 | a << 52 | b << 40 | c << 24 | d).to_bytes(8, "big")


@st.composite
def packets(draw: st.DrawFn) -> bytes:
    """Whole or cut packets, with what the parser looks for ahead of it."""
    ahead = draw(st.sampled_from([0x05, 0x25, 0x0D, 0x20]) | st.integers(0, 255))
    packet = draw(firsts()) + bytes([ahead]) + draw(st.binary(min_size=14, max_size=20))
    return packet[: draw(st.integers(0, len(packet)))] if draw(st.integers(0, 5)) == 0 else packet


@st.composite
def ternary_keys(draw: st.DrawFn, octets: bytes) -> EntryKey:
    """A key that is close to a packet's fields."""
    kind_mask = draw(st.sampled_from([0, 0xFF, 0xF0, 0x5A]))
    a_mask = draw(st.sampled_from([0, 0xF]))
    m8_mask = 0xFF << draw(st.integers(0, 8)) & 0xFF
    kind, a, c = octets[0], octets[1] >> 4, int.from_bytes(octets[3:5], "big")
    ahead = (octets[8] << 8 | octets[9]) >> 6 & 0x7F
    fields = ((kind, kind_mask), (a, a_mask), (c, 0xFFFF), (ahead, m8_mask))
    return EntryKey(tuple(FieldMatch(value & mask, mask) for value, mask in fields), draw(st.integers(1, 3)))


@st.composite
def mixed_keys(draw: st.DrawFn, octets: bytes) -> EntryKey:
    """A key for packets whose metadata is still zero, or as ``skip`` leaves it."""
    c, d = int.from_bytes(octets[3:5], "big"), int.from_bytes(octets[5:8], "big")
    m64 = draw(st.sampled_from([0, d | c << 48]))
    m32_mask = draw(st.sampled_from([0, 0xFFFF_FFFF, 0xFFFF_0000, 0x8000_0000]))
    visible = draw(st.sampled_from([0xFF_FF00, 0xFF_FF00, 0xFF_FFFF]))
    fields = ((c, 0xFFFF), (d & visible, 0xFF_FFFF), (m64, 2**64 - 1), (0, m32_mask))
    return EntryKey(tuple(FieldMatch(value, mask) for value, mask in fields))


@st.composite
def scenarios(draw: st.DrawFn) -> tuple[dict[str, dict[EntryKey, EntryAction]], dict[int, ActionCall], list[bytes]]:
    """Entries, members and packets."""
    octets = draw(st.lists(packets(), min_size=3, max_size=10))
    whole = st.sampled_from([packet for packet in octets if len(packet) >= 10] or [bytes(10)])
    members = draw(st.dictionaries(st.integers(1, 4), calls, min_size=1))
    references = st.sampled_from(sorted(members)).map(MemberReference)
    entries: dict[str, dict[EntryKey, EntryAction]] = {
        TERNARY: draw(st.dictionaries(whole.flatmap(ternary_keys), calls, max_size=20)),
        MIXED: draw(st.dictionaries(whole.flatmap(mixed_keys), references, max_size=8)),
    }
    return entries, members, octets


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(scenarios())
def test_compiled_constructs_and_interpreter_do_the_same(
    scenario: tuple[dict[str, dict[EntryKey, EntryAction]], dict[int, ActionCall], list[bytes]],
) -> None:
    entries, members, octets = scenario
    switch, reference = LoneSwitch(program()), Interpreter(DOCUMENT)
    for member_id, action in members.items():
        switch.control.insert_member(PROFILE, member_id, action)
    for table, rows in entries.items():
        for key, call in rows.items():
            switch.control.insert(table, key, call)
    reference.entries |= entries
    reference.members = members
    for packet in octets:
        assert switch.process(packet) == reference.process(packet)
    for table, rows in entries.items():
        for key in rows:
            counted = switch.control.direct_counter(table, key)
            assert [counted.packets, counted.bytes] == reference.direct_counters.get((table, key), [0, 0])
    for index in range(20):
        expected = reference.counters.get((COUNTER, index), [0, 0])
        assert switch.control.counter(COUNTER, index) == CounterValue(*expected)
    for name, size in ((REGISTER, 16), (NARROW, 8)):
        cells = [switch.control.register(name, index) for index in range(size)]
        assert cells == [reference.registers.get((name, index), 0) for index in range(size)]
