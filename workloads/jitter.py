"""Compute jitter: computations that last a little more or less every time, the same in every run of a scenario."""

import random
from dataclasses import dataclass
from typing import Self

from workloads.jobs import TrainingJob
from workloads.scenario import Scenario

_MOST_DEVIATIONS = 3.0


@dataclass(frozen=True, slots=True)
class ComputeJitter:
    """How many times its duration each computation of a job takes: normal about 1, cut off at three deviations.

    A number depends on nothing but the scenario's seed, the job's name, the iteration and the task, so that it is the
    same whatever runs the scenario and whoever was faster before.
    """

    deviation: float
    seed: str

    @classmethod
    def of(cls, scenario: Scenario, job: TrainingJob) -> Self:
        """The jitter of one job of a scenario."""
        return cls(scenario.compute_jitter, f"{scenario.seed}/{job.name}")

    def __call__(self, iteration: int, task: int) -> float:
        """The factor for one computation."""
        if not self.deviation:
            return 1.0
        drawn = random.Random(f"{self.seed}/{iteration}/{task}").gauss(0.0, 1.0)
        return 1.0 + self.deviation * min(max(drawn, -_MOST_DEVIATIONS), _MOST_DEVIATIONS)
