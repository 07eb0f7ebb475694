"""A decision: a Plan with its Snapshot and its rules, and the directives that it has for every job."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.rules.flow_rules import FlowRulesBySwitch, RulesBySwitch
from controller.rules.job_rules import JobRule
from policies.flows import FlowKey
from policies.plan import Plan
from policies.snapshot import Snapshot
from topologies.fabric import Path


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


@dataclass(frozen=True, slots=True)
class FlowDirective:
    """The path, level, order and source port of one flow; the path is that of the hash where the Plan sets none."""

    key: FlowKey
    path: Path
    level: int
    order: int
    source_port: int


@dataclass(frozen=True, slots=True)
class JobDirectives:
    """A job's part of a Plan; ``arrival_s`` tells apart jobs of the same name."""

    plan_number: int
    arrival_s: float
    time_shift_s: float | None
    flows: tuple[FlowDirective, ...]


def directives_of(decision: Decision) -> Mapping[str, JobDirectives]:
    """The directives of a decision, by job."""
    plans = {job.name: job for job in decision.plan.jobs}
    return {
        job.name: JobDirectives(
            decision.number,
            job.arrival_s,
            plans[job.name].time_shift_s,
            tuple(
                FlowDirective(
                    flow.key, plan.path or flow.hashed_path, plan.level, plan.order, flow.five_tuple.source_port
                )
                for flow in job.told_flows
                for plan in (decision.plan.flows[flow.key],)
            ),
        )
        for job in decision.snapshot.jobs
    }
