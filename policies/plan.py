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
    """Decision for one job.

    ``rank`` is unique, 0 the most urgent; ``level`` that of its most urgent flow, 7 the most urgent of eight.
    ``intensity``, ``correction_factor`` and ``priority`` are None where the policy has no such thing.
    ``time_shift_s`` is how much later than it arrived the job's rhythm begins, None where iterations begin when
    they can.
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
    """Decision for one template flow: its path (None: the fabric's hash), level, and order at the host (0 first).

    A tuple, as a decision makes one for every flow of the cluster.
    """

    path: Path | None
    level: int
    order: int


def flow_plans(
    flows: Iterable[Flow], paths: Iterable[Path | None], level: int, order: int
) -> Iterator[tuple[FlowKey, FlowPlan]]:
    """By key, what flows get that have these paths, one level and one order; for as many as there are flows.

    A decision spends much of its time here, so that no step of it is Python's.
    """
    plans: Iterator[FlowPlan] = map(tuple.__new__, repeat(FlowPlan), zip(paths, repeat(level), repeat(order)))
    return zip(map(attrgetter("key"), flows), plans, strict=False)


@dataclass(frozen=True, slots=True)
class ModelledWorth:
    """Computation per second by the policy's model: with what was in force and new jobs put in, and as decided."""

    in_force: float
    decided: float


@dataclass(frozen=True, slots=True)
class Plan:
    """Decisions for every job and flow of a Snapshot, jobs in order of rank.

    ``worth`` is None where the policy models no such thing. ``memory`` is what the policy wants to find again when this
    is ``Snapshot.previous``; nobody else reads it. Neither is part of what is decided.
    """

    policy: str
    jobs: tuple[JobPlan, ...]
    flows: Mapping[FlowKey, FlowPlan]
    worth: ModelledWorth | None = field(default=None, compare=False)
    memory: object | None = field(default=None, compare=False, repr=False)
