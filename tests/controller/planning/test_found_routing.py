"""Rules follow the routes of others also while the policy makes no Plan."""

from dataclasses import replace

import pytest

from controller.rules.flow_rules import FlowRule, RulesBySwitch
from policies.snapshot import Snapshot
from tests.controller.planning.drains import World
from tests.controller.record.lives import CLOS
from topologies.ecmp import FabricHash
from topologies.given_routing import GivenRoutes, GivenRouting
from topologies.routing import Routing


def given(routing: Routing, only: str = "") -> GivenRouting:
    """The same routes, by one aggregation switch if only that one is named."""
    fabric = routing.fabric

    def kept(links: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(link for link in links if fabric.links[link].destination == only) or links

    routes = {
        switch: GivenRoutes(tuple(replace(route, links=kept(route.links)) for route in routing.routes(switch)))
        for switch in fabric.switches
    }
    return GivenRouting(fabric, routes)


def ways(routing: Routing, written: RulesBySwitch) -> set[str]:
    """The nodes to which rules lead."""
    return {
        routing.fabric.links[rule.next_link].destination
        for rules in written.values()
        for rule in rules
        if isinstance(rule, FlowRule) and rule.next_link is not None
    }


def test_rules_are_written_for_new_next_hops_without_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(CLOS.build(), ["h0", "h2", "h4"], FabricHash.UNKNOWN)
    before = world.southbound.written[-1]
    plain = world.planner.routing

    async def no_plan(_: Snapshot) -> None:
        return None

    monkeypatch.setattr(world.planner.policy, "decide", no_plan)
    world.southbound.written.clear()
    world.planner.use_routing(given(plain))
    world.settle()
    assert world.southbound.written == [before]
    world.planner.mark_changed()
    world.settle()
    assert world.southbound.written == [before]
    # Where the routes have a path no longer, no rule leads along it.
    world.planner.use_routing(given(plain, "a1"))
    world.settle()
    assert "a0" in ways(plain, before)
    assert "a0" not in ways(plain, world.southbound.written[-1])
