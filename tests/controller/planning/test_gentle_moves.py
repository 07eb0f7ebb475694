"""Whatever switches have taken of two writes that follow each other, every packet of every flow arrives."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.links.drains import CutOffError, DrainKind, DrainTarget
from controller.rules.flow_rules import FlowRule, RulesBySwitch
from policies.flows import Flow
from tests.controller.planning.drains import FABRICS, World
from tests.controller.record.lives import CLOS
from topologies.ecmp import FabricHash, MultipliedHash, flow_crc
from topologies.fabric import Fabric
from topologies.routing import Routing

Written = tuple[RulesBySwitch, Routing]


def next_links(flow: Flow, switch: str, written: Written, fabric_hash: FabricHash) -> set[int]:
    """Return the links by which a switch may send a flow."""
    rules, routing = written
    for rule in rules.get(switch, ()):
        if isinstance(rule, FlowRule) and rule.five_tuple == flow.five_tuple and rule.next_link is not None:
            return {rule.next_link}
    choices = routing.next_links(switch, routing.fabric.nic_by_address[flow.five_tuple.destination_address])
    if not choices or fabric_hash is FabricHash.UNKNOWN:
        return set(choices)
    law = MultipliedHash(routing.hash_multipliers[switch])
    return {choices[law.choice(flow_crc(flow.five_tuple), len(choices))]}


def always_arrives(fabric: Fabric, flow: Flow, both: tuple[Written, Written], fabric_hash: FabricHash) -> bool:
    """Whether a flow gets to its NIC while every switch has taken either of two writes."""
    nics = fabric.nic_by_address
    last = fabric.reverse(nics[flow.five_tuple.destination_address].link)
    seen: set[int] = set()
    way: list[tuple[int, Iterator[int]]] = []

    def step(link: int) -> Iterator[int]:
        found = [next_links(flow, fabric.links[link].destination, written, fabric_hash) for written in both]
        return iter(set.union(*found) if all(found) else {-1})

    first = nics[flow.five_tuple.source_address].link
    way.append((first, step(first)))
    while way:
        link = next(way[-1][1], None)
        if link is None:
            seen.add(way.pop()[0])
        elif link == -1 or link in {one for one, _ in way}:
            return False
        elif link != last and link not in seen:
            way.append((link, step(link)))
    return True


def planned(data: st.DataObject, fabric_hash: FabricHash) -> tuple[World, tuple[Flow, ...], Written]:
    """Draw a fabric; return its world, the flows of the job over all of its hosts, and what is written for them."""
    fabric = data.draw(FABRICS)
    world = World(fabric, fabric.hosts, fabric_hash)
    decision = world.planner.decision
    assert decision is not None
    return world, decision.snapshot.jobs[0].flows, (decision.switch_rules, world.planner.routing)


@pytest.mark.parametrize("fabric_hash", FabricHash)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_mixture_of_two_writes_loses_a_flow(fabric_hash: FabricHash, data: st.DataObject) -> None:
    world, flows, held = planned(data, fabric_hash)
    names = [f"{link.source}:{link.source_port}" for link in world.fabric.links] + [*world.fabric.switches]
    for name in data.draw(st.lists(st.sampled_from(names), max_size=3, unique=True)):
        kind = DrainKind.LINK if ":" in name else DrainKind.SWITCH
        target = world.draining.targets.find(kind, name)
        try:
            world.drain(target)
        except CutOffError:
            continue
        held = settled(world, held, flows, fabric_hash)
        if data.draw(st.booleans()):
            world.undrain(target)
            held = settled(world, held, flows, fabric_hash)


@pytest.mark.parametrize("fabric_hash", FabricHash)
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_an_undrain_and_a_drain_in_one_plan_lose_no_flow(fabric_hash: FabricHash, data: st.DataObject) -> None:
    world, flows, held = planned(data, fabric_hash)
    fabric = world.fabric
    links = [link for link in fabric.links if {link.source, link.destination} <= fabric.switch_index.keys()]
    names = [f"{link.source}:{link.source_port}" for link in links] + [*fabric.switches]
    for name in data.draw(st.lists(st.sampled_from(names), max_size=4, unique=True)):
        for each in world.draining.drains:
            world.undrain(each.target)
        target = world.draining.targets.find(DrainKind.LINK if ":" in name else DrainKind.SWITCH, name)
        try:
            world.drain(target)
        except CutOffError:
            continue
        held = settled(world, held, flows, fabric_hash)


def test_what_is_used_again_is_so_before_anything_else_is_left() -> None:
    world = World(CLOS.build(), ["h0", "h2", "h4"])
    first, second = (DrainTarget(DrainKind.SWITCH, name) for name in ("a0", "a1"))
    world.drain(first)
    world.settle()
    world.southbound.rerouted.clear()
    world.undrain(first)
    world.drain(second)
    world.settle()
    dead = [routing.dead for _, routing in world.southbound.rerouted if type(routing) is Routing]
    assert frozenset() in dead
    assert dead[-1] == world.links(second)


def settled(world: World, held: Written, flows: tuple[Flow, ...], fabric_hash: FabricHash) -> Written:
    """Carry out the drains and check every write on the way; return the last one."""
    writes = world.southbound.rerouted
    writes[:] = [held]
    world.settle()
    for both in pairwise(writes):
        assert all(always_arrives(world.fabric, flow, both, fabric_hash) for flow in flows)
    return writes[-1]


def test_the_writes_of_a_clos_are_as_the_documentation_has_them() -> None:
    """Rules first, under the old routes; then routes, in order of distance; in the end what is of no use goes."""
    world = World(CLOS.build(), ["h0", "h2", "h4"])
    world.southbound.rerouted.clear()
    world.drain(DrainTarget(DrainKind.SWITCH, "a0"))
    world.settle()
    dead = [routing.dead for _, routing in world.southbound.rerouted]
    changes = [number for number, (one, other) in enumerate(pairwise(world.southbound.rerouted)) if one[0] != other[0]]
    assert dead[-1] == world.links(DrainTarget(DrainKind.SWITCH, "a0"))
    assert not any(dead[:-1])
    # Between the first routes and the last ones no rule changes.
    routes = [number for number, (_, routing) in enumerate(world.southbound.rerouted) if type(routing) is not Routing]
    assert len(routes) == 3  # ToRs of the destination, aggregation switches, other ToRs
    assert not set(changes) & set(range(routes[0], routes[-1]))
