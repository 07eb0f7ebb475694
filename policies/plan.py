"""Plan: what a policy decides. It holds no rates."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from operator import attrgetter
from typing import NamedTuple

from policies.flows import Flow, FlowKey
from topologies.fabric import Path


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The decision for one job.

    Attributes:
        name: The job.
        rank: Its unique place among the jobs, 0 the most urgent.
        level: The level of its most urgent flow; with eight levels 7 is the most urgent.
        intensity: GPU intensity; None where the policy does not compute it.
        correction_factor: k of Crux; None for other policies.
        priority: The value that the policy ranks by; None where it has none.
        time_shift_s: How long after its arrival the job's first iteration begins; None: as soon as it can.
        reason: One or two sentences for ``explain`` and reports.
    """

    name: str
    rank: int
    level: int
    intensity: float | None
    correction_factor: float | None
    priority: float | None
    time_shift_s: float | None
    reason: str


class FlowPlan(NamedTuple):
    """The decision for one template flow. A tuple, because a decision makes one for every flow of the cluster.

    Attributes:
        path: The path; None: the path of the fabric's hash.
        level: The level.
        order: The place in the order at the host, 0 first.
    """

    path: Path | None
    level: int
    order: int


def flow_plans(
    flows: Iterable[Flow], paths: Iterable[Path | None], level: int, order: int
) -> Iterator[tuple[FlowKey, FlowPlan]]:
    """Return pairs of key and FlowPlan for flows with these paths, one level and one order.

    It stops at the end of ``flows``. Decisions spend much of their time here, so no step of it runs Python code.
    """
    plans: Iterator[FlowPlan] = map(tuple.__new__, repeat(FlowPlan), zip(paths, repeat(level), repeat(order)))
    return zip(map(attrgetter("key"), flows), plans, strict=False)


@dataclass(frozen=True, slots=True)
class ModelledWorth:
    """Computation per second over all jobs, by the policy's own model.

    Attributes:
        in_force: With the previous Plan kept and new jobs added to it.
        decided: With the new Plan.
        iteration_s: By name of job, the iteration time that the model expects, where it does.
    """

    in_force: float
    decided: float
    iteration_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """The decisions for every job and flow of a Snapshot.

    Attributes:
        policy: The name of the policy.
        jobs: The decisions by job, in order of rank.
        flows: The decisions by flow.
        worth: What the policy's model expects; None where it has no model. Not part of the decision.
        memory: What the policy wants to find again when this Plan is ``Snapshot.previous``. Only the policy itself
            reads it. Not part of the decision.
    """

    policy: str
    jobs: tuple[JobPlan, ...]
    flows: Mapping[FlowKey, FlowPlan]
    worth: ModelledWorth | None = field(default=None, compare=False)
    memory: object | None = field(default=None, compare=False, repr=False)
