"""Value sets with ranges, prefixes, masks and optional fields, as P4Runtime writes them and as packets meet them."""

import asyncio
import json
from collections.abc import AsyncIterator
from functools import cache
from random import Random
from typing import cast

import finsy as fy
import pytest
from finsy.p4entity import P4BackupReplica, P4Replica, P4ValueSetMember
from finsy.proto import p4r, rpc_code

from emulator.cells import Member
from emulator.entries import FieldMatch, RangeMatch
from emulator.p4runtime.errors import BatchError
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from tests.bmv2.session import Packet
from tests.bmv2.small_programs import MEMBERS, EmulatedProgram
from tests.emulator.interpreter import Interpreter
from tests.emulator.p4runtime.clients import run

LANES, WIDES, ROUTES = 1, 2, 3
NAMES = {LANES: "parse.lanes", WIDES: "parse.wides", ROUTES: "parse.routes"}
FULL_WIDE = (1 << 128) - 1


@cache
def compiled() -> EmulatedProgram:
    """The program, compiled once."""
    return EmulatedProgram(MEMBERS)


def octets_of(value: int) -> bytes:
    """The shortest string of a value."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def ranged(field_id: int, low: int, high: int) -> p4r.FieldMatch:
    """A range."""
    return p4r.FieldMatch(field_id=field_id, range=p4r.FieldMatch.Range(low=octets_of(low), high=octets_of(high)))


def masked(field_id: int, value: int, mask: int) -> p4r.FieldMatch:
    """A value under a mask."""
    return p4r.FieldMatch(
        field_id=field_id, ternary=p4r.FieldMatch.Ternary(value=octets_of(value), mask=octets_of(mask))
    )


def prefix(field_id: int, value: int, length: int) -> p4r.FieldMatch:
    """A prefix."""
    return p4r.FieldMatch(field_id=field_id, lpm=p4r.FieldMatch.LPM(value=octets_of(value), prefix_len=length))


def optional(field_id: int, value: int) -> p4r.FieldMatch:
    """An optional value."""
    return p4r.FieldMatch(field_id=field_id, optional=p4r.FieldMatch.Optional(value=octets_of(value)))


def members(which: int, *matches: list[p4r.FieldMatch]) -> p4r.ValueSetEntry:
    """A value set with members."""
    found = next(item for item in MEMBERS.pipeline.schema.value_sets.values() if item.name == NAMES[which])
    made = [p4r.ValueSetMember(match=match) for match in matches]
    return p4r.ValueSetEntry(value_set_id=found.id, members=made)


def written(*entries: p4r.ValueSetEntry) -> EmulatedProgram:
    """The program with nothing but these value sets."""
    emulated = compiled()
    emulated.clear()
    kind = p4r.Update.MODIFY
    emulated.write([p4r.Update(type=kind, entity=p4r.Entity(value_set_entry=entry)) for entry in entries])
    return emulated


def request(what: int, number: int = 0, wide: int = 0, address: int = 0, option: int = 0) -> bytes:
    """A packet that asks to be looked up."""
    fields = (what, 1), (number, 2), (wide, 16), (address, 4), (option, 1), (0x99, 1)
    return b"".join(value.to_bytes(size, "big") for value, size in fields)


def is_found(emulated: EmulatedProgram, octets: bytes) -> bool:
    """Whether a packet is in the value set that it names."""
    [sent] = emulated.send(Packet(1, octets))
    assert sent.octets == octets
    return sent.port == 2


def test_both_ends_of_a_range_are_in_it_and_all_fields_of_one_member_must_match() -> None:
    emulated = written(members(LANES, [ranged(1, 5, 9), masked(2, 0x40, 0xC0)], [ranged(1, 100, 100)]))
    found = [number for number in range(120) if is_found(emulated, request(LANES, number, option=0x7F))]
    assert found == [5, 6, 7, 8, 9, 100]
    assert [number for number in (5, 100) if is_found(emulated, request(LANES, number, option=0x80))] == [100]


def test_ranges_of_more_than_one_word() -> None:
    low, high = (1 << 64) - 2, (3 << 64) + 1
    emulated = written(members(WIDES, [ranged(1, low, high)]))
    values = (0, low - 1, low, low + 1, 1 << 64, 2 << 64, (2 << 64) + 7, 3 << 64, high, high + 1, 4 << 64, FULL_WIDE)
    assert [is_found(emulated, request(WIDES, wide=wide)) for wide in values] == [low <= v <= high for v in values]


def test_prefixes_and_optional_fields() -> None:
    emulated = written(
        members(ROUTES, [prefix(1, 0x0A000000, 8), optional(2, 7)], [masked(3, 1 << 100, 3 << 100)], [prefix(1, 1, 32)])
    )
    for address, option, wide, expected in (
        (0x0AFFFFFF, 7, 0, True),
        (0x0AFFFFFF, 8, 0, False),
        (0x0B000000, 7, 0, False),
        (0x0B000000, 9, 1 << 100 | 5, True),
        (0x0B000000, 9, 3 << 100, False),
        (1, 0, 0, True),
        (2, 0, 0, False),
    ):
        assert is_found(emulated, request(ROUTES, wide=wide, address=address, option=option)) is expected


def test_a_member_without_fields_matches_everything() -> None:
    emulated = written(members(LANES, []))
    assert is_found(emulated, request(LANES, 12345))
    assert not is_found(emulated, request(WIDES))


def test_members_are_read_as_they_were_written() -> None:
    entries = [
        members(LANES, [ranged(1, 5, 9), masked(2, 0x40, 0xC0)], []),
        members(WIDES, [ranged(1, 1 << 70, 1 << 80)]),
        members(ROUTES, [prefix(1, 0x0A000000, 8), optional(2, 0)], [masked(3, 1, 1)]),
    ]
    emulated = written(*entries)
    read = emulated.read(p4r.Entity(value_set_entry=p4r.ValueSetEntry()))
    assert [entity.value_set_entry for entity in read] == entries


WRONG: dict[str, tuple[p4r.ValueSetEntry, rpc_code.Code.ValueType, str]] = {
    "range upside down": (members(LANES, [ranged(1, 9, 5)]), rpc_code.INVALID_ARGUMENT, "cannot begin at 0x9"),
    "range of everything": (members(LANES, [ranged(1, 0, 0xFFFF)]), rpc_code.INVALID_ARGUMENT, "must be left out"),
    "another kind": (members(LANES, [masked(1, 1, 1)]), rpc_code.INVALID_ARGUMENT, "the match is range, not ternary"),
    "bits beside the mask": (members(LANES, [masked(2, 3, 1)]), rpc_code.INVALID_ARGUMENT, "bits outside its mask"),
    "prefix too long": (members(ROUTES, [prefix(1, 1, 33)]), rpc_code.INVALID_ARGUMENT, "not within 1 to 32"),
    "too wide": (members(WIDES, [ranged(1, 0, 1 << 128)]), rpc_code.OUT_OF_RANGE, "does not fit"),
    "unknown field": (members(WIDES, [ranged(2, 0, 1)]), rpc_code.INVALID_ARGUMENT, "no field with id 2"),
    "field twice": (members(WIDES, 2 * [ranged(1, 0, 1)]), rpc_code.INVALID_ARGUMENT, "given twice"),
    "member twice": (members(WIDES, *2 * [[ranged(1, 0, 1)]]), rpc_code.ALREADY_EXISTS, "given twice"),
}


@pytest.mark.parametrize(("wrong", "code", "words"), WRONG.values(), ids=WRONG.keys())
def test_wrong_members_are_refused_by_name_and_change_nothing(
    wrong: p4r.ValueSetEntry, code: rpc_code.Code.ValueType, words: str
) -> None:
    before = members(LANES, [ranged(1, 5, 9)])
    emulated = written(before)
    with pytest.raises(BatchError) as error:
        emulated.write([p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(value_set_entry=wrong))])
    [result] = error.value.results
    assert result.canonical_code == code
    assert "value set" in result.message
    assert words in result.message
    read = emulated.read(p4r.Entity(value_set_entry=p4r.ValueSetEntry(value_set_id=before.value_set_id)))
    assert [entity.value_set_entry for entity in read] == [before]


def test_any_members_do_as_the_interpreter_says() -> None:
    random, emulated = Random(6), written()
    reference = Interpreter(json.loads(MEMBERS.json.read_text()))

    def number(bits: int) -> int:
        return random.choice([0, 1, (1 << bits) - 1, 1 << bits - 1, random.getrandbits(bits)])

    def match(kind: str, bits: int) -> FieldMatch | RangeMatch:
        full = (1 << bits) - 1
        if kind == "range":
            low, high = sorted((number(bits), number(bits)))
            return RangeMatch(low, high)
        mask = {"lpm": full & ~(full >> random.randint(0, bits)), "ternary": number(bits)}.get(kind, full)
        return FieldMatch(number(bits) & mask, mask)

    for _ in range(60):
        drawn: dict[str, tuple[Member, ...]] = {
            "parse.lanes": tuple({(match("range", 16), match("ternary", 8)) for _ in range(random.randrange(5))}),
            "parse.wides": tuple({(match("range", 128),) for _ in range(random.randrange(5))}),
            "parse.routes": tuple(
                {(match("lpm", 32), match("optional", 8), match("ternary", 128)) for _ in range(random.randrange(5))}
            ),
        }
        reference.value_sets = drawn
        for name, chosen in drawn.items():
            emulated.control.value_set(name).replace(chosen)
        for _ in range(10):
            octets = request(random.randint(1, 3), number(16), number(128), number(32), number(8))
            expected = reference.process(octets)
            assert expected is not None
            assert emulated.send(Packet(1, octets)) == [Packet(expected.port, expected.octets)]


def test_finsy_writes_and_reads_members_and_backups() -> None:
    async def test() -> None:
        emulated = written()
        service = P4RuntimeService([emulated.control], MEMBERS.pipeline, asyncio.Lock())
        options = fy.SwitchOptions(p4info=MEMBERS.p4info, p4blob=MEMBERS.json)
        routes = fy.P4ValueSetEntry(
            "routes",
            members=[
                P4ValueSetMember(address="10.0.0.0/8", option=7),
                P4ValueSetMember(wide=f"{1 << 100}/&{3 << 100:#x}"),
            ],
        )
        lanes = fy.P4ValueSetEntry("lanes", members=[P4ValueSetMember(number="5...9")])
        async with serve(service) as port, fy.Switch("members", f"127.0.0.1:{port}", options) as switch:
            await switch.modify([routes, lanes])
            for one in (routes, lanes):
                selected = fy.P4ValueSetEntry(one.value_set_id, members=[])
                found = [entry async for entry in cast(AsyncIterator[fy.P4ValueSetEntry], switch.read(selected))]
                again = [entry.encode(switch.p4info) for entry in found]
                assert again == [one.encode(switch.p4info)]
            backups = [P4BackupReplica(3, instance=7), P4BackupReplica(2)]
            group = fy.P4MulticastGroupEntry(5, replicas=(P4Replica(1, backup_replicas=backups),), metadata=b"ours")
            await switch.insert([group])
            groups = cast(AsyncIterator[fy.P4MulticastGroupEntry], switch.read(fy.P4MulticastGroupEntry()))
            assert [entry async for entry in groups] == [group]
        assert is_found(emulated, request(LANES, 9))
        assert not is_found(emulated, request(LANES, 10))
        assert is_found(emulated, request(ROUTES, address=0x0A010203, option=7))

    run(test())
