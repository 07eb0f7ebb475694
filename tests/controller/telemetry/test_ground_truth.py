"""The candidate table that probes build, against the links that data packets cross in the emulator."""

import random

import pytest

from controller.telemetry.path_table import Freshness
from controller.telemetry.telemetry import PairView
from hostlib.telemetry.prober import Pace
from tests.controller.telemetry.probed import ProbedFabric, flow_between
from topologies.fabric import Fabric, Nic
from topologies.specification import ClosSpecification, DoubleSidedSpecification, FatTreeSpecification

TESTBED = ClosSpecification(
    kind="clos",
    tors=6,
    aggs=8,
    hosts_per_tor=2,
    nics_per_host=8,
    host_link_gbps=800,
    uplink_gbps=100,
    uplinks_per_pair=2,
)
FABRICS = {
    "testbed": TESTBED,
    "double-sided": DoubleSidedSpecification(
        kind="double_sided", hosts_per_pair=1, host_link_gbps=800, uplink_gbps=200, core_link_gbps=400
    ),
    "fat-tree": FatTreeSpecification(kind="fat_tree", k=8, host_link_gbps=100, uplink_gbps=100),
}
NUM_PAIRS = 6


def some_pairs(fabric: Fabric, chance: random.Random) -> list[tuple[Nic, Nic]]:
    """Pairs of NICs of different hosts, all different."""
    nics = [nic for nics in fabric.nics.values() for nic in nics]
    pairs: dict[tuple[Nic, Nic], None] = {}
    while len(pairs) < NUM_PAIRS:
        source, destination = chance.sample(nics, 2)
        if source.host != destination.host:
            pairs[source, destination] = None
    return list(pairs)


def assert_ports_are_right(probed: ProbedFabric, pair: PairView) -> None:
    """Every port that a fresh path is said to have leads there."""
    for candidate in pair.candidates:
        if candidate.freshness is Freshness.FRESH:
            assert candidate.source_ports
            for port in candidate.source_ports:
                flow = flow_between(pair.source, pair.destination, port)
                assert probed.true_path(flow) == candidate.path


def assert_probed_is_computed(probed: ProbedFabric, pair: PairView) -> None:
    """The hash of our own pipeline, computed, sends every port along the path that probes have found."""
    for candidate in pair.candidates:
        for port in candidate.source_ports:
            assert probed.routing.hashed_path(flow_between(pair.source, pair.destination, port)) == candidate.path


def true_paths(probed: ProbedFabric, pair: PairView, num_ports: int = 300) -> set[tuple[int, ...]]:
    """The paths of data packets from so many ports."""
    flows = (flow_between(pair.source, pair.destination, 60_000 + port) for port in range(num_ports))
    return {path for path in map(probed.true_path, flows) if path is not None}


def fresh_paths(pair: PairView) -> set[tuple[int, ...]]:
    return {candidate.path for candidate in pair.candidates if candidate.freshness is Freshness.FRESH}


@pytest.mark.slow
@pytest.mark.parametrize("name", FABRICS)
def test_the_table_is_the_truth_and_stays_so_when_links_fail(name: str) -> None:
    chance = random.Random(name)
    fabric = FABRICS[name].build()
    # Quick refreshes, so that little virtual time has to pass.
    probed = ProbedFabric(fabric, pace=Pace(refresh_s=0.02), stale_after_s=0.2)
    probed.watch(some_pairs(fabric, chance))
    probed.run_until_complete(at_most_s=1.0)
    pairs = probed.pairs()
    assert fresh_paths(pairs[0]) == true_paths(probed, pairs[0])
    for pair in pairs:
        assert fresh_paths(pair) == set(probed.routing.candidate_paths(pair.source, pair.destination))
        assert_ports_are_right(probed, pair)
        assert_probed_is_computed(probed, pair)

    # Both directions of cables between switches that the pairs' paths cross.
    crossed = sorted({link // 2 for pair in pairs for path in fresh_paths(pair) for link in path[1:-1]})
    cut = chance.sample(crossed, 3)
    for cable in cut:
        for link in (2 * cable, 2 * cable + 1):
            probed.emulated.set_link(link, up=False)
    probed.run(probed.now_s + 0.5)
    dead = {link for cable in cut for link in (2 * cable, 2 * cable + 1)}
    hit = 0
    for pair in probed.pairs():
        alive = {path for path in probed.routing.candidate_paths(pair.source, pair.destination) if not dead & {*path}}
        hit += len(alive) < len(pair.candidates)
        assert fresh_paths(pair) <= alive
        assert pair.is_complete == (len(alive) == len(pair.candidates))
        assert_ports_are_right(probed, pair)
        if pair.source == pairs[0].source and pair.destination == pairs[0].destination:
            assert fresh_paths(pair) == true_paths(probed, pair)
    assert hit
    assert not probed.telemetry.rejected

    for link in dead:
        probed.emulated.set_link(link, up=True)
    probed.run_until_complete(at_most_s=probed.now_s + 1.0)
    for pair in probed.pairs():
        assert_ports_are_right(probed, pair)
