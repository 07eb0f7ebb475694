"""Routing that somebody else has filled in: the paths that its routes have, and nothing where these fail."""

from dataclasses import replace
from random import Random

import pytest

from tests.topologies.mixing import with_ordinary
from tests.topologies.renumbering import renumbered
from topologies.addressing import Address, FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.given_routing import GivenRoutes, GivenRouting
from topologies.loops import links_in_loops
from topologies.paths import NO_LINK
from topologies.routing import Route, Routing
from topologies.specification import FatTreeSpecification


@pytest.fixture
def fabric() -> Fabric:
    return FatTreeSpecification(kind="fat_tree", k=4, host_link_gbps=100, uplink_gbps=100).build()


def given(routing: Routing) -> dict[str, GivenRoutes]:
    """The routes that shortest paths give every switch, as somebody else would have written them."""
    return {
        switch: GivenRoutes(routing.routes(switch), routing.hash_multipliers[switch])
        for switch in routing.fabric.switches
    }


def flows(fabric: Fabric, random: Random, number: int = 200) -> list[FiveTuple]:
    nics = list(fabric.nic_by_address.values())
    pairs = [random.sample(nics, 2) for _ in range(number)]
    return [
        FiveTuple(source.address, destination.address, 17, random.randrange(49152, 65536), 4791)
        for source, destination in pairs
    ]


@pytest.mark.parametrize("seed", range(3))
def test_routes_of_shortest_paths_give_the_same_paths_and_choices(fabric: Fabric, seed: int) -> None:
    random = Random(seed)
    fabric = renumbered(fabric, random)
    routing = Routing(fabric, hash_multipliers(fabric.switches, seed))
    same = GivenRouting(fabric, given(routing))
    for flow in flows(fabric, random):
        source, destination = (fabric.nic_by_address[each] for each in (flow.source_address, flow.destination_address))
        assert same.candidate_paths(source, destination) == routing.candidate_paths(source, destination)
        assert same.hashed_path(flow) == routing.hashed_path(flow)
    assert list(same.problems()) == []


def test_members_count_as_often_and_in_the_order_that_the_group_has_them(fabric: Fabric) -> None:
    routing = Routing(fabric, hash_multipliers(fabric.switches, 1))
    tables = given(routing)
    nics = fabric.nics
    source, destination = nics[fabric.hosts[0]][0], nics[fabric.hosts[-1]][0]
    switch = fabric.links[source.link].destination
    first, second = routing.next_links(switch, destination)
    tables[switch] = replace(
        tables[switch],
        routes=tuple(
            replace(route, links=(second, first, first)) if len(route.links) > 1 else route
            for route in tables[switch].routes
        ),
    )
    weighted = GivenRouting(fabric, tables)
    assert weighted.hash_choices(switch, destination) == (second, first, first)
    assert weighted.next_links(switch, destination) == (second, first)
    assert [path[1] for path in weighted.candidate_paths(source, destination)] == [second] * 2 + [first] * 2


def test_the_longest_prefix_decides(fabric: Fabric) -> None:
    routing = Routing(fabric, hash_multipliers(fabric.switches, 1))
    tables = given(routing)
    source, destination = (fabric.nics[host][0] for host in (fabric.hosts[0], fabric.hosts[-1]))
    switch = fabric.links[source.link].destination
    first, second = routing.next_links(switch, destination)
    everything, host = Route(Address(0), 0, (first,)), Route(destination.address, 32, (second,))
    tables[switch] = GivenRoutes((everything, host))
    longest = GivenRouting(fabric, tables)
    assert longest.next_links(switch, destination) == (second,)
    elsewhere = fabric.nics[fabric.hosts[-3]][0]
    assert longest.next_links(switch, elsewhere) == (first,)


