"""Flow rules for the time in which switches change from one routing to another."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from controller.rules.flow_rules import FlowRule, FlowRulesBySwitch, flow_rules
from policies.plan import Plan
from policies.snapshot import Snapshot
from topologies.addressing import FiveTuple
from topologies.ecmp import FabricHash
from topologies.routing import Routing

_Place = tuple[str, FiveTuple]
"""A switch and a flow: there is at most one rule for them."""


def rule_steps(
    held: FlowRulesBySwitch,
    plan: Plan,
    snapshot: Snapshot,
    before: Routing,
    after: Routing,
    fabric_hash: FabricHash = FabricHash.KNOWN,
) -> Iterator[FlowRulesBySwitch]:
    """Yield the rules to write one after the other, each on all switches before the next, while routes stay ``before``.

    They lead every flow from the path on which the ``held`` rules send it to that of the Plan. On its new path switches
    change in order of their distance to the destination, the next ones first, so that each packet stays on one of the
    two paths, or changes from the old one to the new one. The last rules keep the flows on their new paths whether
    switches route as ``before`` or as ``after``.
    """
    old, new = _by_place(held), _by_place(_rules_for_both(plan, snapshot, before, after, fabric_hash))
    hops = _hops_left(plan, snapshot, after)
    steps = sorted(
        {hops[place] for place in old.keys() | new.keys() if place in hops and old.get(place) != new.get(place)}
    )
    for step in (*steps, math.inf):
        yield _by_switch(
            {
                place: rule
                for place in old | new
                if (rule := (new if hops.get(place, math.inf) <= step else old).get(place)) is not None
            }
        )


def _rules_for_both(
    plan: Plan, snapshot: Snapshot, before: Routing, after: Routing, fabric_hash: FabricHash
) -> FlowRulesBySwitch:
    """The rules that lead flows along the paths of a Plan under either routing; flows without a path follow both."""
    rules = _by_place(flow_rules(plan, snapshot, after, fabric_hash))
    follow_the_hash = {
        flow.five_tuple for job in snapshot.jobs for flow in job.flows if plan.flows[flow.key].path is None
    }
    for place, rule in _by_place(flow_rules(plan, snapshot, before, fabric_hash)).items():
        if rule.five_tuple not in follow_the_hash and rule.next_link is not None:
            rules[place] = replace(rules.get(place, rule), next_link=rule.next_link)
    return _by_switch(rules)


def _hops_left(plan: Plan, snapshot: Snapshot, routing: Routing) -> dict[_Place, int]:
    """How many links are left behind the switches on the paths of a Plan."""
    links = routing.fabric.links
    return {
        (links[link].source, flow.five_tuple): left
        for job in snapshot.jobs
        for flow in job.registered_flows
        if (path := plan.flows[flow.key].path) is not None
        for left, link in enumerate(reversed(path[1:]))
    }


def _by_place(rules: FlowRulesBySwitch) -> dict[_Place, FlowRule]:
    return {(switch, rule.five_tuple): rule for switch, some in rules.items() for rule in some}


def _by_switch(rules: Mapping[_Place, FlowRule]) -> FlowRulesBySwitch:
    by_switch: dict[str, list[FlowRule]] = {}
    for (switch, _), rule in rules.items():
        by_switch.setdefault(switch, []).append(rule)
    return {switch: tuple(some) for switch, some in by_switch.items()}
