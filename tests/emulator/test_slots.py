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
    GroupReference,
    InvalidRequestError,
    MemberReference,
    NotFoundError,
    ResourceExhaustedError,
    SwitchError,
)
from tests.emulator.fabrics import exact, flow_key, prefix
from tests.emulator.lone_switch import HOPS, with_next_hops
from tests.emulator.packets import ipv4_packet
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.ecmp import flow_hash

FLOW, ROUTING, NEXT_HOP = "ingress.flow", "ingress.routing", "ingress.next_hop"
ECMP = "ingress.ecmp"

FLOWS = [FiveTuple(0x0A000001 + n % 3, 0x0A000100 + n % 5, UDP_PROTOCOL, 49152 + n, 4791) for n in range(300)]
BASES = [0x0A000000, 0x0A00FF00, 0x0A0000FF, 0xFFFFFFFF, 0]
LENGTHS = [0, 1, 8, 16, 23, 24, 25, 31, 32]

STEPS = settings(max_examples=25, stateful_step_count=40, deadline=None)


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
