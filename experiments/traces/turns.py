"""Jobs that send nothing and share GPUs: they compute in turns, an iteration each."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from policies.rates.network import FloatArray
from workloads.traces.simulated_jobs import SimulatedJob


class Turns:
    """The course of jobs that begin at one time on the same GPUs; a job alone is a course as well.

    All that are there complete an iteration in a round, whose length is the sum of theirs; parts of one count as such.
    """

    def __init__(self, names: Sequence[str], times_s: FloatArray, completed: FloatArray) -> None:
        """``completed[step, job]`` are iterations at ``times_s[step]``, even in between."""
        self._place = {name: place for place, name in enumerate(names)}
        self._times_s = times_s
        self._completed = completed

    @classmethod
    def of(cls, jobs: Sequence[SimulatedJob]) -> Self:
        """From the first iteration of all to the last of each."""
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
        """How long after the beginning a job is done."""
        course = self._completed[:, self._place[name]]
        return float(self._times_s[course.searchsorted(course[-1])])

    def completed(self, name: str, after_s: float) -> float:
        """Iterations that a job has completed so long after the beginning."""
        return float(np.interp(after_s, self._times_s, self._completed[:, self._place[name]]))
