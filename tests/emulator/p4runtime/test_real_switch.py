"""The switch of the emulator under the messages of P4Runtime: keys that are scanned, and what it refuses itself."""

import json

import pytest
from finsy.proto import p4r, rpc_code
from google.protobuf import text_format

from emulator.compiler.program import Program, compile_program
from emulator.entries import ActionCall, EntryKey, FieldMatch, InvalidRequestError
from emulator.memory import Arena
from emulator.p4runtime.errors import BatchError
from emulator.p4runtime.pipeline import Pipeline, compiled_pipeline
from emulator.p4runtime.read import read_batch
from emulator.p4runtime.target import Target
from emulator.p4runtime.write import write_batch
from emulator.switch import EmulatedSwitch
from p4src import P4INFO, PROGRAM
from tests.emulator.p4runtime.messages import text_of

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE
FLOW, ROUTING = "ingress.flow", "ingress.routing"
KINDS = ("ternary", "exact", "optional", "exact", "ternary")
NUM_MEMBERS = 3


@pytest.fixture(scope="module")
def scanned() -> tuple[Pipeline, Program]:
    """Trainyard's program with a flow table of other match kinds, and little room in its profile."""
    document = json.loads(PROGRAM.read_text())
    for part in document["pipelines"]:
        for profile in part["action_profiles"]:
            profile["max_size"] = NUM_MEMBERS
        for table in part["tables"]:
            if table["name"] == FLOW:
                table["match_type"] = "ternary"
                for field, kind in zip(table["key"], KINDS, strict=True):
                    field["match_type"] = kind
    p4info = compiled_pipeline(P4INFO.read_text(), PROGRAM.read_bytes()).message.p4info
    (flow,) = (table for table in p4info.tables if table.preamble.name == FLOW)
    for declared, kind in zip(flow.match_fields, KINDS, strict=True):
        declared.match_type = declared.MatchType.Value(kind.upper())
    for declared_profile in p4info.action_profiles:
        declared_profile.size = NUM_MEMBERS
    program = json.dumps(document)
    return compiled_pipeline(text_format.MessageToString(p4info), program.encode()), compile_program(program)


@pytest.fixture
def target(scanned: tuple[Pipeline, Program]) -> Target:
    pipeline, program = scanned
    switch = EmulatedSwitch("s", 1, Arena(), program.resources, ports=(1, 2, 3))
    switch.clear()
    return Target(switch, pipeline)


def write(target: Target, kind: p4r.Update.Type.ValueType, *entities: p4r.Entity) -> list[p4r.Error]:
    """The results of a batch."""
    try:
        write_batch(target, [p4r.Update(type=kind, entity=entity) for entity in entities])
    except BatchError as error:
        return list(error.results)
    return [p4r.Error() for _ in entities]


def codes(results: list[p4r.Error]) -> list[int]:
    return [result.canonical_code for result in results]


def read(target: Target, table: str) -> list[p4r.Entity]:
    entities, (result,) = read_batch(target, [p4r.Entity(table_entry=p4r.TableEntry(table_id=table_id(target, table)))])
    assert result.canonical_code == rpc_code.OK, result.message
    return entities


def table_id(target: Target, name: str) -> int:
    return next(table.id for table in target.schema.tables.values() if table.name == name)


def call(target: Target, name: str, argument: int) -> str:
    action = target.schema.actions_by_name[name]
    value = f"params {{ param_id: {action.parameters[0].id} value: {text_of(argument)} }}"
    return f"action {{ action_id: {action.id} {value} }}"


def flow(target: Target, match: str, priority: int, level: int = 1) -> p4r.Entity:
    exact = "".join(f" match {{ field_id: {number} exact {{ value: {text_of(7)} }} }}" for number in (2, 4))
    action = f"action {{ {call(target, 'ingress.prioritise', level)} }}"
    text = f"table_entry {{ table_id: {table_id(target, FLOW)} priority: {priority} {match}{exact} {action} }}"
    entity = text_format.Parse(text, p4r.Entity())
    entity.table_entry.match.sort(key=lambda field: field.field_id)
    return entity


