"""Muri (Zhao et al., SIGCOMM 2022): jobs that use different resources in turn share GPUs.

An iteration consists of stages, one per resource. The jobs of a group use different resources at any time: in step s of
a round, job i uses resource s - o_i, and the step lasts as long as its longest stage. A maximum-weight matching pairs
jobs that ask for the same GPUs, then pairs of pairs, until the waiting jobs fit.
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
"""Seconds that an iteration uses each resource."""


@dataclass(frozen=True, slots=True)
class Interleaving:
    """How the jobs of a group take turns: an offset for each job, and the length of a round over all resources."""

    offsets: tuple[int, ...]
    round_s: float
    efficiency: float
    """Share of all resources' time that is in use."""


@cache
def interleave(stages_s: tuple[Stages, ...]) -> Interleaving:
    """Find the offsets with the shortest round; of equal ones the first.

    Raises ValueError for no jobs, for more jobs than resources, and for jobs with different numbers of resources.
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
    """Jobs that share one allocation; each asked for the same GPUs."""

    members: tuple[GpuRequest, ...]

    @property
    def request(self) -> GpuRequest:
        """The request to place for the whole group."""
        return self.members[0]

    @property
    def interleaving(self) -> Interleaving:
        """How the members take turns."""
        return interleave(tuple(member.stages_s for member in self.members))

    def merged_with(self, other: Self) -> Self:
        """Return the group of the jobs of both."""
        return type(self)((*self.members, *other.members))


def group_jobs(requests: Sequence[GpuRequest], num_free: int) -> tuple[JobGroup, ...]:
    """Group jobs until the groups fit into ``num_free`` GPUs, or until no more can be paired.

    Groups are in the order of their first jobs. No group has more jobs than there are resources.
    """
    groups = [JobGroup((request,)) for request in requests]
    while sum(group.request.gpus for group in groups) > num_free:
        merged = _matched(groups)
        if len(merged) == len(groups):
            break
        groups = merged
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
        group.merged_with(groups[partner[number]]) if number in partner else group
        for number, group in enumerate(groups)
        if number not in seconds
    ]


def _edges(groups: Sequence[JobGroup], numbers: Iterable[int]) -> Iterable[tuple[int, int, float]]:
    for first, second in combinations(numbers, 2):
        together = groups[first].merged_with(groups[second])
        if len(together.members) <= len(together.request.stages_s):
            yield first, second, together.interleaving.efficiency


def shortest_remaining_service_first(requests: Iterable[GpuRequest]) -> list[GpuRequest]:
    """Sort by run time times GPUs, then by arrival: Muri's order (SRSF) where durations are known."""
    return sorted(requests, key=lambda request: (request.run_time_s * request.gpus, request.arrival_s))
