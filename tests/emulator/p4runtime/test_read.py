"""What a read selects, and that it comes back as it was written, in canonical form."""

import pytest
from finsy.proto import p4r, rpc_code
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from emulator.p4runtime.read import MAX_RESPONSE_BYTES, read_batch, responses
from emulator.p4runtime.target import Target
from emulator.p4runtime.write import write_batch
from tests.emulator.p4runtime.messages import (
    ACCESS,
    DROP,
    FIXED,
    FLOW,
    INSERT,
    LEVEL,
    MODIFY,
    ROUTING,
    counter,
    direct_counter,
    exact,
    flow_key,
    group,
    lpm,
    member,
    one_shot,
    optional,
    out,
    route,
    set_level,
    table_entry,
    ternary,
)

FLOW_ENTRY = table_entry(
    f"{flow_key()} {set_level(5)} counter_data {{ packet_count: 3 byte_count: 300 }} "
    'metadata: "mine" controller_metadata: 7'
)
LEVEL_ENTRY = table_entry(f"{LEVEL} {exact(1, 46)} {set_level(2)}")
ACCESS_ENTRIES = (
    table_entry(f"{ACCESS} priority: 7 {ternary(0x10, 0xF0)} {DROP}"),
    table_entry(f"{ACCESS} priority: 8 {DROP}"),
    table_entry(f"{ACCESS} priority: 8 {optional(2, 6)} {set_level(1)}"),
)
FIXED_ENTRY = table_entry(f"{FIXED} {exact(1, 9)} {set_level(5)} is_const: true")
MEMBERS = (member(1, port=1), member(2, port=2))
GROUP = group(4, {1: 1, 2: 3})
ROUTES = (
    route(lpm(0x0A000000, 8), "action_profile_group_id: 4"),
    route("", "action_profile_member_id: 2"),
)


@pytest.fixture
def filled(target: Target) -> Target:
    """A switch that has something in each table."""
    for entity in (FLOW_ENTRY, LEVEL_ENTRY, *ACCESS_ENTRIES, *MEMBERS, GROUP, *ROUTES):
        write_batch(target, [p4r.Update(type=INSERT, entity=entity)])
    return target


def read(target: Target, request: p4r.Entity) -> list[p4r.Entity]:
    """What one request selects; it must not fail."""
    entities, (result,) = read_batch(target, [request])
    assert result.canonical_code == rpc_code.OK, result.message
    return entities


def uncounted(entity: p4r.Entity) -> p4r.Entity:
    """A table entry as it is read where its counter is not asked for."""
    copy = p4r.Entity()
    copy.CopyFrom(entity)
    copy.table_entry.ClearField("counter_data")
    return copy


@pytest.mark.parametrize(
    ("request_text", "expected"),
    [
        ("", [uncounted(FLOW_ENTRY), LEVEL_ENTRY, *ROUTES, *ACCESS_ENTRIES, FIXED_ENTRY]),
        ("counter_data {}", [FLOW_ENTRY, LEVEL_ENTRY, *ROUTES, *ACCESS_ENTRIES, FIXED_ENTRY]),
        (f"{FLOW} counter_data {{}}", [FLOW_ENTRY]),
        (flow_key(), [uncounted(FLOW_ENTRY)]),
        (flow_key(33), []),
        (f'{FLOW} metadata: "mine"', [uncounted(FLOW_ENTRY)]),
        (f'{FLOW} metadata: "yours"', []),
        (f"{FLOW} controller_metadata: 7", [uncounted(FLOW_ENTRY)]),
        (f"{FLOW} controller_metadata: 8", []),
        (f"{ACCESS} priority: 8", list(ACCESS_ENTRIES[1:])),
        (f"{ACCESS} {ternary(0x10, 0xF0)}", [ACCESS_ENTRIES[0]]),
        (f"{ACCESS} {ternary(0x10, 0xF0)} priority: 8", []),
        (f"{ACCESS} action {{ action {{ action_id: 0x01000003 }} }}", list(ACCESS_ENTRIES[:2])),
        (ROUTING, list(ROUTES)),
        (f"{ROUTING} {lpm(0x0A000000, 8)}", [ROUTES[0]]),
        (f"{LEVEL} is_default_action: true", [table_entry(f"{LEVEL} is_default_action: true {set_level(0)}")]),
    ],
)
def test_table_entries(filled: Target, request_text: str, expected: list[p4r.Entity]) -> None:
    assert read(filled, table_entry(request_text)) == expected