def test_routes_in_a_circle_are_named_and_no_path_goes_there(fabric: Fabric) -> None:
    routing = Routing(fabric, hash_multipliers(fabric.switches, 1))
    tables = given(routing)
    source, destination = (fabric.nics[host][0] for host in (fabric.hosts[0], fabric.hosts[-1]))
    edge = fabric.links[source.link].destination
    up = routing.next_links(edge, destination)[0]
    aggregation = fabric.links[up].destination
    back = Route(destination.address, 32, (fabric.reverse(up),))
    tables[aggregation] = replace(tables[aggregation], routes=(*tables[aggregation].routes, back))
    circling = GivenRouting(fabric, tables)
    paths = circling.candidate_paths(source, destination)
    assert 0 < len(paths) < len(routing.candidate_paths(source, destination))
    assert all(up not in path for path in paths)
    circles = [problem for problem in circling.problems() if "in a circle" in problem]
    assert circles == [f"routes to {destination.subnet} lead in a circle: {', '.join(sorted((aggregation, edge)))}"]
    for flow in flows(fabric, Random(1)):
        flow = replace(flow, source_address=source.address, destination_address=destination.address)
        assert circling.hashed_path(flow) in paths


def test_what_leads_nowhere_is_left_out_and_its_choices_are_not_known(fabric: Fabric) -> None:
    routing = Routing(fabric, hash_multipliers(fabric.switches, 1))
    tables = given(routing)
    source, destination = (fabric.nics[host][0] for host in (fabric.hosts[0], fabric.hosts[-1]))
    edge = fabric.links[source.link].destination
    first, _ = routing.next_links(edge, destination)
    tables[edge] = GivenRoutes((Route(Address(0), 0, (first, NO_LINK)),))
    partly = GivenRouting(fabric, tables)
    assert partly.hash_choices(edge, destination) is None
    assert {path[1] for path in partly.candidate_paths(source, destination)} == {first}
    del tables[edge]
    unread = GivenRouting(fabric, tables)
    assert unread.candidate_paths(source, destination) == ()
    flow = FiveTuple(source.address, destination.address, 17, 50000, 4791)
    with pytest.raises(ValueError, match="no path is left"):
        unread.hashed_path(flow)


def test_choices_are_not_known_while_a_member_is_dead(fabric: Fabric) -> None:
    routing = Routing(fabric, hash_multipliers(fabric.switches, 1))
    whole = GivenRouting(fabric, given(routing))
    source, destination = (fabric.nics[host][0] for host in (fabric.hosts[0], fabric.hosts[-1]))
    edge = fabric.links[source.link].destination
    first, second = whole.next_links(edge, destination)
    cut = whole.without({first, fabric.reverse(first)})
    assert cut.next_links(edge, destination) == (second,)
    assert cut.hash_choices(edge, destination) is None
    assert cut.without(frozenset()).hash_choices(edge, destination) == (first, second)


def test_ordinary_switches_take_shortest_paths_by_a_hash_that_is_not_known(fabric: Fabric) -> None:
    edge = fabric.links[fabric.nics[fabric.hosts[0]][0].link].destination
    mixed = with_ordinary(fabric, {edge})
    assert mixed.ordinary_switches == {edge}
    routing = Routing(mixed, hash_multipliers(mixed.switches, 1))
    tables = given(routing)
    del tables[edge]
    destination = mixed.nics[mixed.hosts[-1]][0]
    for each in (routing, GivenRouting(mixed, tables)):
        assert len(each.next_links(edge, destination)) == 2
        assert each.hash_choices(edge, destination) is None
        neighbour = mixed.nics[mixed.hosts[0]][0]
        assert each.hash_choices(edge, neighbour) == (mixed.reverse(neighbour.link),)


def test_loops_of_a_graph() -> None:
    ends = {"a": {0: "b"}, "b": {1: "c", 2: "out"}, "c": {3: "a", 4: "d"}, "d": {5: "out"}}
    assert links_in_loops(ends) == {0, 1, 3}
    assert links_in_loops({"a": {0: "b", 1: "b"}, "b": {2: "c"}, "c": {}}) == frozenset()
