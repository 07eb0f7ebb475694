"""Turn a Plan into flow rules, only where a switch would do something else by itself."""

from collections.abc import Container, Mapping
from dataclasses import dataclass

from controller.rules.job_rules import JobRule, host_traffic
from policies.flows import Flow
from policies.plan import FlowPlan, Plan
from policies.snapshot import Snapshot
from topologies.addressing import Address, FiveTuple
from topologies.ecmp import FabricHash, flow_crc
from topologies.routing import Routing


@dataclass(frozen=True, slots=True, order=True)
class FlowRule:
    """The rule of one switch for one flow.

    ``next_link`` is the link by which the flow leaves whatever the hash chooses, ``level`` what its packets are marked
    with. At least one of them is set.
    """

    switch: str
    five_tuple: FiveTuple
    next_link: int | None
    level: int | None


FlowRulesBySwitch = Mapping[str, tuple[FlowRule, ...]]
RulesBySwitch = Mapping[str, tuple[FlowRule | JobRule, ...]]
"""The rules of every switch that has any."""


def flow_rules(
    plan: Plan, snapshot: Snapshot, routing: Routing, fabric_hash: FabricHash = FabricHash.KNOWN
) -> FlowRulesBySwitch:
    """Return the rules of a Plan for the flows of its Snapshot.

    A switch steers a flow if the Plan's path leaves by another link than the hash would choose. With an unknown hash it
    does wherever it has a choice, unless probes have shown that the flow takes the path by itself. Ordinary switches
    have no rules.

    The first switch of a flow that can have rules marks its level if that is above 0, or if the flow would otherwise
    count as traffic of a job that has described its hosts alone. Later switches read the level from the mark. A flow
    that the Plan leaves to the hash is not steered, and one that is cut off has no rules.
    """
    job_traffic = frozenset(pair for job in snapshot.jobs for pair in host_traffic(job, routing.fabric))
    rules: dict[str, list[FlowRule]] = {}
    for job in snapshot.jobs:
        for flow in job.registered_flows:
            if flow.is_cut_off:
                continue
            for rule in _rules_of_flow(flow, plan.flows[flow.key], routing, fabric_hash, job_traffic):
                rules.setdefault(rule.switch, []).append(rule)
    return {switch: tuple(switch_rules) for switch, switch_rules in rules.items()}


def steered_flows(rules: FlowRulesBySwitch) -> frozenset[FiveTuple]:
    """The flows that any of these rules steers."""
    return frozenset(rule.five_tuple for some in rules.values() for rule in some if rule.next_link is not None)


def _rules_of_flow(
    flow: Flow, plan: FlowPlan, routing: Routing, fabric_hash: FabricHash, job_traffic: Container[tuple[Address, str]]
) -> list[FlowRule]:
    links, ordinary = routing.fabric.links, routing.fabric.ordinary_switches
    destination = routing.fabric.nic_by_address[flow.five_tuple.destination_address]
    crc = flow_crc(flow.five_tuple) if fabric_hash is FabricHash.KNOWN else 0
    is_marked = plan.level > 0 or (flow.five_tuple.source_address, destination.host) in job_traffic
    rules = []
    # The first link leaves the host, so no switch sends on it.
    for link in (plan.path or flow.hashed_path)[1:]:
        switch = links[link].source
        if switch in ordinary:
            continue
        choices = routing.hash_choices(switch, destination)
        if fabric_hash is FabricHash.KNOWN and choices is not None:
            is_steered = not choices or link != routing.hashed_link(switch, crc, choices)
        else:
            goes_there = flow.is_hash_probed and plan.path == flow.hashed_path
            is_steered = plan.path is not None and choices != (link,) and not goes_there
        next_link = link if is_steered else None
        level = plan.level if is_marked else None
        is_marked = False
        if next_link is not None or level is not None:
            rules.append(FlowRule(switch, flow.five_tuple, next_link, level))
    return rules
