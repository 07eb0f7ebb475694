"""Rules only where a switch would do something else by itself."""

import pytest

from controller.planning.snapshots import Snapshots
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, JobRequest
from controller.rules.flow_rules import FlowRule, RulesBySwitch, flow_rules
from policies.plan import FlowPlan, Plan
from policies.snapshot import Snapshot
from topologies.addressing import FiveTuple
from topologies.ecmp import FabricHash, flow_hash
from topologies.fabric import Path
from topologies.routing import Routing


@pytest.fixture
def snapshot(registry: Registry, routing: Routing, job: JobRequest, ring: FlowGroupRequest) -> Snapshot:
    """One job with one flow, from h0 at t0 to h2 at t1."""
    registry.register_job(job, now_s=0.0)
    registry.register_flow_groups("gpt", [FlowGroupRequest("one", ring.flows[:1])])
    return Snapshots(registry, routing, num_levels=8, seed=1).take(0.0, previous=None)


def _rules(
    snapshot: Snapshot, routing: Routing, path: Path | None, level: int, fabric_hash: FabricHash = FabricHash.KNOWN
) -> RulesBySwitch:
    (flow,) = snapshot.jobs[0].flows
    return flow_rules(Plan("test", (), {flow.key: FlowPlan(path, level, order=0)}), snapshot, routing, fabric_hash)


def test_no_rule_where_the_hash_already_chooses_the_path(snapshot: Snapshot, routing: Routing) -> None:
    (flow,) = snapshot.jobs[0].flows
    assert _rules(snapshot, routing, flow.hashed_path, level=0) == {}
    assert _rules(snapshot, routing, None, level=0) == {}


def test_level_is_marked_at_the_first_switch_only(snapshot: Snapshot, routing: Routing) -> None:
    (flow,) = snapshot.jobs[0].flows
    assert _rules(snapshot, routing, None, level=5) == {"t0": (FlowRule("t0", flow.five_tuple, None, 5),)}


def test_rules_lead_the_flow_along_every_candidate_path(snapshot: Snapshot, routing: Routing) -> None:
    (flow,) = snapshot.jobs[0].flows
    for path in flow.candidates:
        rules = _rules(snapshot, routing, path, level=3)
        assert _followed(flow.five_tuple, rules, routing) == path
        # The level and the next hop of the first switch share a rule.
        assert [rule.level for rule in rules["t0"]] == [3]


def test_no_rule_repeats_what_the_hash_chooses(snapshot: Snapshot, routing: Routing) -> None:
    (flow,) = snapshot.jobs[0].flows
    destination = routing.fabric.nics["h2"][0]
    for path in flow.candidates:
        for switch, rules in _rules(snapshot, routing, path, level=0).items():
            hashed = _hashed(flow.five_tuple, routing.next_links(switch, destination), switch, routing)
            assert [rule.next_link for rule in rules if rule.next_link == hashed] == []


def test_every_switch_with_a_choice_has_a_rule_where_the_hash_is_unknown(snapshot: Snapshot, routing: Routing) -> None:
    (flow,) = snapshot.jobs[0].flows
    destination = routing.fabric.nics["h2"][0]
    links = routing.fabric.links
    for path in flow.candidates:
        rules = _rules(snapshot, routing, path, 3, FabricHash.UNKNOWN)
        chosen = [link for link in path[1:] if len(routing.next_links(links[link].source, destination)) > 1]
        assert len(chosen) == 2
        assert {switch: [rule.next_link for rule in some] for switch, some in rules.items()} == {
            links[link].source: [link] for link in chosen
        }
        assert [rule.level for some in rules.values() for rule in some] == [3, None]


def test_a_flow_left_to_an_unknown_hash_is_only_marked(snapshot: Snapshot, routing: Routing) -> None:
    (flow,) = snapshot.jobs[0].flows
    assert _rules(snapshot, routing, None, 0, FabricHash.UNKNOWN) == {}
    marked = FlowRule("t0", flow.five_tuple, None, 5)
    assert _rules(snapshot, routing, None, 5, FabricHash.UNKNOWN) == {"t0": (marked,)}


def _followed(five_tuple: FiveTuple, rules: RulesBySwitch, routing: Routing) -> Path:
    """The path of a packet that every switch sends by its rule, or else by its hash."""
    steered = {rule.switch: rule.next_link for some in rules.values() for rule in some}
    links, nics = routing.fabric.links, routing.fabric.nic_by_address
    destination = nics[five_tuple.destination_address]
    path = [nics[five_tuple.source_address].link]
    while (node := links[path[-1]].destination) != destination.host:
        hashed = _hashed(five_tuple, routing.next_links(node, destination), node, routing)
        next_link = steered.get(node)
        path.append(hashed if next_link is None else next_link)
    return tuple(path)


def _hashed(five_tuple: FiveTuple, choices: tuple[int, ...], switch: str, routing: Routing) -> int:
    return choices[flow_hash(five_tuple, routing.hash_multipliers[switch]) % len(choices)]
