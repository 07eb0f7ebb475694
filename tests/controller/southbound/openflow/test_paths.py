"""By its entries a fabric sends packets along the paths of Routing, and flows of the Plan along the Plan's."""

from collections.abc import Set
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.controller.southbound.openflow.interpreter import Dropped, Packet, Switch, Walk, walks
from tests.controller.southbound.openflow.planned import Decided, other_flow, packet_of, route
from tests.topologies.builders import DOUBLE_SIDED, FAT_TREE_8, fabrics
from topologies.fabric import Fabric
from topologies.openflow_specification import Queues

randoms = st.integers(0, 1 << 32).map(Random)
queueings = st.sampled_from(Queues)


def some_links(fabric: Fabric, random: Random, most: int = 3) -> frozenset[int]:
    """Both directions of some cables."""
    cables = random.sample(range(len(fabric.cables)), k=random.randint(0, min(most, len(fabric.cables))))
    return frozenset(link for cable in cables for link in (2 * cable, 2 * cable + 1))


def ways(decided: Decided, switches: dict[str, Switch], packet: Packet, dead: Set[int] = frozenset()) -> list[Walk]:
    """The ways of a packet while every switch sees which of its own links are dead."""
    fabric = decided.routing.fabric
    down = {
        switch: {link.source_port for link in fabric.links_from[switch] if link.index in dead}
        for switch in fabric.switches
    }
    return list(walks(switches, fabric, packet, fabric.nic_by_address[packet.source], down))


def check_paths(decided: Decided, queues: Queues) -> None:
    routing, nics = decided.routing, decided.routing.fabric.nic_by_address
    switches = decided.switches(queues)
    for flow in decided.flows:
        ends = nics[flow.five_tuple.source_address], nics[flow.five_tuple.destination_address]
        candidates = set(routing.candidate_paths(*ends))
        planned = decided.plan.flows[flow.key].path
        taken = {walk.path for walk in ways(decided, switches, packet_of(flow.five_tuple))}
        assert taken == (candidates if planned is None else {planned})
        # A flow that nobody has registered takes any path.
        assert {walk.path for walk in ways(decided, switches, packet_of(other_flow(flow.five_tuple)))} == candidates


@pytest.mark.slow
@given(fabrics, randoms, queueings)
def test_packets_take_all_paths_of_routing_or_the_one_of_the_plan(
    fabric: Fabric, random: Random, queues: Queues
) -> None:
    check_paths(Decided(route(fabric).without(some_links(fabric, random)), random), queues)


@pytest.mark.parametrize("fabric", [DOUBLE_SIDED, FAT_TREE_8], ids=["double-sided", "fat-tree"])
def test_paths_in_larger_fabrics(fabric: Fabric) -> None:
    check_paths(Decided(route(fabric), Random(1)), Queues.DSCP)


@pytest.mark.slow
@given(fabrics, randoms, queueings)
def test_a_level_is_marked_at_the_first_switch_and_served_by_all(
    fabric: Fabric, random: Random, queues: Queues
) -> None:
    decided = Decided(route(fabric), random)
    switches = decided.switches(queues)
    for flow in decided.flows:
        sent_dscp = random.randrange(64)
        wanted = decided.class_of(flow, sent_dscp)
        is_unmarked = decided.job_level is None and not decided.plan.flows[flow.key].level
        check_class(ways(decided, switches, packet_of(flow.five_tuple, sent_dscp)), wanted, queues)
        for walk in ways(decided, switches, packet_of(flow.five_tuple, sent_dscp)):
            assert {hop.packet.dscp for hop in walk.hops} == {sent_dscp if is_unmarked else 8 * wanted}
        of_job = sent_dscp >> 3 if decided.job_level is None else decided.job_level
        check_class(ways(decided, switches, packet_of(other_flow(flow.five_tuple), sent_dscp)), of_job, queues)


def check_class(found: list[Walk], wanted: int, queues: Queues) -> None:
    assert found
    for walk in found:
        assert [hop.packet.dscp >> 3 for hop in walk.hops] == [wanted] * len(walk.hops)
        queue = wanted if queues is Queues.SET_QUEUE else 0
        assert [hop.queue for hop in walk.hops] == [queue] * len(walk.hops)


@pytest.mark.slow
@given(fabrics, randoms)
def test_a_port_that_goes_down_is_left_at_once_and_no_packet_goes_in_a_circle(fabric: Fabric, random: Random) -> None:
    """Nothing has been written since: neither routes nor rules know of what is dead."""
    decided = Decided(route(fabric).without(some_links(fabric, random)), random)
    check_dead(decided, some_links(fabric, random))


def test_steered_flows_leave_a_port_that_goes_down() -> None:
    random = Random(1)
    decided = Decided(route(DOUBLE_SIDED), random)
    planned = [path for flow in decided.plan.flows.values() if (path := flow.path) is not None]
    dead = frozenset(link ^ direction for path in planned for link in path[1:2] for direction in (0, 1))
    assert check_dead(decided, dead) >= len(planned)


def check_dead(decided: Decided, more_dead: frozenset[int]) -> int:
    """Check where packets go; return how many ways lead steered flows to their destinations along other paths."""
    routing = decided.routing
    switches = decided.switches(Queues.DSCP)
    dead = more_dead | routing.dead
    num_diverted = 0
    for flow in decided.flows:
        planned = decided.plan.flows[flow.key].path
        destination = routing.fabric.nic_by_address[flow.five_tuple.destination_address]
        found = ways(decided, switches, packet_of(flow.five_tuple), dead)
        if planned is not None and not dead & set(planned[1:]):
            assert {walk.path for walk in found} == {planned}
        for walk in found:
            nodes = routing.fabric.nodes_of(walk.path)
            assert len(set(nodes)) == len(nodes)
            assert not dead & set(walk.path[1:])
            if isinstance(walk.end, Dropped):
                assert dead.issuperset(routing.next_links(nodes[-1], destination))
            else:
                assert nodes[-1] == destination.host
                num_diverted += planned not in (None, walk.path)
    return num_diverted


@pytest.mark.slow
@given(fabrics, randoms)
def test_packets_are_readdressed_and_their_ttl_falls_at_every_switch(fabric: Fabric, random: Random) -> None:
    decided = Decided(route(fabric), random)
    switches, nics = decided.switches(Queues.DSCP), fabric.nic_by_address
    for flow in decided.flows:
        for walk in ways(decided, switches, packet_of(flow.five_tuple)):
            assert [hop.packet.time_to_live for hop in walk.hops] == list(range(63, 63 - len(walk.hops), -1))
            destination = nics[flow.five_tuple.destination_address]
            assert destination.mac is None or walk.hops[-1].packet.destination_mac == destination.mac
            for one, other in zip(walk.hops, walk.hops[1:], strict=False):
                assert one.packet.destination_mac not in (one.packet.source_mac, other.packet.source_mac)
