"""A decision: a Plan with its Snapshot and its rules, and the draft that it is made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.rules.flow_rules import FlowRulesBySwitch, RulesBySwitch
from controller.rules.job_rules import JobRule
from policies.flows import FlowKey
from policies.plan import Plan
from policies.snapshot import Snapshot
from topologies.addressing import FiveTuple


@dataclass(frozen=True, slots=True)
class Draft:
    """A Plan that asks for source ports before it can become a Decision.

    ``plan`` is what is carried out: the policy's Plan with the pins of operators, and flows that have no path left at
    best effort.
    ``port_changes`` are the new 5-tuples that would send flows where the Plan wants them.
    """

    snapshot: Snapshot
    plan: Plan
    port_changes: Mapping[FlowKey, FiveTuple]


@dataclass(frozen=True, slots=True)
class Decision:
    """The Plan with its number (from 1), the Snapshot it was decided on, and its rules for flows and for whole jobs."""

    number: int
    snapshot: Snapshot
    plan: Plan
    rules: FlowRulesBySwitch
    job_rules: Mapping[str, tuple[JobRule, ...]] = field(default_factory=dict)

    @property
    def switch_rules(self) -> RulesBySwitch:
        """All rules of every switch."""
        switches = self.rules.keys() | self.job_rules.keys()
        return {switch: self.rules.get(switch, ()) + self.job_rules.get(switch, ()) for switch in switches}

    @property
    def num_rules(self) -> int:
        """The number of rules for single flows, over all switches."""
        return sum(len(rules) for rules in self.rules.values())
