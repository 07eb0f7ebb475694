"""Tables, profiles and counters of a switch against dictionaries, as its packets see them."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from emulator.entries import (
    ActionCall,
    AlreadyExistsError,
    CounterValue,
    EntryAction,
    EntryKey,
    FieldMatch,
    GroupReference,
    InvalidRequestError,
    MemberReference,
    NotFoundError,
    ResourceExhaustedError,
    SwitchError,
)
from emulator.switch import EmulatedSwitch
from tests.emulator.fabrics import exact, flow_key, prefix
from tests.emulator.lone_switch import LoneSwitch
from tests.emulator.packets import ipv4_packet
from tests.emulator.programs import trainyard
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.ecmp import flow_hash

FLOW, LEVEL, ROUTING, NEXT_HOP = "ingress.flow", "ingress.level", "ingress.routing", "ingress.next_hop"
ECMP, NODE, COUNTER = "ingress.ecmp", "ingress.node", "egress.level_counter"

HOPS = range(1, 8)
FLOWS = [FiveTuple(0x0A000001 + n % 3, 0x0A000100 + n % 5, UDP_PROTOCOL, 49152 + n, 4791) for n in range(300)]
BASES = [0x0A000000, 0x0A00FF00, 0x0A0000FF, 0xFFFFFFFF, 0]
LENGTHS = [0, 1, 8, 16, 23, 24, 25, 31, 32]

STEPS = settings(max_examples=25, stateful_step_count=40, deadline=None)


def with_next_hops() -> LoneSwitch:
    """A switch on which next hop n leads to port n."""
    switch = LoneSwitch(trainyard())
    for hop in HOPS:
        switch.control.insert(NEXT_HOP, exact((hop, 16)), ActionCall("ingress.forward", (hop, 0, 0)))
    return switch


def outcome(error: type[SwitchError] | None, call: Callable[..., Any], *arguments: Any) -> None:
    """The call raises exactly this error, or none."""
    if error is None:
        call(*arguments)
        return
    with pytest.raises(error):
        call(*arguments)


class FlowTable(RuleBasedStateMachine):
    """The table of flows: exact match, direct counters, growth."""

    flows = st.sampled_from(FLOWS)
    hops = st.sampled_from(HOPS)
    levels = st.integers(0, 7)

    @initialize()
    def start(self) -> None:
        self.switch = with_next_hops()
        self.control = self.switch.control
        self.entries: dict[EntryKey, ActionCall] = {}
        self.counts: dict[EntryKey, tuple[int, int]] = {}

    @rule(flow=flows, hop=hops, level=levels)
    def insert(self, flow: FiveTuple, hop: int, level: int) -> None:
        self._insert(flow_key(flow), ActionCall("ingress.steer_and_prioritise", (hop, level)))

    @rule(first=st.integers(0, len(FLOWS) - 1), count=st.integers(1, 120), hop=hops)
    def insert_many(self, first: int, count: int, hop: int) -> None:
        for flow in FLOWS[first : first + count]:
            self._insert(flow_key(flow), ActionCall("ingress.steer_and_prioritise", (hop, 1)))

    @rule(flow=flows, hop=hops, level=levels)
    def modify(self, flow: FiveTuple, hop: int, level: int) -> None:
        key, action = flow_key(flow), ActionCall("ingress.steer_and_prioritise", (hop, level))
        outcome(None if key in self.entries else NotFoundError, self.control.modify, FLOW, key, action)
        if key in self.entries:
            self.entries[key] = action

    @rule(flow=flows)
    def delete(self, flow: FiveTuple) -> None:
        self._delete(flow_key(flow))

    @rule(first=st.integers(0, len(FLOWS) - 1), count=st.integers(1, 120))
    def delete_many(self, first: int, count: int) -> None:
        for flow in FLOWS[first : first + count]:
            self._delete(flow_key(flow))

    @rule(flow=flows, packets=st.integers(0, 2**40), size=st.integers(0, 2**50))
    def set_counter(self, flow: FiveTuple, packets: int, size: int) -> None:
        key, value = flow_key(flow), CounterValue(packets, size)
        known = key in self.entries
        outcome(None if known else NotFoundError, self.control.set_direct_counter, FLOW, key, value)
        if known:
            self.counts[key] = packets, size

    @rule(flow=flows)
    def send(self, flow: FiveTuple) -> None:
        self._send(flow)

    @rule()
    def send_all(self) -> None:
        for flow in FLOWS:
            self._send(flow)

    @rule()
    def clear(self) -> None:
        self.control.clear()
        for hop in HOPS:
            self.control.insert(NEXT_HOP, exact((hop, 16)), ActionCall("ingress.forward", (hop, 0, 0)))
        self.entries.clear()
        self.counts.clear()

    @invariant()
    def entries_and_counters_are_those_of_the_model(self) -> None:
        assert list(self.control.entries(FLOW)) == list(self.entries.items())
        for key, counts in self.counts.items():
            assert self.control.direct_counter(FLOW, key) == CounterValue(*counts)

    def _insert(self, key: EntryKey, action: ActionCall) -> None:
        known = key in self.entries
        outcome(AlreadyExistsError if known else None, self.control.insert, FLOW, key, action)
        if not known:
            self.entries[key], self.counts[key] = action, (0, 0)

    def _delete(self, key: EntryKey) -> None:
        outcome(None if key in self.entries else NotFoundError, self.control.delete, FLOW, key)
        self.entries.pop(key, None)
        self.counts.pop(key, None)

    def _send(self, flow: FiveTuple) -> None:
        key, packet = flow_key(flow), ipv4_packet(flow)
        sent = self.switch.process(packet)
        action = self.entries.get(key)
        assert (sent and (sent.port, sent.level)) == (action and action.arguments)
        if action:
            packets, size = self.counts[key]
            self.counts[key] = packets + 1, size + len(packet)


class Routes(RuleBasedStateMachine):
    """The routing table: longest prefix, members, groups and what refers to them."""

    prefixes = st.builds(prefix, st.sampled_from(BASES), st.sampled_from(LENGTHS))
    members_known = st.integers(1, 6)
    groups_known = st.integers(1, 4)
    references = st.builds(MemberReference, members_known) | st.builds(GroupReference, groups_known)
    member_lists = st.lists(members_known, max_size=12).map(tuple)
    hops = st.sampled_from(HOPS)

    @initialize()
    def start(self) -> None:
        self.switch = with_next_hops()
        self.control = self.switch.control
        self.routes: dict[EntryKey, EntryAction] = {}
        self.members: dict[int, int] = {}
        self.groups: dict[int, tuple[int, ...]] = {}
        for number in (1, 2, 3):
            self.insert_member(number, number)
        self.insert_group(1, (1, 2), 0)
        self.insert(prefix(0, 0), GroupReference(1))

    @rule(member_id=members_known, hop=hops)
    def insert_member(self, member_id: int, hop: int) -> None:
        known = member_id in self.members
        action = ActionCall("ingress.set_next_hop", (hop,))
        outcome(AlreadyExistsError if known else None, self.control.insert_member, ECMP, member_id, action)
        self.members.setdefault(member_id, hop)

    @rule(member_id=members_known, hop=hops)
    def modify_member(self, member_id: int, hop: int) -> None:
        known = member_id in self.members
        action = ActionCall("ingress.set_next_hop", (hop,))
        outcome(None if known else NotFoundError, self.control.modify_member, ECMP, member_id, action)
        if known:
            self.members[member_id] = hop

    @rule(member_id=members_known)
    def delete_member(self, member_id: int) -> None:
        used = MemberReference(member_id) in self.routes.values() or any(
            member_id in group for group in self.groups.values()
        )
        error = InvalidRequestError if used else None if member_id in self.members else NotFoundError
        outcome(error, self.control.delete_member, ECMP, member_id)
        if error is None:
            del self.members[member_id]

    @rule(group_id=groups_known, member_ids=member_lists, room=st.sampled_from([0, 0, 3]))
    def insert_group(self, group_id: int, member_ids: tuple[int, ...], room: int) -> None:
        error: type[SwitchError] | None = None
        if room and len(member_ids) > room:
            error = ResourceExhaustedError
        elif group_id in self.groups:
            error = AlreadyExistsError
        elif not set(member_ids) <= self.members.keys():
            error = NotFoundError
        outcome(error, self.control.insert_group, ECMP, group_id, member_ids, room)
        if error is None:
            self.groups[group_id] = member_ids

    @rule(group_id=groups_known, member_ids=member_lists)
    def modify_group(self, group_id: int, member_ids: tuple[int, ...]) -> None:
        known = group_id in self.groups and set(member_ids) <= self.members.keys()
        outcome(None if known else NotFoundError, self.control.modify_group, ECMP, group_id, member_ids)
        if known:
            self.groups[group_id] = member_ids

    @rule(group_id=groups_known, repeats=st.integers(1, 40), data=st.data())
    def grow_group(self, group_id: int, repeats: int, data: st.DataObject) -> None:
        if group_id in self.groups and self.members:
            member_ids = data.draw(st.permutations(sorted(self.members)))
            self.groups[group_id] = tuple(member_ids) * repeats
            self.control.modify_group(ECMP, group_id, self.groups[group_id])

    @rule(group_id=groups_known)
    def delete_group(self, group_id: int) -> None:
        used = GroupReference(group_id) in self.routes.values()
        error = InvalidRequestError if used else None if group_id in self.groups else NotFoundError
        outcome(error, self.control.delete_group, ECMP, group_id)
        if error is None:
            del self.groups[group_id]

    @rule(key=prefixes, reference=references)
    def insert(self, key: EntryKey, reference: EntryAction) -> None:
        error = NotFoundError if not self._exists(reference) else AlreadyExistsError if key in self.routes else None
        outcome(error, self.control.insert, ROUTING, key, reference)
        if error is None:
            self.routes[key] = reference

    @rule(key=prefixes, reference=references)
    def modify(self, key: EntryKey, reference: EntryAction) -> None:
        known = key in self.routes and self._exists(reference)
        outcome(None if known else NotFoundError, self.control.modify, ROUTING, key, reference)
        if known:
            self.routes[key] = reference

    @rule(key=prefixes)
    def delete(self, key: EntryKey) -> None:
        outcome(None if key in self.routes else NotFoundError, self.control.delete, ROUTING, key)
        self.routes.pop(key, None)

    @rule(base=st.sampled_from(BASES), change=st.integers(0, 2**32 - 1) | st.sampled_from([0, 1, 0x80, 0x8000]))
    def send(self, base: int, change: int) -> None:
        flow = FiveTuple(1, base ^ change, UDP_PROTOCOL, 49152, 4791)
        sent = self.switch.process(ipv4_packet(flow))
        assert (sent and sent.port) == self._expected_port(flow)

    @invariant()
    def contents_are_those_of_the_model(self) -> None:
        assert dict(self.control.entries(ROUTING)) == self.routes
        assert dict(self.control.groups(ECMP)) == self.groups
        assert {number: call.arguments[0] for number, call in self.control.members(ECMP).items()} == self.members

    @invariant()
    def every_base_goes_where_the_model_says(self) -> None:
        for base in BASES:
            self.send(base, 0)

    def _exists(self, reference: EntryAction) -> bool:
        if isinstance(reference, MemberReference):
            return reference.member_id in self.members
        return isinstance(reference, GroupReference) and reference.group_id in self.groups

    def _expected_port(self, flow: FiveTuple) -> int | None:
        matching = [
            (key.match[0].mask, reference)
            for key, reference in self.routes.items()
            if flow.destination_address & key.match[0].mask == key.match[0].value
        ]
        if not matching:
            return None
        _, reference = max(matching, key=lambda pair: pair[0])
        if isinstance(reference, MemberReference):
            return self.members[reference.member_id]
        assert isinstance(reference, GroupReference)
        group = self.groups[reference.group_id]
        return self.members[group[flow_hash(flow, 1) % len(group)]] if group else None


TestFlowTable = FlowTable.TestCase
TestFlowTable.settings = STEPS
TestRoutes = Routes.TestCase
TestRoutes.settings = settings(STEPS, max_examples=60)

FULL = FLOWS[0]
STEER = ActionCall("ingress.steer", (1,))
CIDR = prefix(0x0A000000, 8)
SET_NEXT_HOP = ActionCall("ingress.set_next_hop", (1,))


def used_switch() -> LoneSwitch:
    """A switch with something in every table, profile and counter."""
    switch = with_next_hops()
    control = switch.control
    control.set_default(NODE, ActionCall("ingress.set_node", (77,)))
    control.insert(LEVEL, exact((8, 6)), ActionCall("ingress.set_level", (1,)))
    control.insert(FLOW, flow_key(FULL), STEER)
    control.insert_member(ECMP, 1, SET_NEXT_HOP)
    control.insert_member(ECMP, 2, SET_NEXT_HOP)
    control.insert_group(ECMP, 1, (1,), max_size=0)
    control.insert(ROUTING, CIDR, GroupReference(1))
    control.insert(ROUTING, prefix(0x0B000000, 8), MemberReference(2))
    assert switch.process(ipv4_packet(FULL))
    assert switch.process(ipv4_packet(FLOWS[1], dscp=8))
    return switch


def contents(control: EmulatedSwitch) -> dict[str, Any]:
    """Everything that can be read from a switch."""
    return {
        **{table: dict(control.entries(table)) for table in (FLOW, LEVEL, ROUTING, NEXT_HOP)},
        "members": dict(control.members(ECMP)),
        "groups": dict(control.groups(ECMP)),
        "defaults": [control.default(table) for table in (NODE, LEVEL, FLOW, NEXT_HOP)],
        "counter": [control.counter(COUNTER, index) for index in range(0, 64)],
        "direct": [control.direct_counter(FLOW, key) for key, _ in control.entries(FLOW)],
    }


REFUSED: dict[str, tuple[type[SwitchError], Callable[[EmulatedSwitch], Any]]] = {
    "unknown table": (InvalidRequestError, lambda s: s.insert("ingress.flaw", flow_key(FLOWS[1]), STEER)),
    "entry exists": (AlreadyExistsError, lambda s: s.insert(FLOW, flow_key(FULL), STEER)),
    "no entry to modify": (NotFoundError, lambda s: s.modify(FLOW, flow_key(FLOWS[1]), STEER)),
    "no entry to delete": (NotFoundError, lambda s: s.delete(FLOW, flow_key(FLOWS[1]))),
    "no entry to read": (NotFoundError, lambda s: s.entry(FLOW, flow_key(FLOWS[1]))),
    "too few fields": (InvalidRequestError, lambda s: s.insert(FLOW, exact((1, 32)), STEER)),
    "value too wide": (InvalidRequestError, lambda s: s.insert(LEVEL, exact((64, 7)), STEER)),
    "exact field masked": (
        InvalidRequestError,
        lambda s: s.insert(LEVEL, EntryKey((FieldMatch(0, 1),)), ActionCall("ingress.set_level", (1,))),
    ),
    "bits outside the prefix": (
        InvalidRequestError,
        lambda s: s.insert(ROUTING, EntryKey((FieldMatch(1, 0xFF000000),)), GroupReference(1)),
    ),
    "mask with a hole": (
        InvalidRequestError,
        lambda s: s.insert(ROUTING, EntryKey((FieldMatch(0, 0xFF00FF00),)), GroupReference(1)),
    ),
    "priority without ternary field": (
        InvalidRequestError,
        lambda s: s.insert(FLOW, EntryKey(flow_key(FLOWS[1]).match, priority=1), STEER),
    ),
    "entry of a table without key": (
        InvalidRequestError,
        lambda s: s.insert(NODE, EntryKey(()), ActionCall("ingress.set_node", (1,))),
    ),
    "unknown action": (
        InvalidRequestError,
        lambda s: s.insert(FLOW, flow_key(FLOWS[1]), ActionCall("ingress.stare", (1,))),
    ),
    "action of another table": (
        InvalidRequestError,
        lambda s: s.modify(FLOW, flow_key(FULL), ActionCall("ingress.set_level", (1,))),
    ),
    "argument too wide": (
        InvalidRequestError,
        lambda s: s.modify(FLOW, flow_key(FULL), ActionCall("ingress.prioritise", (8,))),
    ),
    "argument below 0": (
        InvalidRequestError,
        lambda s: s.modify(FLOW, flow_key(FULL), ActionCall("ingress.prioritise", (-1,))),
    ),
    "too many arguments": (
        InvalidRequestError,
        lambda s: s.modify(FLOW, flow_key(FULL), ActionCall("ingress.steer", (1, 2))),
    ),
    "member of a table without profile": (
        InvalidRequestError,
        lambda s: s.modify(FLOW, flow_key(FULL), MemberReference(1)),
    ),
    "action where a member is due": (InvalidRequestError, lambda s: s.modify(ROUTING, CIDR, SET_NEXT_HOP)),
    "unknown member": (NotFoundError, lambda s: s.modify(ROUTING, CIDR, MemberReference(3))),
    "unknown group": (NotFoundError, lambda s: s.modify(ROUTING, CIDR, GroupReference(2))),
    "constant default": (InvalidRequestError, lambda s: s.set_default(LEVEL, ActionCall("ingress.set_level", (1,)))),
    "default of a profile's table": (InvalidRequestError, lambda s: s.set_default(ROUTING, SET_NEXT_HOP)),
    "default too wide": (InvalidRequestError, lambda s: s.set_default(NODE, ActionCall("ingress.set_node", (2**32,)))),
    "no default to read": (NotFoundError, lambda s: s.default(ROUTING)),
    "unknown profile": (InvalidRequestError, lambda s: s.insert_member("ingress.wcmp", 3, SET_NEXT_HOP)),
    "member exists": (AlreadyExistsError, lambda s: s.insert_member(ECMP, 1, ActionCall("ingress.set_next_hop", (2,)))),
    "member with an action of another table": (InvalidRequestError, lambda s: s.insert_member(ECMP, 3, STEER)),
    "member modified badly": (
        InvalidRequestError,
        lambda s: s.modify_member(ECMP, 1, ActionCall("ingress.set_next_hop", (2**16,))),
    ),
    "member in a group": (InvalidRequestError, lambda s: s.delete_member(ECMP, 1)),
    "member in an entry": (InvalidRequestError, lambda s: s.delete_member(ECMP, 2)),
    "no member to delete": (NotFoundError, lambda s: s.delete_member(ECMP, 3)),
    "group exists": (AlreadyExistsError, lambda s: s.insert_group(ECMP, 1, (2,), max_size=0)),
    "group of unknown members": (NotFoundError, lambda s: s.insert_group(ECMP, 2, (1, 3), max_size=0)),
    "group too large": (ResourceExhaustedError, lambda s: s.insert_group(ECMP, 2, (1, 2), max_size=1)),
    "group modified badly": (NotFoundError, lambda s: s.modify_group(ECMP, 1, (2, 3))),
    "group in an entry": (InvalidRequestError, lambda s: s.delete_group(ECMP, 1)),
    "no group to delete": (NotFoundError, lambda s: s.delete_group(ECMP, 2)),
    "unknown counter": (InvalidRequestError, lambda s: s.counter("egress.counter", 0)),
    "no such cell": (InvalidRequestError, lambda s: s.set_counter(COUNTER, 4096, CounterValue(1, 1))),
    "no direct counter": (InvalidRequestError, lambda s: s.direct_counter(LEVEL, exact((8, 6)))),
    "direct counter of no entry": (NotFoundError, lambda s: s.direct_counter(FLOW, flow_key(FLOWS[1]))),
}


@pytest.mark.parametrize(("error", "request_"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_request_changes_nothing(error: type[SwitchError], request_: Callable[[EmulatedSwitch], Any]) -> None:
    switch = used_switch()
    before = contents(switch.control)
    with pytest.raises(error):
        request_(switch.control)
    assert contents(switch.control) == before
    routed = switch.process(ipv4_packet(FLOWS[1], dscp=8))
    assert routed is not None
    assert (routed.port, routed.level) == (1, 1)
    steered = switch.process(ipv4_packet(FULL))
    assert steered is not None
    assert (steered.port, steered.level) == (1, 0)


def test_full_table_and_profile_refuse_more() -> None:
    control = LoneSwitch(trainyard()).control
    action = ActionCall("ingress.forward", (1, 0, 0))
    for hop in range(512):
        control.insert(NEXT_HOP, exact((hop, 16)), action)
    with pytest.raises(ResourceExhaustedError, match=r"ingress\.next_hop"):
        control.insert(NEXT_HOP, exact((512, 16)), action)
    control.delete(NEXT_HOP, exact((17, 16)))
    control.insert(NEXT_HOP, exact((512, 16)), action)
    for member_id in range(8192):
        control.insert_member(ECMP, member_id, SET_NEXT_HOP)
    with pytest.raises(ResourceExhaustedError, match=r"ingress\.ecmp"):
        control.insert_member(ECMP, 8192, SET_NEXT_HOP)


def test_indirect_counter_can_be_set_and_counts_on() -> None:
    switch = used_switch()
    packet = ipv4_packet(FULL)
    switch.control.set_counter(COUNTER, 8, CounterValue(10, 2**40))
    switch.process(packet)
    assert switch.control.counter(COUNTER, 8) == CounterValue(11, 2**40 + len(packet))


def test_clear_empties_everything() -> None:
    switch = used_switch()
    assert contents(switch.control) != contents(LoneSwitch(trainyard()).control)
    switch.control.clear()
    assert contents(switch.control) == contents(LoneSwitch(trainyard()).control)
    assert switch.control.default(NODE) == ActionCall("ingress.set_node", (1,))
    for flow in FLOWS[:2]:
        assert switch.process(ipv4_packet(flow)) is None


def test_default_action_of_the_program_comes_back() -> None:
    switch = used_switch()
    switch.control.set_default(NODE, None)
    assert switch.control.default(NODE) == ActionCall("ingress.set_node", (1,))
    for number in range(1, 8):
        switch.control.insert_member(ECMP, 10 + number, ActionCall("ingress.set_next_hop", (number,)))
    switch.control.modify_group(ECMP, 1, tuple(range(11, 18)))
    for flow in FLOWS[1:20]:
        sent = switch.process(ipv4_packet(flow))
        assert sent is not None
        assert sent.port == 1 + flow_hash(flow, 1) % 7
