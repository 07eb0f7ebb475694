"""What a Plan has changed against the one before: jobs that came and went, ranks, levels, and paths of flows.

A pure function.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from controller.api.operations.sentences import path_words
from controller.planning.decision import Decision
from policies.flows import Flow
from policies.plan import FlowPlan, JobPlan, Plan
from topologies.fabric import Fabric, Path

_MOST_JOBS = 200
_MOST_MOVES = 10
"""Moved flows of a job whose paths are told; the others are counted."""
BY_HASH = "by the fabric's hash"


@dataclass(frozen=True, slots=True)
class Move:
    """A flow that has another path than before, as GROUP/NUMBER, with both paths in words."""

    flow: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class JobChange:
    """A job of both Plans: ranks and levels before and after, how many of its flows have moved, and some of them."""

    name: str
    ranks: tuple[int, int]
    levels: tuple[int, int]
    moved: int
    flows: int
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class PlanChanges:
    """The difference of two Plans.

    Attributes:
        number: The number of the Plan.
        time_s: When it was decided.
        before: The number of the Plan that it stands beside; None where there is none.
        new: Jobs that the Plan before does not have, in order of rank.
        gone: Jobs that it had.
        changed: Jobs with another rank, level or path, in order of rank.
        left_out: How many more of each of these there are, all together.
        unchanged: How many jobs are as before.
    """

    number: int
    time_s: float
    before: int | None
    new: tuple[str, ...]
    gone: tuple[str, ...]
    changed: tuple[JobChange, ...]
    left_out: int
    unchanged: int


def plan_changes(decision: Decision, fabric: Fabric, earlier: Decision | None = None) -> PlanChanges:
    """Compare the Plan of a decision with that of an earlier one, or else with the one that was in force before it."""
    snapshot, plan = decision.snapshot, decision.plan
    previous = snapshot.previous if earlier is None else earlier.plan
    before_number = decision.number - 1 if earlier is None else earlier.number
    before = {} if previous is None else {job.name: job for job in previous.jobs}
    jobs = {job.name: job for job in snapshot.jobs}
    new = [job.name for job in plan.jobs if job.name not in before]
    gone = [name for name in before if name not in jobs]
    changed = [
        change
        for job in plan.jobs
        if previous is not None
        and job.name in before
        and (change := _change(before[job.name], job, jobs[job.name].registered_flows, previous, plan, fabric))
    ]
    told = [each[:_MOST_JOBS] for each in (new, gone)]
    return PlanChanges(
        decision.number,
        snapshot.time_s,
        None if previous is None else before_number,
        tuple(told[0]),
        tuple(told[1]),
        tuple(changed[:_MOST_JOBS]),
        len(new) + len(gone) + len(changed) - len(told[0]) - len(told[1]) - len(changed[:_MOST_JOBS]),
        len(plan.jobs) - len(new) - len(changed),
    )


def _change(
    before: JobPlan, after: JobPlan, flows: Sequence[Flow], previous: Plan, plan: Plan, fabric: Fabric
) -> JobChange | None:
    """What has changed for a job; None where nothing has."""
    moved = [
        (flow, old, new)
        for flow in flows
        if (old := previous.flows.get(flow.key)) is not None and old.path != (new := plan.flows[flow.key]).path
    ]
    if not moved and (before.rank, before.level) == (after.rank, after.level):
        return None
    return JobChange(
        after.name,
        (before.rank, after.rank),
        (before.level, after.level),
        len(moved),
        len(flows),
        tuple(
            Move(f"{flow.key.group}/{flow.key.flow}", _words(old, fabric), _words(new, fabric))
            for flow, old, new in moved[:_MOST_MOVES]
        ),
    )


def _words(flow: FlowPlan, fabric: Fabric) -> str:
    path: Path | None = flow.path
    if path is None:
        return BY_HASH
    return path_words(fabric.nodes_of(path), [fabric.parallel_index(link) for link in path])
