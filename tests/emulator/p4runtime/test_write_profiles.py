"""Members, groups and one-shot action sets: what may be written, and which error says that it may not."""

from pathlib import Path

import pytest
from finsy.proto import p4r, rpc_code

from emulator.entries import (
    ActionCall,
    ActionSet,
    EntryKey,
    FieldMatch,
    GroupReference,
    MemberReference,
    WeightedAction,
)
from emulator.p4runtime.pipeline import compiled_pipeline
from emulator.p4runtime.target import Target
from tests.emulator.p4runtime.messages import (
    DELETE,
    INSERT,
    MODIFY,
    ROUTING,
    group,
    lpm,
    member,
    one_shot,
    out,
    route,
    table_entry,
)
from tests.emulator.p4runtime.writing import put, write

# ---- action profiles ------------------------------------------------------------------------------------------------


def test_members_groups_and_routes(target: Target) -> None:
    put(target, member(1, port=1), member(2, port=2), group(1, {1: 1, 2: 3}))
    assert target.switch.members("Ingress.ecmp")[2] == ActionCall("Ingress.forward", (2, 0x020000000001))
    assert target.switch.groups("Ingress.ecmp") == {1: (1, 2, 2, 2)}
    put(target, route(lpm(0x0A000000, 8), "action_profile_group_id: 1"), route("", "action_profile_member_id: 2"))
    assert dict(target.switch.entries("Ingress.routing")) == {
        EntryKey((FieldMatch(0x0A000000, 0xFF000000),)): GroupReference(1),
        EntryKey((FieldMatch(0, 0),)): MemberReference(2),
    }
    assert write(target, MODIFY, group(1, {2: 1})).canonical_code == rpc_code.OK
    assert target.switch.groups("Ingress.ecmp") == {1: (2,)}


def test_what_is_used_cannot_be_deleted_until_it_is_not(target: Target) -> None:
    put(target, member(1), member(2), group(1, {1: 1}))
    put(target, route("", "action_profile_group_id: 1"), route(lpm(0x0A000000, 8), "action_profile_member_id: 2"))
    for entity in (member(1), member(2), group(1, {})):
        assert write(target, DELETE, entity).canonical_code == rpc_code.FAILED_PRECONDITION
    in_order = (
        table_entry(ROUTING),
        table_entry(f"{ROUTING} {lpm(0x0A000000, 8)}"),
        group(1, {}),
        member(1),
        member(2),
    )
    for entity in in_order:
        assert write(target, DELETE, entity).canonical_code == rpc_code.OK


def _watching(port: bytes) -> p4r.Entity:
    entity = group(2, {1: 1})
    entity.action_profile_group.members[0].watch_port = port
    return entity


def _twice() -> p4r.Entity:
    entity = group(2, {1: 1})
    entity.action_profile_group.members.add(member_id=1, weight=1)
    return entity


def _foreign(entity: p4r.Entity) -> p4r.Entity:
    entity.action_profile_member.action.action_id = 0x01000001
    return entity


def _elsewhere(entity: p4r.Entity) -> p4r.Entity:
    entity.action_profile_member.action_profile_id = 5
    return entity


def _without_action(entity: p4r.Entity) -> p4r.Entity:
    entity.action_profile_member.ClearField("action")
    return entity


@pytest.mark.parametrize(
    ("kind", "entity", "code"),
    [
        (INSERT, member(1), rpc_code.ALREADY_EXISTS),
        (INSERT, member(0), rpc_code.INVALID_ARGUMENT),
        (INSERT, _foreign(member(2)), rpc_code.INVALID_ARGUMENT),
        (INSERT, _elsewhere(member(2)), rpc_code.INVALID_ARGUMENT),
        (INSERT, _without_action(member(2)), rpc_code.INVALID_ARGUMENT),
        (MODIFY, member(2), rpc_code.NOT_FOUND),
        (DELETE, member(2), rpc_code.NOT_FOUND),
        (INSERT, group(1, {1: 1}), rpc_code.ALREADY_EXISTS),
        (INSERT, group(0, {1: 1}), rpc_code.INVALID_ARGUMENT),
        (INSERT, group(2, {9: 1}), rpc_code.NOT_FOUND),
        (INSERT, group(2, {1: 0}), rpc_code.INVALID_ARGUMENT),
        (INSERT, group(2, {1: 9}), rpc_code.RESOURCE_EXHAUSTED),
        (INSERT, group(2, {1: 2**31 - 1}), rpc_code.RESOURCE_EXHAUSTED),
        (INSERT, group(2, {1: 1}, max_size=0), rpc_code.INVALID_ARGUMENT),
        (INSERT, group(2, {1: 1}, max_size=17), rpc_code.INVALID_ARGUMENT),
        (INSERT, _watching(b"\7"), rpc_code.INVALID_ARGUMENT),
        (INSERT, _watching(b"\1\0\0\0\0"), rpc_code.OUT_OF_RANGE),
        (INSERT, _twice(), rpc_code.INVALID_ARGUMENT),
        (MODIFY, group(1, {1: 1}, max_size=9), rpc_code.INVALID_ARGUMENT),
        (MODIFY, group(2, {1: 1}), rpc_code.NOT_FOUND),
        (DELETE, group(2, {}), rpc_code.NOT_FOUND),
    ],
)
def test_refused_members_and_groups(
    target: Target, kind: p4r.Update.Type.ValueType, entity: p4r.Entity, code: rpc_code.Code.ValueType
) -> None:
    put(target, member(1), group(1, {1: 1}))
    result = write(target, kind, entity)
    assert result.canonical_code == code, result.message
    assert list(target.switch.members("Ingress.ecmp")) == [1]
    assert target.switch.groups("Ingress.ecmp") == {1: (1,)}


