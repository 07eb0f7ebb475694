"""Helpers for policies that rank whole jobs: an order of the jobs, a level for each rank, and the Plan of both.

return plan_in_order(
    "shortest-first",
    snapshot.num_levels,
    job_coflows(snapshot),
    order=lambda coflows: sorted(range(len(coflows)), key=lambda number: coflows[number].iteration.comm_s),
    levels=equal_classes,
    reason=lambda coflow: f"Its bottleneck link needs {coflow.iteration.comm_s:.4g} s.",
)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from policies.coflows import JobCoflow
from policies.flows import FlowKey
from policies.plan import FlowPlan, JobPlan, Plan
from topologies.fabric import Path

SENDS_NOTHING = "It sends nothing, so no path and no level can help it."
"""The reason of a job that has nothing to send."""


def own_levels(num_jobs: int, num_levels: int) -> list[int]:
    """Return levels by rank: one for each job from the top, the lowest for all that are left.

    With eight levels this is ``max(7 - rank, 0)``, as in Sincronia's implementation.
    """
    return [max(num_levels - 1 - rank, 0) for rank in range(num_jobs)]


def equal_classes(num_jobs: int, num_levels: int) -> list[int]:
    """Return levels by rank: neighbouring ranks in classes whose sizes differ by at most one job, from the top level.

    Crux (figure 13) compresses the ranks of Varys this way.
    """
    num_classes = min(num_jobs, num_levels)
    return [num_levels - 1 - rank * num_classes // num_jobs for rank in range(num_jobs)]


@dataclass(frozen=True, slots=True)
class JobDecision:
    """A policy's decision for one job. All its flows get ``level``, and ``order`` as their order at the host."""

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
    """Return a Plan that serves jobs in one order. Jobs that send nothing come last, on the lowest level.

    Args:
        policy: The name of the policy.
        num_levels: How many levels there are.
        coflows: All jobs of the Snapshot, as ``job_coflows`` gives them.
        order: Returns positions in the sequence of sending jobs that it is given, the most urgent first.
        levels: Returns levels by rank for a number of sending jobs and a number of levels, as ``equal_classes`` does.
        reason: Returns one sentence on why a job has its rank.
        chosen: The paths of steered flows; all others keep the path of the fabric's hash.
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
    """Return the Plan of these decisions, which are in order of rank; ``chosen`` as for ``plan_in_order``."""
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
    """Return the job part of the Plan of these decisions, which are in order of rank."""
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