def test_default_entries_of_all_tables_but_the_indirect_ones(filled: Target) -> None:
    entries = read(filled, table_entry("is_default_action: true"))
    assert [entity.table_entry.table_id & 0xFF for entity in entries] == [1, 2, 4, 5, 6]


def test_leading_zeros_are_gone_when_read(target: Target) -> None:
    padded = table_entry(f"{FLOW} {exact(1, bytes([0, 0, 0, 10]))} {exact(2, bytes([0, 80]))} {set_level(5)}")
    write_batch(target, [p4r.Update(type=INSERT, entity=padded)])
    assert read(target, table_entry(FLOW)) == [table_entry(f"{flow_key()} {set_level(5)}")]


def test_modify_replaces_metadata(filled: Target) -> None:
    write_batch(filled, [p4r.Update(type=MODIFY, entity=table_entry(f"{flow_key()} {set_level(5)}"))])
    assert read(filled, table_entry(FLOW)) == [table_entry(f"{flow_key()} {set_level(5)}")]


def profile(kind: str, text: str) -> p4r.Entity:
    return text_format.Parse(f"{kind} {{ {text} }}", p4r.Entity())


@pytest.mark.parametrize(
    ("request_entity", "expected"),
    [
        (profile("action_profile_member", ""), list(MEMBERS)),
        (profile("action_profile_member", "action_profile_id: 0x11000001"), list(MEMBERS)),
        (profile("action_profile_member", "action_profile_id: 0x11000001 member_id: 2"), [MEMBERS[1]]),
        (profile("action_profile_member", "action_profile_id: 0x11000001 member_id: 3"), []),
        (profile("action_profile_group", ""), [GROUP]),
        (profile("action_profile_group", "action_profile_id: 0x11000001 group_id: 4"), [GROUP]),
        (profile("action_profile_group", "action_profile_id: 0x11000001 group_id: 5"), []),
    ],
)
def test_members_and_groups(filled: Target, request_entity: p4r.Entity, expected: list[p4r.Entity]) -> None:
    assert read(filled, request_entity) == expected


def test_watch_ports_are_byte_strings_however_they_were_written(target: Target) -> None:
    numeric = group(4, {1: 1, 2: 3}, watch_ports={1: b"\0\0\1"})
    numeric.action_profile_group.members[1].watch = 3
    for entity in (*MEMBERS, numeric):
        write_batch(target, [p4r.Update(type=INSERT, entity=entity)])
    expected = group(4, {1: 1, 2: 3}, watch_ports={1: b"\1", 2: b"\3"})
    assert read(target, profile("action_profile_group", "")) == [expected]


def test_action_sets_come_back_action_by_action(target: Target) -> None:
    written = (
        route("", one_shot(out(1, 2) + ' watch_port: "\\001"', out(1, 2), out(2))),
        route(lpm(0x0A000000, 8), one_shot(out(3)).replace("{", "{ action_selection_mode: HASH ", 1)),
        route(lpm(0x0B000000, 8), one_shot()),
    )
    for entity in written:
        write_batch(target, [p4r.Update(type=INSERT, entity=entity)])
    assert read(target, table_entry(ROUTING)) == list(written)
    keeps_its_actions = table_entry(f"{ROUTING} {lpm(0x0A000000, 8)} controller_metadata: 7")
    write_batch(target, [p4r.Update(type=MODIFY, entity=keeps_its_actions)])
    (entity,) = read(target, keeps_its_actions)
    assert entity.table_entry.action == written[1].table_entry.action
    write_batch(target, [p4r.Update(type=MODIFY, entity=written[0])])
    assert read(target, table_entry(ROUTING))[0] == written[0]


