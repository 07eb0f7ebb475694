"""How good a decision for a component is, and whether another one is better."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from policies.arrays import FloatArray


class Score(NamedTuple):
    """How good a decision is. Scores compare as tuples: the greater one is better.

    Attributes:
        margin: 0 where every job gets what it must, else minus the sum of what jobs lack.
        worth: Computation per second over all jobs.
    """

    margin: float
    worth: float

    def is_better_than(self, other: "Score", min_gain: float) -> bool:
        """Return whether this score gains more than the fraction ``min_gain`` over another one.

        Where either has a margin, only the margins count.
        """
        if self.margin or other.margin:
            return self.margin * (1 + min_gain) > other.margin
        return self.worth > other.worth + min_gain * abs(other.worth)


class Scorer:
    """Scores the jobs of a component.

    Attributes:
        worth: By job, its computation per second alone.
        least: By job, the least share of its iterations alone that it is to get.
        max_slowdown: The largest factor over its iteration time alone that a job should suffer; None: no limit.
    """

    def __init__(self, worth: FloatArray, least: FloatArray, max_slowdown: float | None) -> None:
        self.worth = worth
        self.least = least
        self.max_slowdown = max_slowdown

    def score(self, served: FloatArray) -> Score:
        """Return the score of jobs that get these shares of their iterations alone."""
        lacks = self.lacks(served) + self.excess(served)
        return Score(-float(lacks.sum()), float(served @ self.worth))

    def lacks(self, served: FloatArray) -> FloatArray:
        """Return by job which fraction of its least share it lacks."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(served < self.least, 1 - served / self.least, 0.0)

    def excess(self, served: FloatArray) -> FloatArray:
        """Return by job how far its slowdown exceeds ``max_slowdown``, as a fraction of that; 0 where it does not."""
        if self.max_slowdown is None:
            return np.zeros(len(served))
        with np.errstate(divide="ignore"):
            return np.clip(1 / (served * self.max_slowdown) - 1, 0.0, 1e6)


def total_score(scores: Iterable[Score]) -> Score:
    """Return the score of several components together."""
    margins, worths = zip(*scores, strict=True)
    return Score(sum(margins), sum(worths))
