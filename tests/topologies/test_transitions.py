from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.topologies.builders import TESTBED, fabrics, neighbours
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric, Nic
from topologies.routing import Routing
from topologies.transitions import steps_between


def route(fabric: Fabric) -> Routing:
    return Routing(fabric, hash_multipliers(fabric.switches, seed=1))


def next_switches(routing: Routing, switch: str, destination: Nic) -> set[str]:
    return {routing.fabric.links[link].destination for link in routing.next_links(switch, destination)}


def always_arrives(routings: tuple[Routing, Routing], destination: Nic, first: str) -> bool:
    """Whether packets reach a NIC from a switch, wherever the hashes send them while switches follow either routing."""
    on_the_way: set[str] = set()
    arrived: set[str] = set()

    def arrives(node: str) -> bool:
        if node == destination.host or node in arrived:
            return True
        if node in on_the_way:
            return False
        on_the_way.add(node)
        choices = [next_switches(routing, node, destination) for routing in routings]
        is_safe = all(choices) and all(map(arrives, set.union(*choices)))
        on_the_way.discard(node)
        if is_safe:
            arrived.add(node)
        return is_safe

    return arrives(first)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_step_sends_in_a_circle_or_drops_while_links_are_drained_or_come_back(data: st.DataObject) -> None:
    fabric = data.draw(fabrics)
    between = [number for number, cable in enumerate(fabric.cables) if {*cable.ends} <= {*fabric.switches}]
    dead = data.draw(st.sets(st.sampled_from(between))) if between else set()
    drained = data.draw(st.sets(st.sampled_from(between))) - dead if between else set()
    gone, leaving = (frozenset(2 * cable + way for cable in cables for way in (0, 1)) for cables in (dead, drained))
    before = route(fabric).without(gone)
    after = before.without(gone | leaving, leaving)
    whole = [before, *steps_between(before, after), *steps_between(after, before)]
    assert whole[-1] is before
    for destination in fabric.nic_by_address.values():
        for nic in fabric.nic_by_address.values():
            if after.candidate_paths(nic, destination):
                first = fabric.links[nic.link].destination
                for old, new in pairwise(whole):
                    # Switches change at different moments.
                    assert always_arrives((old, new), destination, first)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_switch_without_neighbours_goes_on_to_forward(data: st.DataObject) -> None:
    fabric = data.draw(fabrics)
    routing = route(fabric)
    transit = [switch for switch in fabric.switches if fabric.host_index.keys().isdisjoint(neighbours(fabric, switch))]
    if not transit:
        return
    switch = data.draw(st.sampled_from(transit))
    leaving = {each for link in fabric.links_from[switch] for each in (link.index, fabric.reverse(link.index))}
    drained = routing.without(leaving, leaving)
    assert drained.routes(switch) == routing.routes(switch)
    assert routing.without(leaving).routes(switch) == ()
    # A neighbour that is left without any cable forwards what it has, too.
    for other in (each for each in fabric.switches if set(neighbours(fabric, each)) != {switch} and each != switch):
        assert leaving.isdisjoint(link for each in drained.routes(other) for link in each.links)


def test_hops_count_the_links_between_switches() -> None:
    assert route(TESTBED).hops_to("t0") == {"t0": 0} | {f"a{n}": 1 for n in range(8)} | {
        f"t{n}": 2 for n in range(1, 6)
    }


def test_nothing_lies_between_routings_that_each_lack_a_link() -> None:
    routing = route(TESTBED)
    first, second = routing.without({2, 3}), routing.without({4, 5}, {4, 5})
    assert [*steps_between(first, second)] == [second]
    assert [*steps_between(first, first)] == [first]