def test_counters(target: Target) -> None:
    cell = counter("counter_id: 0x12000001 index { index: 2 } data { packet_count: 3 byte_count: 300 }")
    write_batch(target, [p4r.Update(type=MODIFY, entity=cell)])
    assert read(target, counter("counter_id: 0x12000001 index { index: 2 }")) == [cell]
    for request_text in ("", "counter_id: 0x12000001"):
        cells = read(target, counter(request_text))
        assert [entity.counter_entry.index.index for entity in cells] == list(range(8))
        assert [entity.counter_entry.data.packet_count for entity in cells] == [0, 0, 3, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("selector", ["", f"table_entry {{ {FLOW} }}", f"table_entry {{ {flow_key()} }}"])
def test_direct_counters(filled: Target, selector: str) -> None:
    expected = direct_counter(f"table_entry {{ {flow_key()} }} data {{ packet_count: 3 byte_count: 300 }}")
    assert read(filled, direct_counter(selector)) == [expected]


@pytest.mark.parametrize(
    ("request_entity", "code"),
    [
        (p4r.Entity(), rpc_code.INVALID_ARGUMENT),
        (p4r.Entity(meter_entry=p4r.MeterEntry(meter_id=9)), rpc_code.INVALID_ARGUMENT),
        (p4r.Entity(register_entry=p4r.RegisterEntry(register_id=9)), rpc_code.INVALID_ARGUMENT),
        (p4r.Entity(extern_entry=p4r.ExternEntry()), rpc_code.UNIMPLEMENTED),
        (table_entry("table_id: 99"), rpc_code.INVALID_ARGUMENT),
        (table_entry("priority: 5"), rpc_code.INVALID_ARGUMENT),
        (table_entry(f"{FLOW} {exact(1, 33)}"), rpc_code.INVALID_ARGUMENT),
        (table_entry(f"{FLOW} time_since_last_hit {{}}"), rpc_code.INVALID_ARGUMENT),
        (table_entry(f"{FLOW} is_default_action: true counter_data {{}}"), rpc_code.UNIMPLEMENTED),
        (table_entry(f"{FLOW} meter_counter_data {{}}"), rpc_code.UNIMPLEMENTED),
        (profile("action_profile_member", "member_id: 2"), rpc_code.INVALID_ARGUMENT),
        (profile("action_profile_group", "action_profile_id: 5"), rpc_code.INVALID_ARGUMENT),
        (counter("index { index: 2 }"), rpc_code.INVALID_ARGUMENT),
        (counter("counter_id: 0x12000001 index { index: 8 }"), rpc_code.OUT_OF_RANGE),
        (direct_counter(f"table_entry {{ {flow_key(33)} }}"), rpc_code.NOT_FOUND),
        (direct_counter(f"table_entry {{ {LEVEL} }}"), rpc_code.INVALID_ARGUMENT),
    ],
)
def test_refused_reads_leave_the_others_alone(
    filled: Target, request_entity: p4r.Entity, code: rpc_code.Code.ValueType
) -> None:
    entities, results = read_batch(filled, [table_entry(FLOW), request_entity, table_entry(LEVEL)])
    assert entities == [uncounted(FLOW_ENTRY), LEVEL_ENTRY]
    assert [result.canonical_code for result in results] == [rpc_code.OK, code, rpc_code.OK]


@given(st.lists(st.integers(0, MAX_RESPONSE_BYTES // 2), max_size=12))
def test_responses_hold_everything_in_messages_of_limited_size(sizes_bytes: list[int]) -> None:
    entities = [p4r.Entity(table_entry=p4r.TableEntry(metadata=bytes(size))) for size in sizes_bytes]
    messages = list(responses(entities))
    assert [entity for message in messages for entity in message.entities] == entities
    assert all(message.ByteSize() <= MAX_RESPONSE_BYTES for message in messages)
    assert all(message.entities for message in messages)
