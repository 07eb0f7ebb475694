"""What may be written, what it does to the switch, and which error says that it may not."""

from typing import cast

import pytest
from finsy.proto import p4r, rpc_code

from emulator.entries import ActionCall, CounterValue, EntryKey, FieldMatch
from emulator.p4runtime.errors import BatchError
from emulator.p4runtime.target import Target
from emulator.p4runtime.write import write_batch
from tests.emulator.p4runtime.fake_switch import PROGRAM_DEFAULT
from tests.emulator.p4runtime.messages import (
    ACCESS,
    DELETE,
    DROP,
    FIXED,
    FLOW,
    INSERT,
    KEYLESS,
    LEVEL,
    MODIFY,
    ROUTING,
    counter,
    direct_counter,
    exact,
    flow_key,
    lpm,
    optional,
    set_level,
    table_entry,
    ternary,
)
from tests.emulator.p4runtime.writing import put, write

FLOW_KEY = EntryKey((FieldMatch(10, 0xFFFFFFFF), FieldMatch(80, 0xFFF)))
COUNTED = "counter_data { packet_count: 3 byte_count: 300 }"


# ---- table entries --------------------------------------------------------------------------------------------------


def test_insert_modify_and_delete_an_entry(target: Target) -> None:
    put(target, table_entry(f"{flow_key()} {set_level(5)} {COUNTED}"))
    assert target.switch.entry("Ingress.flow", FLOW_KEY) == ActionCall("Ingress.set_level", (5,))
    assert target.switch.direct_counter("Ingress.flow", FLOW_KEY) == CounterValue(3, 300)
    assert write(target, MODIFY, table_entry(f"{flow_key()} {set_level(6)}")).canonical_code == rpc_code.OK
    assert target.switch.entry("Ingress.flow", FLOW_KEY) == ActionCall("Ingress.set_level", (6,))
    assert target.switch.direct_counter("Ingress.flow", FLOW_KEY) == CounterValue(3, 300)
    assert write(target, DELETE, table_entry(flow_key())).canonical_code == rpc_code.OK
    assert list(target.switch.entries("Ingress.flow")) == []


def test_modify_without_an_action_keeps_it(target: Target) -> None:
    put(target, table_entry(f"{flow_key()} {set_level(5)}"))
    assert write(target, MODIFY, table_entry(f"{flow_key()} {COUNTED}")).canonical_code == rpc_code.OK
    assert target.switch.entry("Ingress.flow", FLOW_KEY) == ActionCall("Ingress.set_level", (5,))
    assert target.switch.direct_counter("Ingress.flow", FLOW_KEY) == CounterValue(3, 300)


def test_delete_looks_at_the_key_alone(target: Target) -> None:
    put(target, table_entry(f"{flow_key()} {set_level(5)}"))
    nonsense = "action { action { action_id: 99 } } meter_config {} idle_timeout_ns: 5"
    assert write(target, DELETE, table_entry(f"{flow_key()} {nonsense}")).canonical_code == rpc_code.OK


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (f"{ACCESS} priority: 7", EntryKey((FieldMatch(0, 0), FieldMatch(0, 0)), 7)),
        (
            f"{ACCESS} priority: 7 {ternary(0x10, 0xF0)}",
            EntryKey((FieldMatch(0x10, 0xF0), FieldMatch(0, 0)), 7),
        ),
        (
            f"{ACCESS} priority: 1 {optional(2, 6)}",
            EntryKey((FieldMatch(0, 0), FieldMatch(6, 0xFF)), 1),
        ),
    ],
)
def test_fields_left_out_match_everything(target: Target, text: str, key: EntryKey) -> None:
    put(target, table_entry(f"{text} {DROP}"))
    assert target.switch.entry("Ingress.access", key) == ActionCall("Ingress.drop")


def test_the_default_entry_is_set_and_reset(target: Target) -> None:
    result = write(target, MODIFY, table_entry(f"{LEVEL} is_default_action: true {set_level(4)}"))
    assert result.canonical_code == rpc_code.OK
    assert target.switch.default("Ingress.level") == ActionCall("Ingress.set_level", (4,))
    assert write(target, MODIFY, table_entry(f"{LEVEL} is_default_action: true")).canonical_code == rpc_code.OK
    assert target.switch.default("Ingress.level") == PROGRAM_DEFAULT


