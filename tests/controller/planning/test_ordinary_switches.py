"""Where ordinary switches hash, a flow has the paths that it can be led along, and no rules there."""

from functools import partial
from operator import eq
from random import Random

import pytest

from controller.planning.decision_pipeline import DecisionPipeline
from controller.planning.ordinary_switches import choosable_paths, hashed_path
from controller.planning.snapshots import Snapshots
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from policies.job import Profile
from policies.policy import decide
from policies.registry import find_policy
from tests.topologies.mixing import with_ordinary
from topologies.addressing import FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.fabric import Path
from topologies.paths import Paths
from topologies.routing import Routing
from topologies.specification import FatTreeSpecification

FABRIC = FatTreeSpecification(kind="fat_tree", k=4, host_link_gbps=100, uplink_gbps=100).build()
SOURCE, DESTINATION = FABRIC.nics[FABRIC.hosts[0]][0], FABRIC.nics[FABRIC.hosts[-1]][0]
TOR = FABRIC.links[SOURCE.link].destination


def routing_with(*ordinary: str) -> Routing:
    fabric = with_ordinary(FABRIC, ordinary)
    return Routing(fabric, hash_multipliers(fabric.switches, 1))


def candidates(routing: Routing) -> Paths:
    return Paths(routing.candidate_paths(SOURCE, DESTINATION))


def flow(port: int) -> FiveTuple:
    return FiveTuple(SOURCE.address, DESTINATION.address, 17, port, 4791)


def without_port(_: Path) -> bool:
    return False


def aggregations() -> list[str]:
    routing = routing_with()
    return [FABRIC.links[link].destination for link in routing.next_links(TOR, DESTINATION)]


@pytest.mark.parametrize("port", range(50_000, 50_010))
def test_an_ordinary_switch_leaves_one_path_for_each_way_to_it(port: int) -> None:
    first, second = aggregations()
    routing = routing_with(first)
    paths = choosable_paths(candidates(routing), flow(port), routing, None, without_port)
    by_aggregation = [FABRIC.links[path[1]].destination for path in paths]
    assert sorted(by_aggregation) == sorted([first, second, second])
    assert routing.hashed_path(flow(port)) in paths


@pytest.mark.parametrize("port", range(50_000, 50_010))
def test_what_probes_show_of_a_flow_replaces_the_guess(port: int) -> None:
    first, _ = aggregations()
    routing = routing_with(first)
    for shown in candidates(routing):
        paths = choosable_paths(candidates(routing), flow(port), routing, shown, without_port)
        assert len(paths) == 3
        assert shown in paths
        if FABRIC.links[shown[1]].destination == first and routing.hashed_path(flow(port))[1] == shown[1]:
            assert hashed_path(flow(port), routing, shown) == shown


def test_a_path_for_which_a_source_port_is_known_can_be_chosen() -> None:
    routing = routing_with(*FABRIC.switches)
    everything = candidates(routing)
    assert len(choosable_paths(everything, flow(50_000), routing, None, without_port)) == 1
    for wanted in everything:
        paths = choosable_paths(everything, flow(50_000), routing, None, partial(eq, wanted))
        assert wanted in paths
        assert len(paths) <= 2


def test_all_paths_stay_where_a_flow_can_be_led_along_none() -> None:
    routing = routing_with(*FABRIC.switches)
    guess = routing.hashed_path(flow(50_000))
    others = Paths(path for path in candidates(routing) if path != guess)
    assert choosable_paths(others, flow(50_000), routing, None, without_port) == others


@pytest.mark.parametrize("policy", ["crux", "trainyard", "sincronia"])
def test_no_policy_asks_for_what_nobody_can_do(policy: str) -> None:
    random = Random(policy)
    ordinary = set(random.sample(FABRIC.switches, 8))
    routing = routing_with(*ordinary)
    registry = Registry(routing.fabric, 10.0)
    for number in range(4):
        hosts = random.sample(FABRIC.hosts, 4)
        registry.register_job(
            JobRequest(f"job{number}", tuple(hosts), 32, Profile(compute_s=0.1, comm_start=0.5, work=3.2)), 0.0
        )
        ring = zip(hosts, hosts[1:] + hosts[:1], strict=True)
        flows = tuple(FlowRequest(NicReference(a, 0), NicReference(b, 0), 10**9, 0.0) for a, b in ring)
        registry.register_flow_groups(f"job{number}", [FlowGroupRequest("ring", flows)])
    snapshot = Snapshots(registry, routing, 8, 1).take(0.0, None)
    chosen = find_policy(policy)
    pipeline = DecisionPipeline(lambda each: decide(chosen, each))
    draft = pipeline.draft(snapshot, pipeline.decide(snapshot), routing)
    decision = pipeline.finish(1, draft, (), routing)
    assert not ordinary & decision.rules.keys()
    for job in snapshot.jobs:
        for each in job.flows:
            path = decision.plan.flows[each.key].path or each.hashed_path
            for link in path[1:]:
                switch = FABRIC.links[link].source
                choices = routing.next_links(switch, FABRIC.nic_by_address[each.five_tuple.destination_address])
                assert (
                    switch not in ordinary or len(choices) == 1 or path == each.hashed_path or path in each.candidates
                )
    marked = [rule for rules in decision.rules.values() for rule in rules if rule.level is not None]
    assert len({rule.five_tuple for rule in marked}) == len(marked)
