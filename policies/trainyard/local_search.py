"""Local search: improves an order or levels of flow groups step by step, within a budget of evaluations."""

from collections.abc import Callable
from dataclasses import dataclass

from policies.arrays import IntArray
from policies.trainyard.evaluator import Score

_MIN_GAIN = 1e-6
"""Relative gain that a step needs: the model is no more exact than that."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """An order of flow groups, or their levels, with its score."""

    values: IntArray
    score: Score


class CachedScorer:
    """Scores candidates, equal ones once, and counts down a budget of evaluations.

    Attributes:
        left: How many evaluations are left; below 0 where callers went beyond the budget.
    """

    def __init__(self, score: Callable[[IntArray], Score], evaluations: int) -> None:
        self._score = score
        self._known: dict[bytes, Score] = {}
        self.left = evaluations

    def __call__(self, values: IntArray) -> Candidate:
        """Score an order or levels, also when the budget is used up."""
        key = values.tobytes()
        if key not in self._known:
            self.left -= 1
            self._known[key] = self._score(values)
        return Candidate(values, self._known[key])


def swap_neighbours(start: Candidate, scorer: CachedScorer, evaluations: int) -> Candidate:
    """Improve an order: swap neighbours, the most urgent first and round again, while that helps and budget lasts."""
    best, stop_at = start, scorer.left - evaluations
    place, unchanged = 0, 0
    while unchanged < len(best.values) - 1 and scorer.left > max(stop_at, 0):
        order = best.values.copy()
        order[place : place + 2] = order[place : place + 2][::-1]
        swapped = scorer(order)
        if swapped.score.is_better_than(best.score, _MIN_GAIN):
            best, unchanged = swapped, 0
        else:
            unchanged += 1
        place = (place + 1) % (len(order) - 1)
    return best


def shift_levels(start: Candidate, scorer: CachedScorer, num_levels: int) -> Candidate:
    """Improve levels: move one group up or down at a time, round again, while that helps and budget lasts."""
    best = start
    group, unchanged = 0, 0
    while unchanged < len(best.values) and scorer.left > 0:
        unchanged += 1
        for step in (1, -1):
            levels = best.values.copy()
            levels[group] += step
            if 0 <= levels[group] < num_levels:
                other = scorer(levels)
                if other.score.is_better_than(best.score, _MIN_GAIN):
                    best, unchanged = other, 0
        group = (group + 1) % len(best.values)
    return best
