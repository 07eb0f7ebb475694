"""Plans of policies that decide job by job: an order of the jobs that send, and a level for each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from controller.policy.intensity import Demand, FloatArray, demand
from controller.policy.plan import FlowPlan, JobPlan, Plan
from controller.policy.policy_name import PolicyName
from controller.policy.snapshot import Flow, FlowKey, Snapshot
from topologies.fabric import Path

SENDS_NOTHING = "It sends nothing, so no path and no level can help it."


@dataclass(frozen=True, slots=True)
class JobDecision:
    """What a policy decides for one job; all its flows have its level, and ``order`` as their order at the host."""

    demand: Demand
    level: int
    order: int
    reason: str
    time_shift_s: float = 0.0


def demands_of(
    snapshot: Snapshot, link_rates_bps: FloatArray, chosen: Mapping[FlowKey, Path] | None = None
) -> list[Demand]:
    """Demands of all jobs by name, on the paths chosen, or the hash's where none is."""
    paths = chosen or {}

    def paths_of(flow: Flow) -> tuple[Path]:
        return (paths.get(flow.key, flow.hashed_path),)

    return [demand(job, link_rates_bps, paths_of) for job in sorted(snapshot.jobs, key=lambda job: job.name)]


def plan_in_order(
    policy: PolicyName,
    num_levels: int,
    demands: Sequence[Demand],
    *,
    order: Callable[[Sequence[Demand]], Sequence[int]],
    levels: Callable[[int, int], Sequence[int]],
    reason: Callable[[Demand], str],
    chosen: Mapping[FlowKey, Path] | None = None,
) -> Plan:
    """Plan that serves the jobs which send in the order that ``order`` gives for their demands, numbered as given.

    Jobs that send nothing come last, in the order given, and on the lowest level; they take no rank from ``levels``,
    which is told how many jobs send and how many levels there are.
    """
    sending = [demand for demand in demands if sends(demand)]
    idle = [demand for demand in demands if not sends(demand)]
    in_order = [sending[index] for index in order(sending)] if sending else []
    decisions = [
        JobDecision(demand, level, rank, reason(demand))
        for rank, (demand, level) in enumerate(zip(in_order, levels(len(sending), num_levels), strict=True))
    ]
    decisions += [JobDecision(demand, 0, len(sending) + index, SENDS_NOTHING) for index, demand in enumerate(idle)]
    return plan_of(policy, decisions, chosen)


def plan_of(policy: PolicyName, decisions: Sequence[JobDecision], chosen: Mapping[FlowKey, Path] | None = None) -> Plan:
    """Plan of decisions in order of rank."""
    paths = chosen or {}
    return Plan(
        policy=policy,
        jobs=tuple(
            JobPlan(
                name=decision.demand.job.name,
                rank=rank,
                level=decision.level,
                intensity=decision.demand.intensity,
                correction_factor=None,
                priority=None,
                time_shift_s=decision.time_shift_s,
                reason=decision.reason,
            )
            for rank, decision in enumerate(decisions)
        ),
        flows={
            flow.key: FlowPlan(path=paths.get(flow.key), level=decision.level, order=decision.order)
            for decision in decisions
            for flow in decision.demand.job.flows
        },
    )


def sends(demand: Demand) -> bool:
    """Whether a job occupies any link at all."""
    return demand.iteration.comm_s > 0
