"""Between which NICs probes show something, and that this is found once for a routing."""

from collections import Counter
from itertools import permutations

import pytest

from controller.telemetry.int_coverage import IntCoverage
from topologies.ecmp import hash_multipliers
from topologies.fabric import Nic, Path
from topologies.given_routing import GivenRoutes, GivenRouting
from topologies.routing import Route, Routing
from topologies.specification import ClosSpecification, FatTreeSpecification

FABRIC = FatTreeSpecification(kind="fat_tree", k=4, host_link_gbps=100, uplink_gbps=100).build()
ROUTING = Routing(FABRIC, hash_multipliers(FABRIC.switches, 1))
PAIRS = list(permutations(FABRIC.nic_by_address.values(), 2))


@pytest.mark.parametrize("switch", FABRIC.switches)
def test_pairs_are_covered_whose_paths_avoid_switches_without_int(switch: str) -> None:
    coverage = IntCoverage({switch})
    of_switch = {link.index for link in FABRIC.links if switch in (link.source, link.destination)}
    for pair in PAIRS:
        paths = ROUTING.candidate_paths(*pair)
        assert coverage.covers(*pair, ROUTING) is all(of_switch.isdisjoint(path) for path in paths)


def test_dead_links_change_nothing() -> None:
    without = FABRIC.switches[-1]
    dead = {link.index for link in FABRIC.links if without in (link.source, link.destination)}
    whole, partial = IntCoverage({without}), IntCoverage({without})
    routing = ROUTING.without(dead)
    assert [partial.covers(*pair, routing) for pair in PAIRS] == [whole.covers(*pair, ROUTING) for pair in PAIRS]


def test_another_routing_is_looked_at_anew_and_each_destination_by_itself() -> None:
    fabric = ClosSpecification(
        kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100
    ).build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, 1))
    source, near, far = (fabric.nics[host][0] for host in ("h0", "h2", "h3"))
    given = {
        name: GivenRoutes(routing.routes(name), multiplier) for name, multiplier in routing.hash_multipliers.items()
    }
    by_a0 = next(link.index for link in fabric.links_from["t0"] if link.destination == "a0")
    to_near = Route(near.address, 32, (by_a0,))
    other = GivenRouting(fabric, {**given, "t0": GivenRoutes((*given["t0"].routes, to_near))})
    coverage = IntCoverage({"a1"})
    for each, is_near_covered in ((routing, False), (other, True), (routing, False)):
        assert coverage.covers(source, near, each) is is_near_covered
        assert not coverage.covers(source, far, each)


def test_paths_are_looked_at_once_for_each_switch_and_destination(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: Counter[tuple[str, int]] = Counter()
    candidate_paths = Routing.candidate_paths

    def noted(routing: Routing, source: Nic, destination: Nic) -> tuple[Path, ...]:
        looked[routing.fabric.links[source.link].destination, destination.link] += 1
        return candidate_paths(routing, source, destination)

    monkeypatch.setattr(Routing, "candidate_paths", noted)
    for switches, times in ((frozenset[str](), 0), (frozenset({FABRIC.switches[-1]}), 1)):
        looked.clear()
        coverage = IntCoverage(switches)
        for pair in PAIRS * 2:
            coverage.covers(*pair, ROUTING)
        assert set(looked.values()) == ({times} if times else set())
