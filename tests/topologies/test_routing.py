import gc
import weakref
from itertools import pairwise, product

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.topologies.builders import DOUBLE_SIDED, FAT_TREE_8, TESTBED, fabrics
from topologies.addressing import FLOW_DESTINATION_PORT, UDP_PROTOCOL, FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric, Nic, Path
from topologies.routing import Route, Routing
from topologies.specification import ClosSpecification


def route(fabric: Fabric) -> Routing:
    return Routing(fabric, hash_multipliers(fabric.switches, seed=1))


def all_nics(fabric: Fabric) -> list[Nic]:
    return [nic for nics in fabric.nics.values() for nic in nics]


def longest_match(routes: tuple[Route, ...], address: int) -> Route:
    matching = [route for route in routes if (address ^ route.address) >> 32 - route.prefix_length == 0]
    longest = max(route.prefix_length for route in matching)
    (found,) = [route for route in matching if route.prefix_length == longest]
    return found


def shortest_paths(fabric: Fabric, source: Nic, destination: Nic, dead: frozenset[int] = frozenset()) -> set[Path]:
    """Reference: all shortest paths between the two ToRs, with every choice of parallel links."""
    alive = [cable.ends for number, cable in enumerate(fabric.cables) if 2 * number not in dead]
    graph = nx.Graph(ends for ends in alive if not set(ends) & set(fabric.hosts))
    first, last = (fabric.links[nic.link].destination for nic in (source, destination))
    graph.add_nodes_from((first, last))
    if {source.link, destination.link} & dead or not nx.has_path(graph, first, last):
        return set()
    found: set[Path] = set()
    for nodes in nx.all_shortest_paths(graph, first, last):
        hops = [
            [link.index for link in fabric.links_from[a] if link.destination == b and link.index not in dead]
            for a, b in pairwise(nodes)
        ]
        found |= {(source.link, *links, fabric.reverse(destination.link)) for links in product(*hops)}
    return found


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_candidate_paths_are_the_shortest_ones_and_the_hash_takes_one(data: st.DataObject) -> None:
    fabric = data.draw(fabrics)
    routing = route(fabric)
    nics = st.sampled_from(all_nics(fabric))
    source, destination = data.draw(nics), data.draw(nics)
    candidates = routing.candidate_paths(source, destination)
    assert len(set(candidates)) == len(candidates)
    assert set(candidates) == shortest_paths(fabric, source, destination)
    assert len({len(path) for path in candidates}) == 1
    for path in candidates:
        assert path[0] == source.link
        assert fabric.reverse(path[-1]) == destination.link
        assert all(fabric.links[one].destination == fabric.links[next_one].source for one, next_one in pairwise(path))
        switches = fabric.nodes_of(path)[1:-1]
        assert set(switches) <= set(fabric.switches)
        assert len(set(switches)) == len(switches)
    port = data.draw(st.integers(0, 65_535))
    flow = FiveTuple(source.address, destination.address, UDP_PROTOCOL, port, FLOW_DESTINATION_PORT)
    assert routing.hashed_path(flow) in candidates


