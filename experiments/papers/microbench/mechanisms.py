"""What policies decide of one mechanism, the others being given: paths; an order on paths; levels for an order.

Given paths are the only candidates that flows have, so that the policy itself decides, whole.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from experiments.papers.microbench.lots import Choice
from experiments.papers.microbench.orders import Order
from policies.crux.policy import compressed_levels
from policies.flows import Flow
from policies.intensity import intensity, iterations
from policies.job import Job
from policies.level_mapping import equal_classes, own_levels
from policies.policy import decide
from policies.registry import find_policy
from policies.snapshot import Snapshot
from policies.traffic import Traffic
from policies.trainyard.steps import levels_in_order, orders
from topologies.paths import Paths


class Mechanism(StrEnum):
    """What a policy decides."""

    PATHS = "paths"
    PRIORITIES = "priorities"
    COMPRESSION = "compression"


METHODS: Mapping[Mechanism, tuple[str, ...]] = {
    Mechanism.PATHS: ("crux", "taccl-star", "trainyard"),
    Mechanism.PRIORITIES: (
        "crux",
        "taccl-star",
        "sincronia",
        "varys",
        "trainyard",
    ),
    Mechanism.COMPRESSION: ("crux", "sincronia", "varys", "trainyard"),
}
"""Whose mechanism is measured: those of the paper, of which it has Varys's compression only in figure 13, and ours."""


def paths(policy: str, snapshot: Snapshot) -> Choice:
    """The paths that a policy chooses."""
    plan = decide(find_policy(policy), snapshot)
    return tuple(
        list(flow.candidates).index(plan.flows[flow.key].path or flow.hashed_path)
        for job in snapshot.jobs
        for flow in job.flows
    )


def on_paths(snapshot: Snapshot, choice: Choice) -> Snapshot:
    """The same jobs, each flow with no path but the one chosen."""
    chosen = iter(choice)

    def pinned(flow: Flow) -> Flow:
        path = flow.candidates[next(chosen)]
        return replace(flow, candidates=Paths([path]), hashed_path=path)

    def of_job(job: Job) -> Job:
        groups = (replace(group, flows=tuple(map(pinned, group.flows))) for group in job.flow_groups)
        return replace(job, flow_groups=tuple(groups))

    return replace(snapshot, jobs=tuple(map(of_job, snapshot.jobs)))


def order(policy: str, pinned: Snapshot) -> Order:
    """The order that a policy gives to jobs on the paths that they have.

    That of ``trainyard`` is one among the jobs that meet; lots follow one another.
    """
    number = {job.name: position for position, job in enumerate(pinned.jobs)}
    if policy == "trainyard":
        return tuple(number[name] for lot in orders(pinned) for name in lot)
    return tuple(number[job.name] for job in decide(find_policy(policy), pinned).jobs)


def levels(policy: str, pinned: Snapshot, order: Order) -> tuple[int, ...]:
    """By job, the level that a policy's compression gives to jobs in this order on the paths that they have."""
    if policy == "trainyard":
        by_name = levels_in_order(pinned, [pinned.jobs[job].name for job in order])
        return tuple(by_name[job.name] for job in pinned.jobs)
    by_place = _COMPRESSIONS[policy](pinned, order)
    return tuple(by_place[order.index(job)] for job in range(len(order)))


def _crux(pinned: Snapshot, order: Order) -> Sequence[int]:
    loads = Traffic.with_candidates(pinned.jobs).loads(len(pinned.links))
    alone = iterations(pinned.jobs, loads.transfer_s(pinned.links.rates_bps))
    intensities = [intensity(pinned.jobs[job], alone[job]) or 0.0 for job in order]
    return compressed_levels(pinned, loads, order, intensities)


_COMPRESSIONS: Mapping[str, Callable[[Snapshot, Order], Sequence[int]]] = {
    "crux": _crux,
    "sincronia": lambda pinned, order: own_levels(len(order), pinned.num_levels),
    "varys": lambda pinned, order: equal_classes(len(order), pinned.num_levels),
}
