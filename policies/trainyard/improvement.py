"""Orders and levels made better step by step, as a model scores them, within a budget of evaluations."""

from collections.abc import Callable
from dataclasses import dataclass

from policies.flow_arrays import IntArray
from policies.trainyard.score import Score

_LEAST_GAIN = 1e-6
"""Relative gain below which one order is no better than another: the model is not that exact."""


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """An order of groups, or their levels, and what the model says of it."""

    order: IntArray
    score: Score


class Scorer:
    """Scores orders, each once, until the budget is used up."""

    def __init__(self, score: Callable[[IntArray], Score], evaluations: int) -> None:
        self._score = score
        self._known: dict[bytes, Score] = {}
        self.left = evaluations

    def __call__(self, order: IntArray) -> Scored:
        """Score an order, budget or not."""
        key = order.tobytes()
        if key not in self._known:
            self.left -= 1
            self._known[key] = self._score(order)
        return Scored(order, self._known[key])


def improved(start: Scored, scorer: Scorer, evaluations: int) -> Scored:
    """Exchange neighbours, from the most urgent on and round again, while that helps and the budget lasts."""
    best, last = start, scorer.left - evaluations
    place, unchanged = 0, 0
    while unchanged < len(best.order) - 1 and scorer.left > max(last, 0):
        order = best.order.copy()
        order[place : place + 2] = order[place : place + 2][::-1]
        swapped = scorer(order)
        if swapped.score.is_better_than(best.score, _LEAST_GAIN):
            best, unchanged = swapped, 0
        else:
            unchanged += 1
        place = (place + 1) % (len(order) - 1)
    return best


def moved(start: Scored, scorer: Scorer, num_levels: int) -> Scored:
    """Move groups a level up or down, one after the other and round again, while that helps and the budget lasts."""
    best = start
    group, unchanged = 0, 0
    while unchanged < len(best.order) and scorer.left > 0:
        unchanged += 1
        for step in (1, -1):
            levels = best.order.copy()
            levels[group] += step
            if 0 <= levels[group] < num_levels:
                other = scorer(levels)
                if other.score.is_better_than(best.score, _LEAST_GAIN):
                    best, unchanged = other, 0
        group = (group + 1) % len(best.order)
    return best