def route(target: Target, prefix_length: int, *hops: int) -> p4r.Entity:
    """A route with one shot of its own."""
    prefix = f"match {{ field_id: 1 lpm {{ value: {text_of(0x0A000000)} prefix_len: {prefix_length} }} }}"
    actions = "".join(
        f"action_profile_actions {{ {call(target, 'ingress.set_next_hop', hop)} weight: 1 }}" for hop in hops
    )
    action = f"action {{ action_profile_action_set {{ {actions} }} }}"
    return text_format.Parse(f"table_entry {{ table_id: {table_id(target, ROUTING)} {prefix} {action} }}", p4r.Entity())


SOURCE = f"match {{ field_id: 1 ternary {{ value: {text_of(0x0A000000)} mask: {text_of(0xFF00FF00)} }} }}"
PROTOCOL = f"match {{ field_id: 3 optional {{ value: {text_of(17)} }} }}"
PORT = f"match {{ field_id: 5 ternary {{ value: {text_of(0x1000)} mask: {text_of(0xF000)} }} }}"
ADDRESS, BYTE, SHORT = 0xFFFFFFFF, 0xFF, 0xFFFF


def test_ternary_and_optional_fields_reach_the_switch_and_come_back(target: Target) -> None:
    entities = [
        flow(target, SOURCE + PORT, priority=7),
        flow(target, SOURCE + PORT, priority=8, level=2),
        flow(target, PROTOCOL, priority=7, level=3),
        flow(target, "", priority=2**31 - 1, level=4),
    ]
    assert codes(write(target, INSERT, *entities)) == [rpc_code.OK] * 4
    seven = (FieldMatch(7, ADDRESS), FieldMatch(7, SHORT))
    none, source, port = FieldMatch(0, 0), FieldMatch(0x0A000000, 0xFF00FF00), FieldMatch(0x1000, 0xF000)
    keys = {
        EntryKey((source, seven[0], none, seven[1], port), 7): 1,
        EntryKey((source, seven[0], none, seven[1], port), 8): 2,
        EntryKey((none, seven[0], FieldMatch(17, BYTE), seven[1], none), 7): 3,
        EntryKey((none, seven[0], none, seven[1], none), 2**31 - 1): 4,
    }
    assert dict(target.switch.entries(FLOW)) == {
        key: ActionCall("ingress.prioritise", (level,)) for key, level in keys.items()
    }
    assert read(target, FLOW) == entities
    assert codes(write(target, INSERT, entities[0])) == [rpc_code.ALREADY_EXISTS]
    assert codes(write(target, DELETE, entities[1], entities[1])) == [rpc_code.OK, rpc_code.NOT_FOUND]
    assert codes(write(target, MODIFY, flow(target, PROTOCOL, priority=7, level=5))) == [rpc_code.OK]
    assert read(target, FLOW) == [entities[0], flow(target, PROTOCOL, priority=7, level=5), entities[3]]


@pytest.mark.parametrize(
    ("match", "priority", "code"),
    [
        ("", 0, rpc_code.INVALID_ARGUMENT),
        ("", -1, rpc_code.INVALID_ARGUMENT),
        ('match { field_id: 3 optional { value: "" } }', 1, rpc_code.OUT_OF_RANGE),
        ('match { field_id: 3 optional { value: "\\001\\000" } }', 1, rpc_code.OUT_OF_RANGE),
        ("match { field_id: 3 }", 1, rpc_code.INVALID_ARGUMENT),
        ('match { field_id: 5 ternary { value: "\\001" mask: "\\001\\000\\000" } }', 1, rpc_code.OUT_OF_RANGE),
        ('match { field_id: 5 ternary { value: "\\001" mask: "" } }', 1, rpc_code.OUT_OF_RANGE),
        ('match { field_id: 5 optional { value: "\\001" } }', 1, rpc_code.INVALID_ARGUMENT),
        ('match { field_id: 5 range { low: "\\001" high: "\\002" } }', 1, rpc_code.INVALID_ARGUMENT),
    ],
)
def test_refused_keys(target: Target, match: str, priority: int, code: rpc_code.Code.ValueType) -> None:
    (result,) = write(target, INSERT, flow(target, match, priority))
    assert result.canonical_code == code, result.message
    assert list(target.switch.entries(FLOW)) == []


