"""Ranges and the entries that a program brings, over P4Runtime."""

import pytest
from finsy.proto import p4r, rpc_code
from google.protobuf import text_format

from emulator.p4runtime.errors import BatchError
from tests.bmv2.constructs.programs import construct
from tests.bmv2.constructs.switches import CompiledConstruct
from tests.emulator.p4runtime.messages import DELETE, INSERT, MODIFY, text_of

SCHEMA = construct("tables").pipeline.schema
TABLES = {table.name.removeprefix("ingress."): table.id for table in SCHEMA.tables.values()}
ACTIONS = {action.name.removeprefix("ingress."): action.id for action in SCHEMA.actions.values()}
HIGHEST = 2**31 - 1


@pytest.fixture
def switch() -> CompiledConstruct:
    return CompiledConstruct(construct("tables"))


def entry(table: str, match: str, action: str = "", more: str = "priority: 5") -> p4r.Entity:
    called = (
        f"action {{ action {{ action_id: {ACTIONS[action]} params {{ param_id: 1 value: '\\7' }} }} }}"
        if action
        else ""
    )
    text = f"table_entry {{ table_id: {TABLES[table]} {match} {called} {more} }}"
    return text_format.Parse(text, p4r.Entity())


def span(field_id: int, low: int | bytes, high: int | bytes) -> str:
    return f"match {{ field_id: {field_id} range {{ low: {text_of(low)} high: {text_of(high)} }} }}"


def write(switch: CompiledConstruct, kind: p4r.Update.Type.ValueType, entity: p4r.Entity) -> int:
    """The code of one update's result."""
    try:
        switch.write([p4r.Update(type=kind, entity=entity)])
    except BatchError as error:
        return error.results[0].canonical_code
    return int(rpc_code.OK)


def read(switch: CompiledConstruct, table: str) -> list[p4r.TableEntry]:
    return [entity.table_entry for entity in switch.read(entry(table, "", more=""))]


def test_a_range_is_read_back_in_canonical_form(switch: CompiledConstruct) -> None:
    written = entry("range_", span(1, b"\0\7", b"\0\0\7") + span(2, 0, 2**72 - 2), "set_range")
    assert write(switch, INSERT, written) == rpc_code.OK
    assert read(switch, "range_") == [entry("range_", span(1, 7, 7) + span(2, 0, 2**72 - 2), "set_range").table_entry]
    assert write(switch, INSERT, entry("range_", span(2, 0, 2**72 - 2) + span(1, 7, 7), "set_range")) == (
        rpc_code.ALREADY_EXISTS
    )
    assert write(switch, DELETE, written) == rpc_code.OK
    assert read(switch, "range_") == []


@pytest.mark.parametrize(
    ("match", "code"),
    [
        (span(1, 8, 7), rpc_code.INVALID_ARGUMENT),
        (span(1, 0, 0xFFFF), rpc_code.INVALID_ARGUMENT),
        (span(2, 0, 2**72 - 1), rpc_code.INVALID_ARGUMENT),
        (span(1, 0, 0x10000), rpc_code.OUT_OF_RANGE),
        (span(1, b"", 5), rpc_code.OUT_OF_RANGE),
        (span(3, 1, 2), rpc_code.INVALID_ARGUMENT),
        ("match { field_id: 1 exact { value: '\\1' } }", rpc_code.INVALID_ARGUMENT),
    ],
)
def test_a_wrong_range_changes_nothing(switch: CompiledConstruct, match: str, code: int) -> None:
    assert write(switch, INSERT, entry("range_", match, "set_range")) == code
    assert read(switch, "range_") == []


def test_constant_entries_are_read_and_never_written(switch: CompiledConstruct) -> None:
    before = read(switch, "constant")
    assert [found.priority for found in before] == [HIGHEST - number for number in range(1, 6)]
    assert all(found.is_const for found in before)
    assert {match.field_id for match in before[3].match} == {2, 3, 4}
    first = p4r.Entity(table_entry=before[0])
    first.table_entry.is_const = False
    first.table_entry.action.action.params[0].value = b"\x63"
    for kind in (INSERT, MODIFY, DELETE):
        assert write(switch, kind, first) == rpc_code.PERMISSION_DENIED
    assert read(switch, "constant") == before


def test_initial_entries_can_be_changed_and_come_back(switch: CompiledConstruct) -> None:
    before = read(switch, "initial")
    assert len(before) == 3
    assert not any(found.is_const for found in before)
    changed = p4r.Entity(table_entry=before[0])
    changed.table_entry.action.action.params[0].value = b"\x63"
    assert write(switch, MODIFY, changed) == rpc_code.OK
    assert write(switch, DELETE, p4r.Entity(table_entry=before[1])) == rpc_code.OK
    assert read(switch, "initial") == [changed.table_entry, before[2]]
    switch.clear()
    assert read(switch, "initial") == before
