"""Priorities of the flow groups of one component: their levels, and their places in the order.

The search starts from a few orders (``order``), improves the best of them (``local_search``) by what the fluid model
says they are worth (``evaluator``), and compresses the result to levels (``levels``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from math import factorial

import numpy as np
from scipy.sparse import csr_array

from policies.arrays import BoolArray, FloatArray, IntArray
from policies.trainyard.contention import Contention
from policies.trainyard.evaluator import Evaluator, Score
from policies.trainyard.fluid_bound import FluidBound
from policies.trainyard.levels import LevelCut
from policies.trainyard.local_search import CachedScorer, Candidate, shift_levels, swap_neighbours
from policies.trainyard.options import InitialOrder, TrainyardOptions
from policies.trainyard.order import crux_order, fluid_bound_order

_MAX_ORDERS, _MAX_BUDGETS = factorial(6), 10
"""Where jobs exceed ``max_slowdown``, all orders are tried if there are at most so many, within so many budgets."""
_MIN_NEW_GROUPS = 4
"""The model chooses levels for new groups only where it could afford to for at least so many."""

UNASSIGNED = -1
"""Level of a group that has none yet."""


@dataclass(frozen=True, slots=True, eq=False)
class Priorities:
    """Levels and places of flow groups, with what they are worth.

    Attributes:
        levels: By group.
        places: By group, its place in the order, 0 first; a lower level never has the earlier place.
        served: By job, the share of its iterations alone that it gets by the model.
        score: The score of ``served``.
    """

    levels: IntArray
    places: IntArray
    served: FloatArray
    score: Score


@dataclass(frozen=True, slots=True, eq=False)
class PrioritySearch:
    """Finds priorities for the jobs of a component on the paths they have.

    Attributes:
        contention: The jobs.
        bound: Their fluid bound.
        evaluator: Scores priorities.
        occupied_s: Seconds for which each transfer (row) occupies each link of the fabric (column).
        has_levels: By link of the fabric, whether a switch queue keeps the order there.
        num_levels: How many levels there are.
        seed: Of the compression.
        options: Of the policy.
    """

    contention: Contention
    bound: FluidBound
    evaluator: Evaluator
    occupied_s: csr_array
    has_levels: BoolArray
    num_levels: int
    seed: int
    options: TrainyardOptions

    def promise(self) -> Score:
        """Return the best score of an initial order, or of all groups on one level.

        ``best`` is never below it, except for what the compression to levels loses.
        """
        starts = [start.score for start in self._starts(self._scored_order)]
        if self.evaluator.evaluations:
            starts.append(self.evaluator.score(self.evaluator.served(np.zeros_like(self.contention.job_of_group))))
        return max(starts)

    def best(self) -> Priorities:
        """Return the best priorities found, whatever is in force."""
        return self.compressed(self.best_order())

    def best_order(self) -> IntArray:
        """Return the groups, most urgent first, in the order that ``best`` compresses."""
        if not self.evaluator.evaluations:
            return max(self._starts(self._scored_order), key=_score).values
        return self._improved().values

    def better_than(self, score: Score, min_gain: float) -> Priorities | None:
        """Return the best priorities found, or None where they do not gain ``min_gain`` over this score.

        No levels of an order are taken to be better than the order itself, so the order is checked first.
        """
        if not self.evaluator.evaluations:
            best = self._scored_order(fluid_bound_order(self.contention, self.bound))
        else:
            best = self._improved()
        if not best.score.is_better_than(score, min_gain):
            return None
        priorities = self.compressed(best.values)
        return priorities if priorities.score.is_better_than(score, min_gain) else None

    def kept(self, levels: IntArray, places: IntArray) -> Priorities:
        """Return the priorities in force, with a level for each group that is ``UNASSIGNED``.

        A new group gets the last place on its level. Its level is the best one by the model where there are runs for
        all new groups on all levels, and otherwise that of its neighbour in the initial order. All other groups keep
        their places, so a new group shares a place where it would come between two that follow one another.
        """
        levels, places = levels.copy(), places.copy()
        order = fluid_bound_order(self.contention, self.bound)
        new = order[levels[order] == UNASSIGNED].tolist()
        is_modelled = self.evaluator.evaluations >= self.num_levels * max(len(new), _MIN_NEW_GROUPS)
        for group in new:
            level = self._best_level(group, levels) if is_modelled else self._neighbours_level(group, order, levels)
            ahead = int(places[levels >= level].max(initial=-1))
            places[group] = ahead if ahead >= 0 and ahead + 1 in places[levels != UNASSIGNED] else ahead + 1
            levels[group] = level
        return self._priorities(levels, places)

    def compressed(self, order: IntArray) -> Priorities:
        """Compress an order to levels: the better of two cuts and of one level for all, and then the best near it.

        Where there are as many levels as groups, every group has its own.
        """
        places = np.argsort(order)
        if len(order) <= self.num_levels:
            return self._priorities(self.num_levels - 1 - places, places)
        cut = LevelCut.of(
            self.contention,
            order,
            self.occupied_s,
            self.has_levels,
            self.num_levels,
            self.seed,
            self.options.num_orders,
        )
        if not self.evaluator.evaluations:
            levels = cut.by_intensity() if self.bound.is_scarce else cut.by_loss()
            return self._priorities(levels, _places_by_level(levels, places))
        scorer = CachedScorer(self._score_of_levels, self.evaluator.evaluations // 2)
        one_level = np.full(len(order), self.num_levels - 1)
        starts = cut.by_loss(), cut.by_intensity(), one_level
        best = shift_levels(max(map(scorer, starts), key=_score), scorer, self.num_levels)
        # Groups that share a level share it at hosts too: that is how the model has scored them.
        return self._priorities(best.values, np.unique(-best.values, return_inverse=True)[1])

    def _starts(self, scorer: Callable[[IntArray], Candidate]) -> list[Candidate]:
        """Return the initial orders, scored."""
        return [
            scorer(
                crux_order(self.contention)
                if initial is InitialOrder.CRUX
                else fluid_bound_order(self.contention, self.bound)
            )
            for initial in self.options.initial_orders
        ]

    def _improved(self) -> Candidate:
        """Return the best order found: each initial order is improved with an equal part of the budget."""
        scorer = CachedScorer(lambda order: self._scored_order(order).score, self.evaluator.evaluations)
        starts = self._starts(scorer)
        budget = scorer.left // len(starts)
        best = max((swap_neighbours(start, scorer, budget) for start in starts), key=_score)
        orders = factorial(len(best.values))
        if best.score.margin < 0 and orders <= min(_MAX_ORDERS, _MAX_BUDGETS * self.evaluator.affordable):
            best = max((scorer(np.array(other)) for other in permutations(range(len(best.values)))), key=_score)
        return best

    def _scored_order(self, order: IntArray) -> Candidate:
        urgency = np.empty(len(order), dtype=np.int64)
        urgency[order] = np.arange(len(order))[::-1]
        return Candidate(order, self._score_of_levels(urgency))

    def _score_of_levels(self, levels: IntArray) -> Score:
        return self.evaluator.score(self.evaluator.served(levels))

    def _best_level(self, group: int, levels: IntArray) -> int:
        """Return the best level for a group by the model."""
        tried = []
        for level in range(self.num_levels):
            changed = levels.copy()
            changed[group] = level
            tried.append((self._score_of_levels(changed), level))
        return max(tried)[1]

    def _neighbours_level(self, group: int, order: IntArray, levels: IntArray) -> int:
        """Return the level of the nearest group before it in the order that has one, else of the nearest one after."""
        at = int(np.flatnonzero(order == group)[0])
        known = [int(levels[other]) for other in (*order[:at][::-1], *order[at + 1 :]) if levels[other] != UNASSIGNED]
        return known[0] if known else self.num_levels - 1

    def _priorities(self, levels: IntArray, places: IntArray) -> Priorities:
        urgency = levels if self.evaluator.evaluations else -places
        served = self.evaluator.served(urgency)
        return Priorities(levels, places, served, self.evaluator.score(served))


def _score(candidate: Candidate) -> Score:
    return candidate.score


def _places_by_level(levels: IntArray, places: IntArray) -> IntArray:
    """Return places in which groups of a higher level come before those of a lower one."""
    return np.argsort(np.lexsort((places, -levels)))
