"""Base tables that another client has numbered as it likes, and such that make no sense."""

from dataclasses import replace

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

from controller.rules.flow_rules import FlowRule
from controller.southbound.p4runtime.entries import (
    Entity,
    base_entries,
    flow_entry,
    is_base,
    key_of,
    without_unknown_next_hop,
)
from controller.southbound.p4runtime.given_routes import InterpretedTables, interpret
from controller.southbound.p4runtime.states import state_of
from topologies.addressing import Address
from topologies.paths import NO_LINK
from topologies.routing import Route, Routing


def next_hop(number: int, port: int) -> P4TableEntry:
    action = P4TableAction("forward", port=port, source_mac=1, destination_mac=2)
    return P4TableEntry("next_hop", match=P4TableMatch(next_hop=number), action=action)


def member(number: int, next_hop: int) -> P4ActionProfileMember:
    return P4ActionProfileMember("ecmp", member_id=number, action=P4TableAction("set_next_hop", next_hop=next_hop))


def route(action: P4IndirectAction | P4TableAction, address: int = 0x0A000000, length: int = 8) -> P4TableEntry:
    return P4TableEntry("routing", match=P4TableMatch(destination_address=(address, length)), action=action)


def interpreted(star: Routing, *entities: Entity) -> InterpretedTables:
    return interpret("s0", state_of(entities), star.fabric)


def test_our_own_base_entries_mean_our_own_routing(star: Routing) -> None:
    base = [entity for entity in base_entries("s0", star) if is_base(key_of(entity))]
    found = interpreted(star, *base)
    assert set(found.routes.routes) == set(star.routes("s0"))
    assert found.routes.hash_multiplier == star.hash_multipliers["s0"]
    assert found.next_hops == {link.index: link.source_port for link in star.fabric.links_from["s0"]}
    assert found.problems == ()


def test_members_count_by_weight_and_in_order(star: Routing) -> None:
    first, second = star.fabric.links_from["s0"]
    entities = (next_hop(70, first.source_port), next_hop(71, second.source_port), member(5, 71), member(6, 70))
    group = P4ActionProfileGroup(
        "ecmp", group_id=9, max_size=4, members=[P4Member(5, weight=(2, 1)), P4Member(6, weight=1)]
    )
    wanted = (second.index, second.index, first.index)
    found = interpreted(star, *entities, group, route(P4IndirectAction(group_id=9)))
    assert found.routes.routes == (Route(Address(0x0A000000), 8, wanted),)
    assert found.next_hops == {first.index: 70, second.index: 71}
    actions = [(weight, P4TableAction("set_next_hop", next_hop=hop)) for weight, hop in ((2, 71), (1, 70))]
    at_once = interpreted(star, *entities, route(P4IndirectAction(actions)))
    assert at_once.routes == found.routes
    alone = interpreted(star, *entities, route(P4IndirectAction(member_id=5), length=0))
    assert alone.routes.routes == (Route(Address(0), 0, (second.index,)),)


def test_a_link_takes_the_next_hop_that_routes_use(star: Routing) -> None:
    first, _ = star.fabric.links_from["s0"]
    entities = (next_hop(3, first.source_port), next_hop(8, first.source_port), member(5, 8))
    assert interpreted(star, *entities).next_hops == {first.index: 3}
    found = interpreted(star, *entities, route(P4IndirectAction(member_id=5)))
    assert found.next_hops == {first.index: 8}


@pytest.mark.parametrize(
    ("entities", "problem"),
    [
        ((next_hop(8, 99), member(5, 8)), "leads to port 99, which has no cable in the topology"),
        ((member(5, 8),), "leads to next hop 8, which there is not"),
        ((), "has a member without a next hop"),
    ],
)
def test_what_leads_nowhere_is_named(star: Routing, entities: tuple[Entity, ...], problem: str) -> None:
    found = interpreted(star, *entities, route(P4IndirectAction(member_id=5)))
    assert found.problems == (f"the route to 10.0.0.0/8 {problem}",)
    assert found.routes.routes[0].links == (NO_LINK,)


def test_groups_that_are_empty_or_without_end_lead_nowhere(star: Routing) -> None:
    first, _ = star.fabric.links_from["s0"]
    entities = next_hop(8, first.source_port), member(5, 8)
    for members in ([], [P4Member(5, weight=1 << 30)]):
        group = P4ActionProfileGroup("ecmp", group_id=9, max_size=4, members=members)
        found = interpreted(star, *entities, group, route(P4IndirectAction(group_id=9)))
        assert found.problems == ("the route to 10.0.0.0/8 has no next hop, or more than 4,096",)
        assert found.routes.routes[0].links == (NO_LINK,)


def test_routes_to_one_group_share_its_links_and_each_names_its_problems(star: Routing) -> None:
    first, _ = star.fabric.links_from["s0"]
    members = [P4Member(5, weight=4000), P4Member(6, weight=96)]
    group = P4ActionProfileGroup("ecmp", group_id=9, max_size=4096, members=members)
    routes = [route(P4IndirectAction(group_id=9), number << 24) for number in (10, 11)]
    found = interpreted(star, next_hop(8, first.source_port), member(5, 8), group, *routes)
    one, other = found.routes.routes
    assert one.links == (first.index,) * 4000 + (NO_LINK,) * 96
    assert other.links is one.links
    assert found.problems == (
        "the route to 10.0.0.0/8 has a member without a next hop",
        "the route to 11.0.0.0/8 has a member without a next hop",
    )


def test_many_problems_of_a_switch_are_cut_short(star: Routing) -> None:
    routes = [route(P4IndirectAction(member_id=5), number << 24) for number in range(1, 60)]
    assert interpreted(star, *routes).problems[-1] == "and 39 more"


def test_rules_steer_to_the_next_hop_of_the_link_or_not_at_all(star: Routing, rule: FlowRule) -> None:
    first, second = star.fabric.links_from["s0"]
    steered = FlowRule(rule.switch, rule.five_tuple, first.index, None)
    assert flow_entry(steered, star.fabric, {first.index: 70}).action == P4TableAction("steer", next_hop=70)
    assert without_unknown_next_hop(steered, {first.index: 70}) == steered
    assert without_unknown_next_hop(steered, {second.index: 71}) is None
    marked = replace(steered, level=6)
    assert without_unknown_next_hop(marked, {}) == replace(marked, next_link=None)
