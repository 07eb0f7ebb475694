"""Fail-over: the rules of a decision without dead links, and the Plan of flows that have no path left."""

from collections.abc import Set
from dataclasses import replace

from controller.planning.decision import Decision
from controller.rules.flow_rules import FlowRulesBySwitch
from policies.plan import Plan
from policies.snapshot import Snapshot
from topologies.addressing import FiveTuple
from topologies.routing import Routing


def without_dead_paths(decision: Decision, dead: Set[int]) -> FlowRulesBySwitch:
    """The rules of a decision, without the next links of flows whose paths cross a dead link.

    Such a flow is left to base routing on all switches, since a part of its rules could send it in a circle. Its
    level stays.
    """
    plans = decision.plan.flows
    return _without_next_links(
        decision,
        {
            flow.five_tuple
            for job in decision.snapshot.jobs
            for flow in job.flows
            if not dead.isdisjoint(plans[flow.key].path or flow.hashed_path)
        },
    )


def without_lacking_paths(decision: Decision, routing: Routing) -> FlowRulesBySwitch:
    """The same for flows whose path a routing does not have."""
    nics, plans = routing.fabric.nic_by_address, decision.plan.flows
    return _without_next_links(
        decision,
        {
            flow.five_tuple
            for job in decision.snapshot.jobs
            for flow in job.flows
            if (path := plans[flow.key].path) is not None
            and path
            not in routing.candidate_paths(
                nics[flow.five_tuple.source_address], nics[flow.five_tuple.destination_address]
            )
        },
    )


def _without_next_links(decision: Decision, cut: Set[FiveTuple]) -> FlowRulesBySwitch:
    if not cut:
        return decision.rules
    kept = {
        switch: tuple(
            replace(rule, next_link=None) if rule.five_tuple in cut else rule
            for rule in rules
            if rule.five_tuple not in cut or rule.level is not None
        )
        for switch, rules in decision.rules.items()
    }
    return {switch: rules for switch, rules in kept.items() if rules}


def best_effort_where_cut_off(plan: Plan, snapshot: Snapshot) -> Plan:
    """The Plan, with flows that have no path left at the lowest level and on the path of the hash."""
    cut_off = [flow.key for job in snapshot.jobs for flow in job.flows if flow.is_cut_off]
    if not cut_off:
        return plan
    return replace(plan, flows={**plan.flows, **{key: plan.flows[key]._replace(path=None, level=0) for key in cut_off}})