def test_actions_of_sets_are_members_of_the_profile_until_their_entry_goes(target: Target) -> None:
    assert codes(write(target, INSERT, route(target, 8, 1, 2))) == [rpc_code.OK]
    exceeded = [rpc_code.RESOURCE_EXHAUSTED]
    assert codes(write(target, INSERT, route(target, 9, 1, 2))) == exceeded
    assert codes(write(target, MODIFY, route(target, 8, 1, 2, 3, 4))) == exceeded
    assert read(target, ROUTING) == [route(target, 8, 1, 2)]
    assert codes(write(target, MODIFY, route(target, 8, 1, 2, 3))) == [rpc_code.OK]
    assert codes(write(target, DELETE, route(target, 8))) == [rpc_code.OK]
    assert codes(write(target, INSERT, route(target, 9, 1, 2, 3))) == [rpc_code.OK]
    target.switch.clear()
    assert codes(write(target, INSERT, route(target, 9, 1, 2, 3))) == [rpc_code.OK]


def test_registers_are_read_and_written(target: Target) -> None:
    register = next(message for message in target.pipeline.message.p4info.registers)
    cell = p4r.RegisterEntry(register_id=register.preamble.id, index=p4r.Index(index=1))
    cell.data.bitstring = b"\x05"
    assert codes(write(target, MODIFY, p4r.Entity(register_entry=cell))) == [rpc_code.OK]
    assert target.switch.register(register.preamble.name, 1) == 5
    found, _ = read_batch(target, [p4r.Entity(register_entry=p4r.RegisterEntry(register_id=register.preamble.id))])
    assert [entity.register_entry.data.bitstring for entity in found] == [b"\0", b"\5", *[b"\0"] * (register.size - 2)]
    everything, _ = read_batch(target, [p4r.Entity(register_entry=p4r.RegisterEntry())])
    assert len(everything) == sum(message.size for message in target.pipeline.message.p4info.registers)


@pytest.mark.parametrize(
    ("kind", "index", "data", "code"),
    [
        (INSERT, 0, b"\1", rpc_code.INVALID_ARGUMENT),
        (MODIFY, -1, b"\1", rpc_code.INVALID_ARGUMENT),
        (MODIFY, 1 << 30, b"\1", rpc_code.OUT_OF_RANGE),
        (MODIFY, 0, b"", rpc_code.OUT_OF_RANGE),
        (MODIFY, 0, b"\1" * 9, rpc_code.OUT_OF_RANGE),
        (MODIFY, 0, None, rpc_code.INVALID_ARGUMENT),
    ],
)
def test_refused_registers(
    target: Target, kind: p4r.Update.Type.ValueType, index: int, data: bytes | None, code: rpc_code.Code.ValueType
) -> None:
    register = next(message for message in target.pipeline.message.p4info.registers)
    cell = p4r.RegisterEntry(register_id=register.preamble.id, index=p4r.Index(index=index))
    if data is not None:
        cell.data.bitstring = data
    assert codes(write(target, kind, p4r.Entity(register_entry=cell))) == [code]
    assert target.switch.register(register.preamble.name, 0) == 0


def test_a_port_that_the_switch_does_not_have_is_refused(target: Target) -> None:
    with pytest.raises(InvalidRequestError, match="switch 's' has no port 9"):
        target.switch.set_port(9, True)
    assert dict.fromkeys(target.switch.ports, True) == {port: target.switch.ports.is_up(port) for port in (1, 2, 3)}
