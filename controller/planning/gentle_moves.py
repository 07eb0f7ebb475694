"""Gentle moves: the writes by which flows leave links that still work, or return to them, without losing a packet."""

from collections.abc import Iterator
from dataclasses import replace

from controller.planning.decision import Decision
from controller.rules.flow_rules import FlowRulesBySwitch, RulesBySwitch, flow_rules
from controller.rules.transitional_rules import rule_steps
from topologies.ecmp import FabricHash
from topologies.routing import Routing
from topologies.transitions import steps_between


def is_gentle(before: Routing, after: Routing) -> bool:
    """Whether two routings differ by links alone that are drained, or no longer are."""
    leaving, returning = after.dead - before.dead, before.dead - after.dead
    return bool(leaving or returning) and leaving <= after.drained and returning <= before.drained


def moves(
    held: Decision | None,
    decision: Decision,
    before: Routing,
    after: Routing,
    fabric_hash: FabricHash = FabricHash.KNOWN,
) -> Iterator[tuple[RulesBySwitch, Routing]]:
    """Yield what to write one after the other, each to all switches before the next: rules, and the routing after them.

    First the rules move the flows that they steer, then routes change under them, and in the end rules go that are of
    no use any longer. Where some links are left and others used again, flows first return to the latter, so that at
    least the links are used that either routing has. ``held`` is the decision until now; None: there is none.
    """
    if before.dead <= after.dead or after.dead <= before.dead:
        yield from _moves_one_way(held, decision, before, after, fabric_hash)
        return
    both = before.dead & after.dead
    between = before.without(both, both & after.drained)
    rules = flow_rules(decision.plan, decision.snapshot, between, fabric_hash)
    returned = replace(decision, rules=rules)
    yield from _moves_one_way(held, returned, before, between, fabric_hash)
    yield from _moves_one_way(returned, decision, between, after, fabric_hash)


def _moves_one_way(
    held: Decision | None, decision: Decision, before: Routing, after: Routing, fabric_hash: FabricHash
) -> Iterator[tuple[RulesBySwitch, Routing]]:
    rules: FlowRulesBySwitch = {}
    held_rules = {} if held is None else held.rules
    for rules in rule_steps(held_rules, decision.plan, decision.snapshot, before, after, fabric_hash):
        yield _with_job_rules(rules, held), before
    *steps, last = steps_between(before, after)
    yield from ((_with_job_rules(rules, held), step) for step in steps)
    yield decision.switch_rules, last


def _with_job_rules(rules: FlowRulesBySwitch, held: Decision | None) -> RulesBySwitch:
    job_rules = {} if held is None else held.job_rules
    return {switch: rules.get(switch, ()) + job_rules.get(switch, ()) for switch in rules.keys() | job_rules.keys()}
