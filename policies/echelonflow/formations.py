"""Formations: what is ranked, and what levels tell apart.

A formation is a flow group, or several of one job that nothing else separates, or all of a job whose groups must not be
told apart.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from policies.arrays import FloatArray, IntArray
from policies.echelonflow.levels import stages
from policies.flows import Flow, FlowGroup
from policies.job import Job


class Parting(IntEnum):
    """What levels and the order at the host tell apart in a job."""

    NOTHING = 0
    """All flows of the job are alike."""

    FINISHES = 1
    """All groups have one rank, and flows are told apart by when the job's task graph needs them."""

    GROUPS = 2
    """Every group has its own rank, and its flows are alike."""

    STAGES = 3
    """Every group has its own rank, and its flows are told apart by ideal finish."""

    @property
    def next(self) -> "Parting":
        """What to try for a job that this kind slows down."""
        return Parting(self - 1)

    @classmethod
    def first(cls, job: Job) -> "Parting":
        """Return what to try first for a job: where nobody knows what waits for its flows, nothing is told apart."""
        is_known = job.task_graph is not None and not job.task_graph.is_guessed
        return cls.STAGES if is_known else cls.NOTHING


@dataclass(frozen=True, slots=True)
class Unit:
    """Flow groups of one job that are ranked together.

    Attributes:
        owner: The number of the job.
        groups: The groups.
        finishes_s: By flow, group after group, its ideal finish.
    """

    owner: int
    groups: tuple[FlowGroup, ...]
    finishes_s: Sequence[float]

    @property
    def flows(self) -> list[Flow]:
        """The flows of all groups."""
        return [flow for group in self.groups for flow in group.flows]


def units(jobs: Sequence[Job], partings: Sequence[Parting]) -> list[Unit]:
    """Return what is ranked: the groups of jobs one by one, or those of a job together."""
    found: list[Unit] = []
    for owner, (job, parting) in enumerate(zip(jobs, partings, strict=True)):
        if parting is Parting.FINISHES:
            found.append(Unit(owner, job.flow_groups, job.transfers.due_s[job.transfers.transfer_of].tolist()))
        elif parting is Parting.NOTHING:
            found.append(Unit(owner, job.flow_groups, [flow.offset_s for flow in job.flows]))
        else:
            found += [Unit(owner, (group,), [flow.offset_s for flow in group.flows]) for group in job.flow_groups]
    return found


@dataclass(frozen=True, slots=True)
class Formation:
    """Units of one job that have the same rank.

    Attributes:
        owner: The number of the job.
        numbers: Of the units, among all units.
        key_s: What they are ranked by.
        flows: Of all units.
        stages: By flow, how many different ideal finishes that count come before its own.
    """

    owner: int
    numbers: tuple[int, ...]
    key_s: float
    flows: tuple[Flow, ...]
    stages: Sequence[int]


def formations(
    units: Sequence[Unit], partings: Sequence[Parting], ranked: IntArray, key_s: FloatArray
) -> list[Formation]:
    """Return the units in order of rank; those of one job whose keys differ only by rounding are one formation.

    Args:
        units: The units.
        partings: By job, what is told apart.
        ranked: The numbers of units that send, the most urgent first.
        key_s: Of these, in the same order, what they are ranked by.
    """
    together: list[tuple[int, list[int], float]] = []
    for number, one_s in zip(ranked.tolist(), key_s.tolist(), strict=True):
        owner = units[number].owner
        if together and together[-1][0] == owner and math.isclose(together[-1][2], one_s):
            together[-1][1].append(number)
        else:
            together.append((owner, [number], one_s))
    found = []
    for owner, numbers, one_s in together:
        flows = tuple(flow for number in numbers for flow in units[number].flows)
        finishes_s = [finish_s for number in numbers for finish_s in units[number].finishes_s]
        is_staged = partings[owner] in (Parting.FINISHES, Parting.STAGES)
        found.append(
            Formation(owner, tuple(numbers), one_s, flows, stages(finishes_s) if is_staged else [0] * len(flows))
        )
    return found
