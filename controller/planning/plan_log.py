"""Logs the levels that jobs get, whenever they change, in lines of which there are not too many."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.background import run_planning
from controller.events import BurstLog, EventKind
from controller.planning.decision import Decision
from controller.rules.job_rules import levels_in_force

_LOG = logging.getLogger(__name__)

_MOST_NAMED = 20
"""Jobs of a Plan that have lines of their own."""


@dataclass(frozen=True, slots=True)
class _PlannedJob:
    name: str
    rank: int
    level: int


class PlanLog:
    """Logs a job when it is planned first, and when a Plan gives it another level."""

    def __init__(self) -> None:
        self._burst = BurstLog(_LOG)
        self._levels: Mapping[str, int] = {}

    async def tell(self, decision: Decision) -> None:
        """Log what a decision that has come into force changes."""
        changes = await run_planning(self._changes, decision)
        for job in changes[:_MOST_NAMED]:
            self._burst.tell(
                EventKind.JOB_PLANNED,
                "job %s: planned: rank %d, level %d, in plan %d",
                job.name,
                job.rank,
                job.level,
                decision.number,
                job=job.name,
                rank=job.rank,
                level=job.level,
                plan=decision.number,
            )
        if len(changes) > _MOST_NAMED:
            self._burst.count(EventKind.JOB_PLANNED, len(changes) - _MOST_NAMED)

    def _changes(self, decision: Decision) -> Sequence[_PlannedJob]:
        before, self._levels = self._levels, levels_in_force(decision.plan, decision.snapshot)
        return [
            _PlannedJob(job.name, job.rank, self._levels[job.name])
            for job in decision.plan.jobs
            if before.get(job.name) != self._levels[job.name]
        ]