def test_a_group_watches_ports_of_some_members(target: Target) -> None:
    put(target, member(1, port=1), member(2, port=2), member(3, port=3))
    deprecated = group(1, {1: 2, 2: 1, 3: 1}, watch_ports={1: b"\0\1"})
    deprecated.action_profile_group.members[1].watch = 2
    put(target, deprecated)
    assert target.switch.groups("Ingress.ecmp") == {1: (1, 1, 2, 3)}
    assert target.switch.watch_ports("Ingress.ecmp", 1) == {1: 1, 2: 2}
    assert write(target, MODIFY, group(1, {1: 1}, watch_ports={1: b"\3"})).canonical_code == rpc_code.OK
    assert target.switch.watch_ports("Ingress.ecmp", 1) == {1: 3}


# ---- one-shot action sets -------------------------------------------------------------------------------------------


def test_an_entry_brings_its_own_actions(target: Target) -> None:
    put(target, route("", one_shot(f'{out(1, 2)} watch_port: "\\001"', out(1, 2), f"{out(2)} watch: 3")))
    forward = [ActionCall("Ingress.forward", (port, 1)) for port in (1, 1, 2)]
    assert dict(target.switch.entries("Ingress.routing")) == {
        EntryKey((FieldMatch(0, 0),)): ActionSet(
            (WeightedAction(forward[0], 2, 1), WeightedAction(forward[1], 2), WeightedAction(forward[2], 1, 3))
        )
    }


@pytest.mark.parametrize(
    ("action", "code"),
    [
        (one_shot(out(1, 0)), rpc_code.INVALID_ARGUMENT),
        (one_shot(out(1, -1)), rpc_code.INVALID_ARGUMENT),
        (one_shot(out(1, 9), out(2, 8)), rpc_code.INVALID_ARGUMENT),
        (one_shot(out(0x200)), rpc_code.OUT_OF_RANGE),
        (one_shot(out(1) + " watch: 4"), rpc_code.INVALID_ARGUMENT),
        (one_shot("weight: 1"), rpc_code.INVALID_ARGUMENT),
        (one_shot("action { action_id: 0x01000001 } weight: 1"), rpc_code.INVALID_ARGUMENT),
        ("action_profile_action_set { action_selection_mode: RANDOM }", rpc_code.UNIMPLEMENTED),
        ("action_profile_action_set { size_semantics: SUM_OF_MEMBERS }", rpc_code.UNIMPLEMENTED),
    ],
)
def test_refused_action_sets(target: Target, action: str, code: rpc_code.Code.ValueType) -> None:
    result = write(target, INSERT, route("", action))
    assert result.canonical_code == code, result.message
    assert list(target.switch.entries("Ingress.routing")) == []


@pytest.fixture
def counting(target: Target, p4info_path: Path, device_config_path: Path) -> Target:
    """The target with groups whose size is the number of their members, of weights up to 4."""
    text = p4info_path.read_text().replace(
        "max_group_size: 16", "max_group_size: 2 sum_of_members { max_member_weight: 4 }"
    )
    assert "sum_of_members" in text
    return Target(target.switch, compiled_pipeline(text, device_config_path.read_bytes()))


def test_the_size_of_a_group_may_be_the_number_of_its_members(counting: Target) -> None:
    for number in (1, 2, 3):
        put(counting, member(number))
    large = group(1, {1: 4, 2: 4})
    large.action_profile_group.max_size = 2
    put(counting, large)
    assert len(counting.switch.groups("Ingress.ecmp")[1]) == 8
    for weights, code in (({1: 5}, rpc_code.INVALID_ARGUMENT), ({1: 1, 2: 1, 3: 1}, rpc_code.RESOURCE_EXHAUSTED)):
        refused = group(2, weights)
        refused.action_profile_group.max_size = 2
        assert write(counting, INSERT, refused).canonical_code == code


def test_so_may_that_of_an_action_set(counting: Target) -> None:
    members = "size_semantics: SUM_OF_MEMBERS"
    whole = one_shot(out(1, 4), out(2, 4))
    put(counting, route("", whole.replace("action_profile_action_set {", f"action_profile_action_set {{ {members}", 1)))
    for wrong, code in (
        (one_shot(out(1, 5)), rpc_code.INVALID_ARGUMENT),
        (one_shot(out(1), out(2), out(3)), rpc_code.INVALID_ARGUMENT),
        ("action_profile_action_set { size_semantics: SUM_OF_WEIGHTS }", rpc_code.UNIMPLEMENTED),
    ):
        assert write(counting, MODIFY, route("", wrong)).canonical_code == code


def test_action_sets_do_not_mix_with_members_and_groups(target: Target) -> None:
    put(target, member(1), route("", one_shot(out(1))))
    by_member = route(lpm(0x0A000000, 8), "action_profile_member_id: 1")
    for kind, entity in ((INSERT, by_member), (INSERT, member(2)), (MODIFY, member(1)), (INSERT, group(1, {1: 1}))):
        result = write(target, kind, entity)
        assert (result.canonical_code, "set" in result.message) == (rpc_code.INVALID_ARGUMENT, True)
    assert write(target, MODIFY, route("", "action_profile_member_id: 1")).canonical_code == rpc_code.OK
    put(target, by_member)
    for kind, prefix in ((MODIFY, ""), (INSERT, lpm(0x0B000000, 8))):
        assert write(target, kind, route(prefix, one_shot(out(1)))).canonical_code == rpc_code.INVALID_ARGUMENT
    assert len(list(target.switch.entries("Ingress.routing"))) == 2
