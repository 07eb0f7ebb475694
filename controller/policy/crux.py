"""Crux: paths, priorities and levels by GPU intensity (Crux, section 4).

``crux`` chooses paths, priorities and levels; ``crux_pa`` only priorities and levels, on the paths of the fabric's
hash.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from controller.policy.compression import Contender, compress
from controller.policy.correction_factor import correction_factors
from controller.policy.intensity import Demand, demand, most_intense_first, rates_bps
from controller.policy.path_selection import select_paths
from controller.policy.plan import FlowPlan, JobPlan, Plan
from controller.policy.policy_name import PolicyName
from controller.policy.snapshot import Flow, FlowKey, Job, OrderKeeper, Snapshot
from topologies.fabric import Path


def crux(snapshot: Snapshot) -> Plan:
    """Choose paths, priorities and levels."""
    return _plan(snapshot, PolicyName.CRUX, select_paths(snapshot))


def crux_pa(snapshot: Snapshot) -> Plan:
    """Choose priorities and levels; flows stay where the fabric's hash sends them."""
    return _plan(snapshot, PolicyName.CRUX_PA, {})


def _plan(snapshot: Snapshot, policy: PolicyName, chosen: Mapping[FlowKey, Path]) -> Plan:
    """Rank the jobs on the paths chosen (the hash's where none is) and compress the ranks to levels.

    All flows of a job have its level, and its rank as their order at the host.
    """
    ranked, reference = _rank(snapshot, chosen)
    levels = _levels(snapshot, ranked)
    return Plan(
        policy=policy,
        jobs=tuple(
            JobPlan(
                name=entry.name,
                rank=rank,
                level=levels[entry.name],
                intensity=entry.demand.intensity,
                correction_factor=entry.correction_factor,
                priority=entry.priority,
                time_shift_s=0.0,
                reason=_reason(entry, reference),
            )
            for rank, entry in enumerate(ranked)
        ),
        flows={
            flow.key: FlowPlan(path=chosen.get(flow.key), level=levels[entry.name], order=rank)
            for rank, entry in enumerate(ranked)
            for flow in entry.demand.job.flows
        },
    )


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A job with its priority P = k I; without one if it sends nothing."""

    demand: Demand
    correction_factor: float | None
    priority: float | None

    @property
    def name(self) -> str:
        return self.demand.job.name


def _rank(snapshot: Snapshot, chosen: Mapping[FlowKey, Path]) -> tuple[list[_Ranked], str]:
    """All jobs by decreasing priority, ties by name, those that send nothing last; and the reference job's name.

    The reference job is the one that sends most bytes per iteration, ties by name.
    """

    def paths_of(flow: Flow) -> tuple[Path]:
        return (chosen.get(flow.key, flow.hashed_path),)

    link_rates_bps = rates_bps(snapshot.links)
    demands = [demand(job, link_rates_bps, paths_of) for job in snapshot.jobs]
    if not demands:
        return [], ""
    reference = min(demands, key=lambda demand: (-_bytes_sent(demand.job), demand.job.name))
    factors = correction_factors([demand.iteration for demand in demands], reference.iteration)
    ranked = []
    for job_demand, factor in zip(demands, factors, strict=True):
        if job_demand.intensity is None:
            ranked.append(_Ranked(job_demand, None, None))
        else:
            factor = 1.0 if job_demand is reference else factor
            ranked.append(_Ranked(job_demand, factor, factor * job_demand.intensity))
    return sorted(ranked, key=lambda entry: most_intense_first(entry.priority, entry.name)), reference.job.name


def _bytes_sent(job: Job) -> float:
    return sum(flow.size_bytes for flow in job.flows)


def _levels(snapshot: Snapshot, ranked: Sequence[_Ranked]) -> dict[str, int]:
    is_ordered = np.array([link.order_keeper is OrderKeeper.SWITCH_QUEUE for link in snapshot.links], dtype=bool)
    contenders = [
        Contender(
            name=entry.name,
            rank=rank,
            intensity=entry.demand.intensity or 0.0,
            links=frozenset(np.flatnonzero(is_ordered & (entry.demand.bytes_by_link > 0)).tolist()),
        )
        for rank, entry in enumerate(ranked)
    ]
    return compress(contenders, snapshot.num_levels, snapshot.seed)


def _reason(entry: _Ranked, reference: str) -> str:
    if entry.priority is None:
        return "It sends nothing, so no path and no level can help it."
    comparison = (
        "the job that sends most, with which the others are compared"
        if entry.name == reference
        else f"beside {reference!r}, the job that sends most"
    )
    return (
        f"Each second on its bottleneck link feeds {entry.demand.intensity:.4g} of computation,"
        f" counted {entry.correction_factor:.3g} times: {comparison}."
    )
