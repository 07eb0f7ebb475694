"""Value sets of the parser: members that a controller writes decide how packets are parsed."""

from functools import cache

import pytest
from finsy.proto import p4r, rpc_code

from emulator.entries import AlreadyExistsError, FieldMatch, InvalidRequestError, RangeMatch, ResourceExhaustedError
from emulator.p4runtime.errors import BatchError
from emulator.replication import Replica, Replication, Replicator
from tests.bmv2.session import Packet
from tests.bmv2.small_programs import SETS, EmulatedProgram

WIDE = (1 << 71) + 5


@cache
def compiled() -> EmulatedProgram:
    """The program, compiled once."""
    return EmulatedProgram(SETS)


def switch() -> EmulatedProgram:
    """The program without members."""
    emulated = compiled()
    emulated.clear()
    return emulated


def value_set(name: str, *members: tuple[int, ...]) -> p4r.ValueSetEntry:
    """A value set with members."""
    found = next(item for item in SETS.pipeline.schema.value_sets.values() if item.name == f"parse.{name}")
    entry = p4r.ValueSetEntry(value_set_id=found.id)
    for member in members:
        message = entry.members.add()
        for field_id, value in enumerate(member, start=1):
            octets = value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
            message.match.add(field_id=field_id, exact=p4r.FieldMatch.Exact(value=octets))
    return entry


def update(entry: p4r.ValueSetEntry, kind: p4r.Update.Type.ValueType = p4r.Update.MODIFY) -> p4r.Update:
    """An update of it."""
    return p4r.Update(type=kind, entity=p4r.Entity(value_set_entry=entry))


def request(kind: int, a: int = 0, wide: int = 0, value: int = 0) -> bytes:
    """A packet with three bytes behind its header."""
    return kind.to_bytes(2, "big") + bytes([a << 5]) + wide.to_bytes(9, "big") + bytes([value, 0, 0])


def number(value: int) -> FieldMatch:
    """An exact match of 16 bits."""
    return FieldMatch(value, (1 << 16) - 1)


def port_of(emulated: EmulatedProgram, octets: bytes) -> int:
    """Where a packet leaves, as it came."""
    [sent] = emulated.send(Packet(1, octets))
    assert sent.octets == octets
    return sent.port


def test_members_decide_how_a_packet_is_parsed() -> None:
    emulated = switch()
    assert port_of(emulated, request(7)) == 1
    emulated.write([update(value_set("kinds", (7,), (0xFFFE,), (0x0800,)))])
    assert [port_of(emulated, request(kind)) for kind in (7, 8, 0xFFFE, 0x0800, 0xFFFF)] == [2, 1, 2, 1, 1]
    emulated.write([update(value_set("kinds", (8,)))])
    assert [port_of(emulated, request(kind)) for kind in (7, 8)] == [1, 2]
    emulated.write([update(value_set("kinds"))])
    assert port_of(emulated, request(8)) == 1


def test_a_member_of_several_fields_matches_all_of_them() -> None:
    emulated = switch()
    emulated.write([update(value_set("kinds", (7,))), update(value_set("pairs", (5, WIDE), (0, 0)))])
    found = {(a, wide): port_of(emulated, request(7, a, wide)) for a in (0, 5) for wide in (0, 5, WIDE)}
    assert {key for key, port in found.items() if port == 3} == {(5, WIDE), (0, 0)}


def test_a_clone_is_parsed_by_the_same_members() -> None:
    emulated = switch()
    emulated.write([update(value_set("kinds", (7,)))])
    emulated.control.replication(Replicator.SESSION).insert(5, Replication((Replica(3),)))
    octets = request(7, value=9)
    assert emulated.send(Packet(1, octets)) == [Packet(2, octets), Packet(3, octets)]


def test_value_sets_are_read_as_they_were_written_and_emptied_with_the_switch() -> None:
    emulated = switch()
    written = value_set("pairs", (5, WIDE), (0, 0))
    emulated.write([update(written)])
    everything = emulated.read(p4r.Entity(value_set_entry=p4r.ValueSetEntry()))
    assert [entity.value_set_entry for entity in everything] == [value_set("kinds"), written]
    one = p4r.ValueSetEntry(value_set_id=written.value_set_id)
    assert [entity.value_set_entry for entity in emulated.read(p4r.Entity(value_set_entry=one))] == [written]
    emulated.clear()
    assert not any(e.value_set_entry.members for e in emulated.read(p4r.Entity(value_set_entry=p4r.ValueSetEntry())))


WRONG: dict[str, tuple[p4r.Update, rpc_code.Code.ValueType]] = {
    "insert": (update(value_set("kinds"), p4r.Update.INSERT), rpc_code.INVALID_ARGUMENT),
    "unknown": (update(p4r.ValueSetEntry(value_set_id=7)), rpc_code.INVALID_ARGUMENT),
    "too many": (update(value_set("kinds", (1,), (2,), (3,), (4,), (5,))), rpc_code.RESOURCE_EXHAUSTED),
    "twice": (update(value_set("kinds", (1,), (1,))), rpc_code.ALREADY_EXISTS),
    "too wide": (update(value_set("kinds", (1 << 16,))), rpc_code.OUT_OF_RANGE),
    "field missing": (update(value_set("pairs", (1,))), rpc_code.INVALID_ARGUMENT),
}


@pytest.mark.parametrize(("wrong", "code"), WRONG.values(), ids=WRONG.keys())
def test_wrong_members_change_nothing(wrong: p4r.Update, code: rpc_code.Code.ValueType) -> None:
    emulated = switch()
    emulated.write([update(value_set("kinds", (7,)))])
    with pytest.raises(BatchError) as error:
        emulated.write([wrong])
    assert [result.canonical_code for result in error.value.results] == [code]
    assert port_of(emulated, request(7)) == 2


def test_members_of_the_switch_itself_are_checked() -> None:
    memory = switch().control.value_set("parse.kinds")
    for members, kind in (
        ([(number(1), number(2))], InvalidRequestError),
        ([(number(-1),)], InvalidRequestError),
        ([(RangeMatch(0, 1 << 16),)], InvalidRequestError),
        ([(FieldMatch(0, 1 << 16),)], InvalidRequestError),
        ([(number(n),) for n in range(5)], ResourceExhaustedError),
        ([(number(1),), (number(1),)], AlreadyExistsError),
    ):
        with pytest.raises(kind):
            memory.replace(members)
    with pytest.raises(InvalidRequestError, match="no value set 'x'"):
        switch().control.value_set("x")
