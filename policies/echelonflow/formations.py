"""Formations: what is ranked, and what levels tell apart.

A formation is a flow group, or several of one job that nothing else separates, or all of a job whose groups must not be
told apart.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from policies.arrays import FloatArray, IntArray
from policies.flows import Flow, FlowGroup
from policies.job import Job


class Parting(IntEnum):
    """What levels and the order at the host tell apart in a job; each kind also tells apart what those before it do."""

    NOTHING = 0
    """All flows of the job are alike."""

    GROUPS = 1
    """Flow groups have levels of their own, the flows of a group are alike."""

    STAGES = 2
    """So have the ideal finishes of a group's flows."""

    @property
    def coarser(self) -> "Parting":
        """The next kind that tells less apart."""
        return Parting(self - 1)

    @classmethod
    def finest(cls, job: Job) -> "Parting":
        """Return the finest kind for a job: where nobody knows what waits for its flows, nothing is told apart."""
        is_known = job.task_graph is not None and not job.task_graph.is_guessed
        return cls.STAGES if is_known else cls.NOTHING


@dataclass(frozen=True, slots=True)
class Formation:
    """Flow groups of one job that have one rank.

    Attributes:
        owner: The number of the job.
        numbers: Of the units, among all units.
        groups: The groups.
        key_s: What they are ranked by.
    """

    owner: int
    numbers: tuple[int, ...]
    groups: tuple[FlowGroup, ...]
    key_s: float

    @property
    def flows(self) -> list[Flow]:
        """The flows of all groups."""
        return [flow for group in self.groups for flow in group.flows]


Unit = tuple[int, tuple[FlowGroup, ...]]
"""The number of a job, and groups of it that are ranked together."""


def units(jobs: Sequence[Job], partings: Sequence[Parting]) -> list[Unit]:
    """Return what is ranked: the groups of jobs one by one, or those of a job together."""
    found: list[Unit] = []
    for owner, (job, parting) in enumerate(zip(jobs, partings, strict=True)):
        if parting is Parting.NOTHING:
            found.append((owner, job.flow_groups))
        else:
            found += [(owner, (group,)) for group in job.flow_groups]
    return found


def formations(units: Sequence[Unit], ranked: IntArray, key_s: FloatArray) -> list[Formation]:
    """Return the units in order of rank; those of one job whose keys differ only by rounding are one formation."""
    found: list[Formation] = []
    for number, one_s in zip(ranked.tolist(), key_s.tolist(), strict=True):
        owner, groups = units[number]
        last = found[-1] if found else None
        if last is not None and last.owner == owner and math.isclose(last.key_s, one_s):
            found[-1] = Formation(owner, (*last.numbers, number), (*last.groups, *groups), last.key_s)
        else:
            found.append(Formation(owner, (number,), groups, one_s))
    return found