def test_a_routing_and_what_it_remembers_go_with_the_last_reference() -> None:
    fabric = TESTBED
    routing = route(fabric).without(frozenset({len(fabric.links) - 2, len(fabric.links) - 1}))
    source, *_, destination = all_nics(fabric)
    gc.disable()
    try:
        assert routing.candidate_paths(source, destination)
        assert routing.routes(fabric.switches[0])
        gone = weakref.ref(routing)
        del routing
        assert gone() is None
    finally:
        gc.enable()


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_around_dead_links_lead_the_shortest_ways_that_are_left(data: st.DataObject) -> None:
    fabric = data.draw(fabrics)
    cables = data.draw(st.sets(st.integers(0, len(fabric.cables) - 1), max_size=len(fabric.cables) // 2))
    dead = frozenset(link for cable in cables for link in (2 * cable, 2 * cable + 1))
    routing = route(fabric).without(dead)
    nics = st.sampled_from(all_nics(fabric))
    for source, destination in data.draw(st.lists(st.tuples(nics, nics), min_size=1, max_size=4)):
        candidates = routing.candidate_paths(source, destination)
        assert len(set(candidates)) == len(candidates)
        assert set(candidates) == shortest_paths(fabric, source, destination, dead)
    flow = FiveTuple(source.address, destination.address, UDP_PROTOCOL, 50_000, FLOW_DESTINATION_PORT)
    if candidates:
        assert routing.hashed_path(flow) in candidates
    else:
        with pytest.raises(ValueError, match="no path is left"):
            routing.hashed_path(flow)
    only_hosts = [host for host, prefixes in fabric.host_prefixes.items() if prefixes[0].length < 32]
    for switch in fabric.switches:
        routes = routing.routes(switch)
        links = routing.next_links(switch, destination)
        matching = [entry for entry in routes if (destination.address ^ entry.address) >> 32 - entry.prefix_length == 0]
        if links or destination.host in only_hosts:  # else a packet may go as far as the last switch
            assert links == (max(matching, key=lambda entry: entry.prefix_length).links if matching else ())
        assert dead.isdisjoint(links)


@settings(max_examples=40, deadline=None)
@given(fabrics)
def test_routes_send_every_address_where_next_links_say(fabric: Fabric) -> None:
    routing = route(fabric)
    for switch in fabric.switches:
        routes = routing.routes(switch)
        assert len({(entry.address, entry.prefix_length) for entry in routes}) == len(routes)
        for nic in all_nics(fabric):
            links = longest_match(routes, nic.address).links
            assert links == routing.next_links(switch, nic)
            assert {fabric.links[link].source for link in links} == {switch}


@pytest.mark.parametrize(
    ("fabric", "hosts", "num_candidates", "num_links"),
    [
        (TESTBED, ("h0", "h1"), 1, 2),
        (TESTBED, ("h0", "h11"), 16 * 2, 4),
        (DOUBLE_SIDED, ("h0", "h1"), 1, 2),
        (DOUBLE_SIDED, ("h0", "h5"), 4 * 8, 6),
        (FAT_TREE_8, ("h0", "h3"), 1, 2),
        (FAT_TREE_8, ("h0", "h15"), 4, 4),
        (FAT_TREE_8, ("h0", "h16"), 16, 6),
    ],
)
def test_flows_have_as_many_paths_as_the_fabric_has_ways(
    fabric: Fabric, hosts: tuple[str, str], num_candidates: int, num_links: int
) -> None:
    source, destination = (fabric.nics[host][0] for host in hosts)
    candidates = route(fabric).candidate_paths(source, destination)
    assert len(candidates) == num_candidates
    assert {len(path) for path in candidates} == {num_links}


def test_paths_come_in_the_order_of_the_groups_members() -> None:
    routing = route(TESTBED)
    candidates = routing.candidate_paths(TESTBED.nics["h0"][3], TESTBED.nics["h2"][3])
    ports = [tuple(TESTBED.links[link].source_port for link in path) for path in candidates]
    assert ports == sorted(ports)


def test_in_a_double_sided_fabric_the_nic_decides_the_tor() -> None:
    routing = route(DOUBLE_SIDED)
    for source, destination in product(DOUBLE_SIDED.nics["h0"], DOUBLE_SIDED.nics["h1"]):
        for path in routing.candidate_paths(source, destination):
            tors = [f"t{source.index % 2}", f"t{destination.index % 2}"]
            passed = [node for node in DOUBLE_SIDED.nodes_of(path) if node.startswith("t")]
            assert passed == (tors[:1] if tors[0] == tors[1] else tors)


def test_hosts_whose_nics_share_a_way_take_one_route() -> None:
    assert {entry.prefix_length for entry in route(TESTBED).routes("a0")} == {24}
    lengths = [entry.prefix_length for entry in route(DOUBLE_SIDED).routes("a0")]
    assert lengths == [32] * 8 * 2 + [24] * 4


def test_the_large_clos_of_the_paper_is_routed() -> None:
    """Crux, section 6.1: 173 ToRs and 16 aggregation switches, here with 346 hosts."""
    fabric = ClosSpecification(
        kind="clos", tors=173, aggs=16, hosts_per_tor=2, nics_per_host=8, host_link_gbps=800, uplink_gbps=100
    ).build()
    routing = route(fabric)
    assert [len(routing.routes(switch)) for switch in ("t0", "a0")] == [2 * 8 + 344, 346]
    assert sum(len(routing.next_links(switch, nics[0])) for switch in fabric.switches for nics in fabric.nics.values())
    assert len(routing.candidate_paths(fabric.nics["h0"][0], fabric.nics["h345"][7])) == 16
