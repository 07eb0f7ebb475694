"""Time slicing of jobs that send nothing and share GPUs: they take turns, one iteration each."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from policies.rates.network import FloatArray
from workloads.traces.simulated_jobs import SimulatedJob


class TimeSlicing:
    """The progress over time of one job or several that start together on the same GPUs.

    In every round each remaining job completes one iteration, so that a round takes the sum of theirs. The last round
    may be a part of one.
    """

    def __init__(self, names: Sequence[str], times_s: FloatArray, completed: FloatArray) -> None:
        """``completed[step, job]`` counts iterations at ``times_s[step]``, linear in between."""
        self._place = {name: place for place, name in enumerate(names)}
        self._times_s = times_s
        self._completed = completed

    @classmethod
    def of(cls, jobs: Sequence[SimulatedJob]) -> Self:
        """Return the progress from the common start to the end of the last job."""
        lengths_s = np.array([job.ideal_iteration_s for job in jobs])
        left = np.array([job.iterations for job in jobs])
        times_s, completed = [0.0], [np.zeros(len(jobs))]
        for job in left.argsort(kind="stable"):
            is_there = left > 0
            rounds = left[job]
            times_s.append(times_s[-1] + float(rounds * lengths_s[is_there].sum()))
            completed.append(completed[-1] + np.where(is_there, rounds, 0.0))
            left = np.where(is_there, left - rounds, left)
        return cls([job.request.name for job in jobs], np.array(times_s), np.array(completed))

    def end_s(self, name: str) -> float:
        """Return how long after the start a job is done."""
        course = self._completed[:, self._place[name]]
        return float(self._times_s[course.searchsorted(course[-1])])

    def completed(self, name: str, after_s: float) -> float:
        """Return how many iterations a job has completed ``after_s`` after the start."""
        return float(np.interp(after_s, self._times_s, self._completed[:, self._place[name]]))
