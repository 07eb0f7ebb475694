"""The difference is complete, minimal, and never leaves a reference dangling."""

from collections.abc import Iterable

import pytest
from finsy import (
    P4ActionProfileGroup,
    P4ActionProfileMember,
    P4IndirectAction,
    P4Member,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.southbound.p4runtime.entries import Entity, holds_same, key_of
from controller.southbound.p4runtime.states import State, Update, difference, state_of
from controller.southbound.states import EntryKey, EntryKind, UpdateKind


class ModelSwitch:
    """Carries out updates one by one; raises AssertionError where one is impossible or leaves a dangling reference."""

    def __init__(self, entities: Iterable[Entity] = ()) -> None:
        self.held = {key_of(entity): entity for entity in entities}

    def carry_out(self, update: Update) -> None:
        key = key_of(update.entity)
        match update.kind:
            case UpdateKind.INSERT:
                assert key not in self.held
                assert key.kind is not EntryKind.SETTING
                self.held[key] = update.entity
            case UpdateKind.MODIFY:
                assert key in self.held or key.kind is EntryKind.SETTING
                self.held[key] = update.entity
            case UpdateKind.DELETE:
                assert key.kind is not EntryKind.SETTING
                del self.held[key]
        assert self.dangling() == []

    def dangling(self) -> list[EntryKey]:
        """What is referred to and not held."""
        return [key for entity in self.held.values() for key in _references(entity) if key not in self.held]


def _references(entity: Entity) -> list[EntryKey]:
    match entity:
        case P4ActionProfileGroup():
            return [EntryKey(EntryKind.MEMBER, member.member_id) for member in entity.members or ()]
        case P4ActionProfileMember():
            return _next_hop_of(entity.action)
    match entity.action:
        case P4IndirectAction(group_id=int(group)):
            return [EntryKey(EntryKind.GROUP, group)]
        case P4TableAction() as action:
            return _next_hop_of(action)
    return []


def _next_hop_of(action: P4TableAction | None) -> list[EntryKey]:
    if action is None or "next_hop" not in action.args:
        return []
    return [EntryKey(EntryKind.NEXT_HOP, (("next_hop", action.args["next_hop"]),))]


PORTS = st.integers(1, 4)


@st.composite
def states(draw: st.DrawFn) -> State:
    """A state in which every reference is held."""
    next_hops = draw(st.dictionaries(PORTS, st.integers(0, 1), min_size=1))
    ports = st.sampled_from(sorted(next_hops))
    members = draw(st.dictionaries(st.integers(1, 3), ports, min_size=1))
    member_ids = st.lists(st.sampled_from(sorted(members)), min_size=1, max_size=3, unique=True)
    groups = draw(st.dictionaries(st.integers(1, 2), member_ids, min_size=1))
    routes = draw(st.dictionaries(st.integers(0, 3), st.sampled_from(sorted(groups))))
    flows = draw(st.dictionaries(st.integers(0, 3), ports))
    entities: list[Entity] = [
        P4TableEntry("node", action=P4TableAction("set_node", hash_multiplier=draw(PORTS)), is_default_action=True)
    ]
    entities += [_table_entry("next_hop", {"next_hop": n}, "forward", port=p) for n, p in next_hops.items()]
    entities += [
        P4ActionProfileMember("ecmp", member_id=n, action=P4TableAction("set_next_hop", next_hop=port))
        for n, port in members.items()
    ]
    entities += [
        P4ActionProfileGroup("ecmp", group_id=n, members=[P4Member(member, weight=1) for member in ids])
        for n, ids in groups.items()
    ]
    entities += [
        P4TableEntry("routing", match=P4TableMatch(destination_address=(n, 32)), action=P4IndirectAction(group_id=g))
        for n, g in routes.items()
    ]
    entities += [_table_entry("flow", {"source_port": n}, "steer", next_hop=port) for n, port in flows.items()]
    return state_of(entities)


def _table_entry(table: str, match: dict[str, int], action: str, **arguments: int) -> P4TableEntry:
    return P4TableEntry(table, match=P4TableMatch(match), action=P4TableAction(action, **arguments))


@pytest.mark.slow
@given(states(), states())
@settings(max_examples=150, deadline=None)
def test_updates_lead_from_held_to_desired_without_dangling_references(held: State, desired: State) -> None:
    switch = ModelSwitch(held.values())
    for stage in difference(held, desired):
        for update in stage:
            switch.carry_out(update)
    assert switch.held == desired


@given(states(), states())
@settings(max_examples=50, deadline=None)
def test_updates_of_one_stage_may_come_in_any_order(held: State, desired: State) -> None:
    switch = ModelSwitch(held.values())
    for stage in difference(held, desired):
        for update in reversed(stage):
            switch.carry_out(update)
    assert switch.held == desired


@given(states(), states())
@settings(max_examples=50, deadline=None)
def test_nothing_is_written_that_is_held_already(held: State, desired: State) -> None:
    assert difference(desired, desired) == ()
    for update in _flat(difference(held, desired)):
        if update.kind is UpdateKind.MODIFY:
            assert not holds_same(update.entity, held[key_of(update.entity)])


def test_default_entry_is_modified_never_inserted_or_deleted() -> None:
    node = P4TableEntry("node", action=P4TableAction("set_node", hash_multiplier=3), is_default_action=True)
    assert [update.kind for update in _flat(difference({}, state_of([node])))] == [UpdateKind.MODIFY]
    assert difference(state_of([node]), {}) == ()


def test_order_of_the_members_of_a_group_counts() -> None:
    def group(*members: int) -> State:
        return state_of([P4ActionProfileGroup("ecmp", group_id=1, members=[P4Member(n, weight=1) for n in members])])

    (update,) = _flat(difference(group(1, 2), group(2, 1)))
    assert update.kind is UpdateKind.MODIFY


def test_limits_that_a_switch_reports_for_a_group_are_no_difference() -> None:
    members = [P4Member(1, weight=1)]
    held = state_of([P4ActionProfileGroup("ecmp", group_id=1, members=members, max_size=64)])
    assert difference(held, state_of([P4ActionProfileGroup("ecmp", group_id=1, members=members)])) == ()


def _flat(stages: Iterable[Iterable[Update]]) -> list[Update]:
    return [update for stage in stages for update in stage]
