"""How long the iterations of jobs take: from the times at which instances of their flow groups begin."""

from collections import deque
from collections.abc import Mapping, Set

from controller.registry.jobs import FlowGroupInstance

_ITERATIONS = 8
"""Iterations over which a time is averaged."""


class IterationTimes:
    """The mean time between the beginnings of a flow group's last instances, for each job by its first group."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, deque[tuple[int, float]]]] = {}

    def note(self, job: str, instances: Mapping[str, FlowGroupInstance]) -> float | None:
        """Note the newest instances of a job; returns its iteration time, None where too little has been seen."""
        if not instances:
            return None
        known = self._seen.get(job)
        if known is None or known[0] not in instances:
            known = self._seen[job] = next(iter(instances)), deque(maxlen=_ITERATIONS + 1)
        group, begins = known
        newest = instances[group].iteration, instances[group].reference_s
        if begins and newest[0] < begins[-1][0]:
            begins.clear()  # the job has begun anew
        if not begins or newest[0] > begins[-1][0]:
            begins.append(newest)
        (first, first_s), (last, last_s) = begins[0], begins[-1]
        return (last_s - first_s) / (last - first) if last > first else None

    def keep(self, jobs: Set[str]) -> None:
        """Forget all other jobs."""
        for job in self._seen.keys() - jobs:
            del self._seen[job]
