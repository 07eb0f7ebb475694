"""The control side of one switch: what it refuses, and how it is emptied."""

from collections.abc import Callable
from typing import Any

import pytest

from emulator.entries import (
    ActionCall,
    AlreadyExistsError,
    CounterValue,
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
from tests.emulator.lone_switch import LoneSwitch, with_next_hops
from tests.emulator.packets import ipv4_packet
from tests.emulator.programs import trainyard
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.ecmp import flow_hash

FLOW, LEVEL, ROUTING, NEXT_HOP = "ingress.flow", "ingress.level", "ingress.routing", "ingress.next_hop"
ECMP, NODE, COUNTER = "ingress.ecmp", "ingress.node", "egress.level_counter"

FLOWS = [FiveTuple(0x0A000001, 0x0A000101, UDP_PROTOCOL, 49152 + n, 4791) for n in range(20)]
STEERED = FLOWS[0]
STEER = ActionCall("ingress.steer", (1,))
CIDR = prefix(0x0A000000, 8)
SET_NEXT_HOP = ActionCall("ingress.set_next_hop", (1,))


def used_switch() -> LoneSwitch:
    """A switch with something in every table, profile and counter."""
    switch = with_next_hops()
    control = switch.control
    control.set_default(NODE, ActionCall("ingress.set_node", (77,)))
    control.insert(LEVEL, exact((8, 6)), ActionCall("ingress.set_level", (1,)))
    control.insert(FLOW, flow_key(STEERED), STEER)
    control.insert_member(ECMP, 1, SET_NEXT_HOP)
    control.insert_member(ECMP, 2, SET_NEXT_HOP)
    control.insert_group(ECMP, 1, (1,), max_size=0)
    control.insert(ROUTING, CIDR, GroupReference(1))
    control.insert(ROUTING, prefix(0x0B000000, 8), MemberReference(2))
    assert switch.process(ipv4_packet(STEERED))
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
    "entry exists": (AlreadyExistsError, lambda s: s.insert(FLOW, flow_key(STEERED), STEER)),
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
        lambda s: s.modify(FLOW, flow_key(STEERED), ActionCall("ingress.set_level", (1,))),
    ),
    "argument too wide": (
        InvalidRequestError,
        lambda s: s.modify(FLOW, flow_key(STEERED), ActionCall("ingress.prioritise", (8,))),
    ),
    "argument below 0": (
        InvalidRequestError,
        lambda s: s.modify(FLOW, flow_key(STEERED), ActionCall("ingress.prioritise", (-1,))),
    ),
    "too many arguments": (
        InvalidRequestError,
        lambda s: s.modify(FLOW, flow_key(STEERED), ActionCall("ingress.steer", (1, 2))),
    ),
    "member of a table without profile": (
        InvalidRequestError,
        lambda s: s.modify(FLOW, flow_key(STEERED), MemberReference(1)),
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
    steered = switch.process(ipv4_packet(STEERED))
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
    packet = ipv4_packet(STEERED)
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
