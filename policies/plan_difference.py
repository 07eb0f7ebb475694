"""Difference of two Plans: levels and paths that change, and jobs that come and go."""

from dataclasses import dataclass

from policies.flows import FlowKey
from policies.plan import Plan
from topologies.fabric import Path


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A flow group gets another level."""

    job: str
    group: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class MovedFlow:
    """A flow gets another path; None stands for the path of the fabric's hash."""

    key: FlowKey
    before: Path | None
    after: Path | None


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """The difference of two Plans: jobs by name, groups and flows in order of their keys.

    Attributes:
        came: Jobs that only the later Plan has.
        went: Jobs that only the earlier Plan has.
        levels: Groups of both whose level changes.
        moved: Flows of both whose path changes.
    """

    came: tuple[str, ...]
    went: tuple[str, ...]
    levels: tuple[LevelChange, ...]
    moved: tuple[MovedFlow, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not (self.came or self.went or self.levels or self.moved)


def plan_difference(before: Plan, after: Plan) -> PlanDifference:
    """Return what changes from the Plan ``before`` to the Plan ``after``."""
    then, now = {job.name for job in before.jobs}, {job.name for job in after.jobs}
    levels: dict[tuple[str, str], LevelChange] = {}
    moved = []
    for key, plan in after.flows.items():
        known = before.flows.get(key)
        if known is None or known is plan:
            continue
        if known.level != plan.level:
            levels[key.job, key.group] = LevelChange(key.job, key.group, known.level, plan.level)
        if known.path != plan.path:
            moved.append(MovedFlow(key, known.path, plan.path))
    return PlanDifference(
        came=tuple(sorted(now - then)),
        went=tuple(sorted(then - now)),
        levels=tuple(levels[group] for group in sorted(levels)),
        moved=tuple(sorted(moved, key=lambda flow: flow.key)),
    )
