"""Muri (Zhao et al., SIGCOMM 2022): jobs that use resources in turn share GPUs, each waiting for what the other has.

An iteration is stages, each on one resource. In a group every job is at another resource at any time: in step s of a
round job i uses resource s - o_i, and the step lasts as long as its longest stage. Jobs that ask for as many GPUs as
each other are paired by a matching of maximum weight, and pairs again, until the waiting jobs fit.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations
from typing import Self

import networkx as nx

from workloads.schedulers.cluster import GpuRequest

Stages = tuple[float, ...]
"""Seconds of an iteration on each resource."""


@dataclass(frozen=True, slots=True)
class Interleaving:
    """How the jobs of a group take turns: ``offsets`` by job, and how long a round of all resources takes."""

    offsets: tuple[int, ...]
    round_s: float
    efficiency: float
    """Share of all resources' time that is used: the sum of the stages over resources times round."""


@cache
def interleave(stages_s: tuple[Stages, ...]) -> Interleaving:
    """The order of turns with the shortest round; of equal ones the first.

    Raises ValueError for no jobs, more jobs than resources, and jobs that do not name the same number of them.
    """
    num_resources = len(stages_s[0]) if stages_s else 0
    if not 0 < len(stages_s) <= num_resources or any(len(stages) != num_resources for stages in stages_s):
        raise ValueError(f"expected 1 to {num_resources} jobs with {num_resources} stages each, got {stages_s}")
    orders = ((0, *rest) for rest in permutations(range(1, num_resources), len(stages_s) - 1))
    round_s, offsets = min((_round_s(stages_s, order), order) for order in orders)
    used_s = sum(map(sum, stages_s))
    return Interleaving(offsets, round_s, used_s / (num_resources * round_s) if round_s else 0.0)


def _round_s(stages_s: Sequence[Stages], offsets: Sequence[int]) -> float:
    num_resources = len(stages_s[0])
    return sum(
        max(stages[(step - offset) % num_resources] for stages, offset in zip(stages_s, offsets, strict=True))
        for step in range(num_resources)
    )


@dataclass(frozen=True, slots=True)
class JobGroup:
    """Jobs that share one allocation, as large as each of them asked for."""

    members: tuple[GpuRequest, ...]

    @property
    def request(self) -> GpuRequest:
        """What is to be placed for the whole group."""
        return self.members[0]

    @property
    def interleaving(self) -> Interleaving:
        return interleave(tuple(member.stages_s for member in self.members))

    def joined(self, other: Self) -> Self:
        return type(self)((*self.members, *other.members))


def group_jobs(requests: Sequence[GpuRequest], num_free: int) -> tuple[JobGroup, ...]:
    """The jobs in groups, alone where so many free GPUs suffice for all; else paired, and pairs paired, until they do.

    Groups stand in the order of their first jobs. No group has more jobs than there are resources.
    """
    groups = [JobGroup((request,)) for request in requests]
    while sum(group.request.gpus for group in groups) > num_free:
        joined = _matched(groups)
        if len(joined) == len(groups):
            break
        groups = joined
    return tuple(groups)


def _matched(groups: Sequence[JobGroup]) -> list[JobGroup]:
    buckets: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for number, group in enumerate(groups):
        buckets[group.request.num_hosts, group.request.gpus_per_host].append(number)
    partner: dict[int, int] = {}
    for numbers in buckets.values():
        graph = nx.Graph()
        graph.add_weighted_edges_from(_edges(groups, numbers))
        for pair in nx.max_weight_matching(graph):
            first, second = sorted(pair)
            partner[first] = second
    seconds = set(partner.values())
    return [
        group.joined(groups[partner[number]]) if number in partner else group
        for number, group in enumerate(groups)
        if number not in seconds
    ]


def _edges(groups: Sequence[JobGroup], numbers: Iterable[int]) -> Iterable[tuple[int, int, float]]:
    for first, second in combinations(numbers, 2):
        together = groups[first].joined(groups[second])
        if len(together.members) <= len(together.request.stages_s):
            yield first, second, together.interleaving.efficiency


def shortest_remaining_service_first(requests: Iterable[GpuRequest]) -> list[GpuRequest]:
    """Muri's order where durations are known (SRSF): by run time times GPUs, then by arrival."""
    return sorted(requests, key=lambda request: (request.run_time_s * request.gpus, request.arrival_s))
