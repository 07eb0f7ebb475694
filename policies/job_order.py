"""Plans of policies that decide job by job: an order of the jobs that send, and a level for each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from policies.coflows import JobCoflow
from policies.flows import FlowKey
from policies.plan import FlowPlan, JobPlan, Plan
from topologies.fabric import Path

SENDS_NOTHING = "It sends nothing, so no path and no level can help it."
"""Reason of a job that has nothing to send."""


@dataclass(frozen=True, slots=True)
class JobDecision:
    """What a policy decides for one job; all its flows have its level, and ``order`` as their order at the host."""

    coflow: JobCoflow
    level: int
    order: int
    reason: str
    time_shift_s: float | None = None


def plan_in_order(
    policy: str,
    num_levels: int,
    coflows: Sequence[JobCoflow],
    *,
    order: Callable[[Sequence[JobCoflow]], Sequence[int]],
    levels: Callable[[int, int], Sequence[int]],
    reason: Callable[[JobCoflow], str],
    chosen: Mapping[FlowKey, Path] | None = None,
) -> Plan:
    """Plan that serves the jobs which send in the order that ``order`` gives, as positions in what it is handed.

    Jobs that send nothing come last, in the order given, and on the lowest level; they take no rank from ``levels``,
    which is told how many jobs send and how many levels there are.
    """
    sending = [coflow for coflow in coflows if coflow.sends]
    in_order = [sending[position] for position in order(sending)]
    decisions = [
        JobDecision(coflow, level, rank, reason(coflow))
        for rank, (coflow, level) in enumerate(zip(in_order, levels(len(sending), num_levels), strict=True))
    ]
    idle = [coflow for coflow in coflows if not coflow.sends]
    decisions += [JobDecision(coflow, 0, rank, SENDS_NOTHING) for rank, coflow in enumerate(idle, len(sending))]
    return plan_of(policy, decisions, chosen)


def plan_of(policy: str, decisions: Sequence[JobDecision], chosen: Mapping[FlowKey, Path] | None = None) -> Plan:
    """Plan of decisions in order of rank."""
    paths = chosen or {}
    return Plan(
        policy=policy,
        jobs=job_plans(decisions),
        flows={
            flow.key: FlowPlan(path=paths.get(flow.key), level=decision.level, order=decision.order)
            for decision in decisions
            for flow in decision.coflow.job.flows
        },
    )


def job_plans(decisions: Sequence[JobDecision]) -> tuple[JobPlan, ...]:
    """What the decisions, in order of rank, say of the jobs as such."""
    return tuple(
        JobPlan(
            name=decision.coflow.job.name,
            rank=rank,
            level=decision.level,
            intensity=decision.coflow.intensity,
            correction_factor=None,
            priority=None,
            time_shift_s=decision.time_shift_s,
            reason=decision.reason,
        )
        for rank, decision in enumerate(decisions)
    )
