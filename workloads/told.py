"""What a job tells the controller of itself, where that is not quite the truth."""

import random
from dataclasses import dataclass
from typing import Self

from workloads.scenario import ProfileError


@dataclass(frozen=True, slots=True)
class ToldFactors:
    """How many times the truth a job tells: its work, the bytes of all its flows, and how much of its computation its
    communication may overlap."""

    work: float = 1.0
    bytes: float = 1.0
    overlap: float = 1.0

    @classmethod
    def drawn(cls, error: ProfileError, seed: int, job: str) -> Self:
        """Each is off by just the error, upwards or downwards as the seed has it.

        That depends on nothing but the seed and the job's name, not even on the error: a larger one goes the same way.
        """
        chance = random.Random(f"{seed}/{job}")
        return cls(*(1 + chance.choice((-1, 1)) * size for size in (error.work, error.bytes, error.overlap)))

    def of_comm_start(self, comm_start: float) -> float:
        """The fraction of the computation after which communication is said to begin, 0 at the least."""
        return 1 - min(1.0, (1 - comm_start) * self.overlap)

    def of_bytes(self, size_bytes: float) -> int:
        """Whole bytes, at least one."""
        return max(1, round(size_bytes * self.bytes))


TRUTH = ToldFactors()
"""Of a job that is off by nothing."""
