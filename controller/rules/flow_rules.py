"""From a Plan to the rules that switches need for it: one only where a switch would do something else by itself."""

from collections.abc import Container, Mapping
from dataclasses import dataclass

from controller.rules.job_rules import JobRule, host_traffic
from policies.flows import Flow
from policies.plan import FlowPlan, Plan
from policies.snapshot import Snapshot
from topologies.addressing import FiveTuple
from topologies.ecmp import FabricHash, flow_crc, hash_of_crc
from topologies.routing import Routing


@dataclass(frozen=True, slots=True, order=True)
class FlowRule:
    """What one switch does with one flow; at least one of the two is set.

    ``next_link`` is the link that it leaves by whatever the hash chooses, ``level`` what its packets are marked as.
    """

    switch: str
    five_tuple: FiveTuple
    next_link: int | None
    level: int | None


FlowRulesBySwitch = Mapping[str, tuple[FlowRule, ...]]
RulesBySwitch = Mapping[str, tuple[FlowRule | JobRule, ...]]
"""Rules of every switch that has any."""


def flow_rules(
    plan: Plan, snapshot: Snapshot, routing: Routing, fabric_hash: FabricHash = FabricHash.KNOWN
) -> FlowRulesBySwitch:
    """The rules of a Plan for the flows of its Snapshot.

    A switch gets a rule where the Plan's path leaves by another link than the hash's choice (where that is not known:
    wherever the switch has a choice, unless probes have shown that the flow goes there by itself), and the flow's first
    switch where its level is above 0, or where else it would be taken for the traffic of a job that has told its hosts
    alone; later switches read the level from the class that the first one marks. A flow that the Plan leaves to the
    hash is not led anywhere, and one that is cut off has no rules.
    """
    of_jobs = frozenset(pair for job in snapshot.jobs for pair in host_traffic(job, routing.fabric))
    rules: dict[str, list[FlowRule]] = {}
    for job in snapshot.jobs:
        for flow in job.told_flows:
            if flow.is_cut_off:
                continue
            for rule in _rules_of_flow(flow, plan.flows[flow.key], routing, fabric_hash, of_jobs):
                rules.setdefault(rule.switch, []).append(rule)
    return {switch: tuple(switch_rules) for switch, switch_rules in rules.items()}


def _rules_of_flow(
    flow: Flow, plan: FlowPlan, routing: Routing, fabric_hash: FabricHash, of_jobs: Container[tuple[int, str]]
) -> list[FlowRule]:
    links = routing.fabric.links
    destination = routing.fabric.nic_by_address[flow.five_tuple.destination_address]
    crc = flow_crc(flow.five_tuple)
    is_marked = plan.level > 0 or (flow.five_tuple.source_address, destination.host) in of_jobs
    rules = []
    # The first link leaves the host.
    for hop, link in enumerate((plan.path or flow.hashed_path)[1:]):
        switch = links[link].source
        choices = routing.next_links(switch, destination)
        if fabric_hash is FabricHash.KNOWN:
            hashed = choices[hash_of_crc(crc, routing.hash_multipliers[switch]) % len(choices)]
            is_led = link != hashed
        else:
            goes_there = flow.is_hash_probed and plan.path == flow.hashed_path
            is_led = plan.path is not None and len(choices) > 1 and not goes_there
        next_link = link if is_led else None
        level = plan.level if hop == 0 and is_marked else None
        if next_link is not None or level is not None:
            rules.append(FlowRule(switch, flow.five_tuple, next_link, level))
    return rules
