"""Seeded perturbations of a scenario: errors in what jobs report, and jitter in how long they compute."""

import random
from dataclasses import dataclass
from typing import Self

from workloads.scenario import ProfileError, Scenario

_MAX_DEVIATIONS = 3.0


@dataclass(frozen=True, slots=True)
class ReportingError:
    """Factors by which a job's report to the controller differs from the truth.

    ``work`` and ``bytes`` scale the reported work and flow sizes, ``overlap`` the part of the computation that
    communication may overlap.
    """

    work: float = 1.0
    bytes: float = 1.0
    overlap: float = 1.0

    @classmethod
    def drawn(cls, error: ProfileError, seed: int, job: str) -> Self:
        """Draw the signs of a job's errors; their sizes are those of ``error``.

        The signs depend on the seed and the job's name alone, so a larger error has the same signs.
        """
        chance = random.Random(f"{seed}/{job}")
        return cls(*(1 + chance.choice((-1, 1)) * size for size in (error.work, error.bytes, error.overlap)))

    def reported_comm_start(self, comm_start: float) -> float:
        """Return the reported fraction of the computation after which communication starts; at least 0."""
        return 1 - min(1.0, (1 - comm_start) * self.overlap)

    def reported_bytes(self, size_bytes: float) -> int:
        """Return the reported size in whole bytes; at least 1."""
        return max(1, round(size_bytes * self.bytes))


NO_ERROR = ReportingError()
"""The job reports the truth."""


@dataclass(frozen=True, slots=True)
class ComputeJitter:
    """Factor by which each computation of a job is longer: normal around 1, cut off at three deviations.

    A factor depends only on the scenario's seed, the job's name, the iteration and the task. It is the same on every
    back end and in whatever order jobs run.
    """

    deviation: float
    seed: str

    @classmethod
    def of(cls, scenario: Scenario, job: str) -> Self:
        """Return the jitter of the job of that name."""
        return cls(scenario.compute_jitter, f"{scenario.seed}/{job}")

    def __call__(self, iteration: int, task: int) -> float:
        """Return the factor for one computation."""
        if not self.deviation:
            return 1.0
        drawn = random.Random(f"{self.seed}/{iteration}/{task}").gauss(0.0, 1.0)
        return 1.0 + self.deviation * min(max(drawn, -_MAX_DEVIATIONS), _MAX_DEVIATIONS)