@pytest.mark.parametrize(
    ("kind", "text", "code"),
    [
        (INSERT, f"{flow_key()} {set_level(5)}", rpc_code.ALREADY_EXISTS),
        (MODIFY, f"{flow_key(33)} {set_level(5)}", rpc_code.NOT_FOUND),
        (MODIFY, flow_key(33), rpc_code.NOT_FOUND),
        (DELETE, flow_key(33), rpc_code.NOT_FOUND),
        (INSERT, f"table_id: 99 {set_level(5)}", rpc_code.INVALID_ARGUMENT),
        (INSERT, set_level(5), rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{flow_key(33)}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{flow_key(33)} action {{}}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{flow_key(33)} {set_level(5)} priority: 1", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{flow_key(33)} {set_level(5)} is_const: true", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{flow_key(33)} {set_level(5)} idle_timeout_ns: 1", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{flow_key(33)} {set_level(5)} meter_config {{}}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{flow_key(33)} {set_level(5)} meter_counter_data {{}}", rpc_code.UNIMPLEMENTED),
        (INSERT, f"{flow_key(33)} {set_level(5)} counter_data {{ packet_count: -1 }}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{FLOW} {exact(1, 33)} {set_level(5)}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{flow_key(33)} {exact(3, 33)} {set_level(5)}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{flow_key(33)} {exact(1, 33)} {set_level(5)}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{FLOW} {ternary(33, 33)} {exact(2, 33)} {set_level(5)}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{FLOW} match {{ field_id: 1 }} {exact(2, 33)} {set_level(5)}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{FLOW} {exact(1, 33)} {exact(2, 0x1000)} {set_level(5)}", rpc_code.OUT_OF_RANGE),
        (INSERT, f"{FLOW} {exact(1, 33)} {exact(2, b'')} {set_level(5)}", rpc_code.OUT_OF_RANGE),
        (INSERT, f"{flow_key(33)} {set_level(8)}", rpc_code.OUT_OF_RANGE),
        (INSERT, f"{flow_key(33)} action {{ action {{ action_id: 0x01000001 }} }}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{flow_key(33)} {DROP}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{flow_key(33)} action {{ action {{ action_id: 99 }} }}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{flow_key(33)} action {{ action {{ action_id: 0x01000002 }} }}", rpc_code.PERMISSION_DENIED),
        (INSERT, f"{flow_key(33)} action {{ action_profile_member_id: 1 }}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{LEVEL} {exact(1, 33)} {set_level(1)} counter_data {{}}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{KEYLESS} {set_level(1)}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{ACCESS} {DROP}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{ACCESS} {DROP} priority: -1", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{ACCESS} {DROP} priority: 1 {ternary(0x11, 0xF0)}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{ACCESS} {DROP} priority: 1 {ternary(0, 0)}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{ROUTING} {set_level(1)}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{ROUTING} action {{ action_profile_member_id: 0 }}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{ROUTING} action {{ action_profile_member_id: 9 }}", rpc_code.NOT_FOUND),
        (INSERT, f"{ROUTING} action {{ action_profile_group_id: 9 }}", rpc_code.NOT_FOUND),
        (INSERT, f"{ROUTING} {lpm(0x0A010000, 8)} {DROP}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{ROUTING} {lpm(0, 0)} {DROP}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{ROUTING} {lpm(0, 33)} {DROP}", rpc_code.INVALID_ARGUMENT),
        (INSERT, f"{FIXED} {exact(1, 33)} {set_level(1)}", rpc_code.PERMISSION_DENIED),
        (MODIFY, f"{FIXED} {exact(1, 9)} {set_level(1)}", rpc_code.PERMISSION_DENIED),
        (DELETE, f"{FIXED} {exact(1, 9)}", rpc_code.PERMISSION_DENIED),
        (INSERT, f"{LEVEL} is_default_action: true {set_level(1)}", rpc_code.INVALID_ARGUMENT),
        (DELETE, f"{LEVEL} is_default_action: true", rpc_code.INVALID_ARGUMENT),
        (MODIFY, f"{LEVEL} {exact(1, 33)} is_default_action: true {set_level(1)}", rpc_code.INVALID_ARGUMENT),
        (MODIFY, f"{LEVEL} is_default_action: true {DROP}", rpc_code.PERMISSION_DENIED),
        (MODIFY, f"{FLOW} is_default_action: true {set_level(1)}", rpc_code.PERMISSION_DENIED),
        (MODIFY, f"{ROUTING} is_default_action: true", rpc_code.PERMISSION_DENIED),
    ],
)
def test_refused_table_entries(
    target: Target, kind: p4r.Update.Type.ValueType, text: str, code: rpc_code.Code.ValueType
) -> None:
    put(target, table_entry(f"{flow_key()} {set_level(3)}"))
    result = write(target, kind, table_entry(text))
    assert result.canonical_code == code, result.message
    assert result.message
    assert dict(target.switch.entries("Ingress.flow")) == {FLOW_KEY: ActionCall("Ingress.set_level", (3,))}
    for table in ("level", "access", "routing"):
        assert list(target.switch.entries(f"Ingress.{table}")) == []
    assert target.switch.default("Ingress.level") == PROGRAM_DEFAULT


# ---- counters -------------------------------------------------------------------------------------------------------


def test_counters_are_set_one_by_one_or_all(target: Target) -> None:
    data = "data { packet_count: 3 byte_count: 300 }"
    assert write(target, MODIFY, counter(f"counter_id: 0x12000001 index {{ index: 2 }} {data}")).canonical_code == 0
    assert [target.switch.counter("Egress.levels", index).packets for index in range(4)] == [0, 0, 3, 0]
    assert write(target, MODIFY, counter(f"counter_id: 0x12000001 {data}")).canonical_code == 0
    assert {target.switch.counter("Egress.levels", index) for index in range(8)} == {CounterValue(3, 300)}


def test_a_direct_counter_is_set(target: Target) -> None:
    put(target, table_entry(f"{flow_key()} {set_level(5)}"))
    text = f"table_entry {{ {flow_key()} }} data {{ packet_count: 3 byte_count: 300 }}"
    assert write(target, MODIFY, direct_counter(text)).canonical_code == rpc_code.OK
    assert target.switch.direct_counter("Ingress.flow", FLOW_KEY) == CounterValue(3, 300)


@pytest.mark.parametrize(
    ("kind", "entity", "code"),
    [
        (INSERT, counter("counter_id: 0x12000001"), rpc_code.INVALID_ARGUMENT),
        (DELETE, counter("counter_id: 0x12000001"), rpc_code.INVALID_ARGUMENT),
        (MODIFY, counter("counter_id: 7"), rpc_code.INVALID_ARGUMENT),
        (MODIFY, counter("counter_id: 0x12000001 index { index: -1 } data {}"), rpc_code.INVALID_ARGUMENT),
        (MODIFY, counter("counter_id: 0x12000001 index { index: 8 } data {}"), rpc_code.OUT_OF_RANGE),
        (INSERT, direct_counter(f"table_entry {{ {flow_key()} }}"), rpc_code.INVALID_ARGUMENT),
        (MODIFY, direct_counter(f"table_entry {{ {flow_key()} }} data {{}}"), rpc_code.NOT_FOUND),
        (MODIFY, direct_counter(f"table_entry {{ {LEVEL} {exact(1, 33)} }} data {{}}"), rpc_code.INVALID_ARGUMENT),
        (MODIFY, direct_counter(""), rpc_code.INVALID_ARGUMENT),
    ],
)
def test_refused_counters(
    target: Target, kind: p4r.Update.Type.ValueType, entity: p4r.Entity, code: rpc_code.Code.ValueType
) -> None:
    assert write(target, kind, entity).canonical_code == code


# ---- batches --------------------------------------------------------------------------------------------------------


def test_a_batch_goes_on_after_an_error_and_tells_of_each_update(target: Target) -> None:
    updates = [
        p4r.Update(type=INSERT, entity=table_entry(f"{flow_key()} {set_level(5)}")),
        p4r.Update(type=INSERT, entity=table_entry(f"{flow_key()} {set_level(6)}")),
        p4r.Update(type=INSERT, entity=table_entry(f"{flow_key(33)} {set_level(6)}")),
        p4r.Update(type=INSERT),
        p4r.Update(entity=table_entry(flow_key())),
        p4r.Update(type=INSERT, entity=p4r.Entity(extern_entry=p4r.ExternEntry())),
        p4r.Update(type=cast(p4r.Update.Type.ValueType, 17), entity=table_entry(flow_key())),
    ]
    with pytest.raises(BatchError, match="5 of 7 updates failed") as error:
        write_batch(target, updates)
    assert [result.canonical_code for result in error.value.results] == [
        rpc_code.OK,
        rpc_code.ALREADY_EXISTS,
        rpc_code.OK,
        rpc_code.INVALID_ARGUMENT,
        rpc_code.INVALID_ARGUMENT,
        rpc_code.UNIMPLEMENTED,
        rpc_code.INVALID_ARGUMENT,
    ]
    assert "type is not set" in error.value.results[4].message
    assert "extern_entry" in error.value.results[5].message
    assert "the unknown number 17" in error.value.results[6].message
    assert len(list(target.switch.entries("Ingress.flow"))) == 2


def test_a_full_table_is_resource_exhausted(target: Target) -> None:
    put(target, *(table_entry(f"{flow_key(source)} {set_level(1)}") for source in range(65, 69)))
    result = write(target, INSERT, table_entry(f"{flow_key(69)} {set_level(1)}"))
    assert result.canonical_code == rpc_code.RESOURCE_EXHAUSTED
