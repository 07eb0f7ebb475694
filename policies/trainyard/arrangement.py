"""Arranging jobs that contend: which flow group goes before which, and on which level."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from math import factorial

import numpy as np
from scipy.sparse import csr_array

from policies.crux.compression import levels_of_cut
from policies.crux.correction_factor import correction_factors
from policies.flow_arrays import FloatArray, IntArray
from policies.intensity import Iteration
from policies.traffic import BoolArray, Loads
from policies.trainyard.contention import Contention, sum_rows
from policies.trainyard.fluid_bound import FluidBound
from policies.trainyard.improvement import Scored, Scorer, improved, moved
from policies.trainyard.judgement import Judge
from policies.trainyard.levels import losses
from policies.trainyard.options import Start, TrainyardOptions
from policies.trainyard.order import first_order, smith_ratios
from policies.trainyard.score import Score

_MOST_ORDERS, _MOST_BUDGETS = factorial(6), 10
"""How many orders are all tried where that has to be, and how many budgets of the search it may take."""
_FEWEST_NEW = 4
"""Where there are not the runs for so many new groups on all levels, the model judges none, however few there are."""

NEW = -1
"""Level of a group that has none yet."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrangement:
    """Levels of flow groups and their places in the order, 0 first; a lower level never has the earlier place.

    ``served`` is by job the share of its iterations alone that it gets, as modelled, and ``score`` what that is worth.
    """

    levels: IntArray
    places: IntArray
    served: FloatArray
    score: Score


@dataclass(frozen=True, slots=True, eq=False)
class Arranging:
    """Jobs that contend on the paths they have, and how they are arranged.

    ``occupied`` holds the seconds of every transfer (row) on every link of the fabric (column), ``has_levels`` tells on
    which of these a switch queue keeps the order.
    """

    contention: Contention
    bound: FluidBound
    judge: Judge
    occupied: csr_array
    has_levels: BoolArray
    num_levels: int
    seed: int
    options: TrainyardOptions

    def promise(self) -> Score:
        """The best score of a start, or of all on one level: what ``fresh`` is not below, but for what levels lose."""
        starts = [start.score for start in self._starts(self._scored_order)]
        if self.judge.evaluations:
            starts.append(self.judge.score(self.judge.served(np.zeros_like(self.contention.job_of_group))))
        return max(starts)

    def fresh(self) -> Arrangement:
        """The best arrangement found, whatever is in force."""
        return self.compressed(self.best_order())

    def best_order(self) -> IntArray:
        """The order of all groups, the most urgent first, that ``fresh`` compresses."""
        if not self.judge.evaluations:
            return max(self._starts(self._scored_order), key=_score).order
        return self._improved().order

    def better_than(self, score: Score, least_gain: float) -> Arrangement | None:
        """The best found, or None where it is not better by so much; of an order that is not, no levels can be."""
        if not self.judge.evaluations:
            best = self._scored_order(first_order(self.contention, self.bound))
        else:
            best = self._improved()
        if not best.score.is_better_than(score, least_gain):
            return None
        arrangement = self.compressed(best.order)
        return arrangement if arrangement.score.is_better_than(score, least_gain) else None

    def _starts(self, scorer: Callable[[IntArray], Scored]) -> list[Scored]:
        """The orders that the search begins with."""
        return [
            scorer(self._crux_order() if start is Start.CRUX else first_order(self.contention, self.bound))
            for start in self.options.starts
        ]

    def _scored_order(self, order: IntArray) -> Scored:
        return Scored(order, self.judge.score(self.judge.served(_urgency(order))))

    def _improved(self) -> Scored:
        """The best of what the starts become, each improved with an equal part of the budget."""
        scorer = Scorer(lambda order: self._scored_order(order).score, self.judge.evaluations)
        starts = self._starts(scorer)
        each = scorer.left // len(starts)
        best = max((improved(start, scorer, each) for start in starts), key=_score)
        orders = factorial(len(best.order))
        if best.score.margin < 0 and orders <= min(_MOST_ORDERS, _MOST_BUDGETS * self.judge.affordable):
            best = max((scorer(np.array(other)) for other in permutations(range(len(best.order)))), key=_score)
        return best

    def kept(self, levels: IntArray, places: IntArray) -> Arrangement:
        """The arrangement in force. A group of level ``NEW`` gets a level, and the last place there.

        The best level by the model, where a search's runs of it are enough for all new groups; else its neighbour's.

        Others keep their places, so that a new one shares its place where it would come between two that follow on one
        another.
        """
        levels, places = levels.copy(), places.copy()
        order = first_order(self.contention, self.bound)
        new = order[levels[order] == NEW].tolist()
        is_modelled = self.judge.evaluations >= self.num_levels * max(len(new), _FEWEST_NEW)
        for group in new:
            level = self._best_level(group, levels) if is_modelled else self._next_level(group, order, levels)
            ahead = int(places[levels >= level].max(initial=-1))
            places[group] = ahead if ahead >= 0 and ahead + 1 in places[levels != NEW] else ahead + 1
            levels[group] = level
        return self._arranged(levels, places)

    def _best_level(self, group: int, levels: IntArray) -> int:
        """The best level by the model."""
        tried = []
        for level in range(self.num_levels):
            changed = levels.copy()
            changed[group] = level
            tried.append((self.judge.score(self.judge.served(changed)), level))
        return max(tried)[1]

    def _next_level(self, group: int, order: IntArray, levels: IntArray) -> int:
        """The level of the next group in the order that has one."""
        at = int(np.flatnonzero(order == group)[0])
        known = [int(levels[other]) for other in (*order[:at][::-1], *order[at + 1 :]) if levels[other] != NEW]
        return known[0] if known else self.num_levels - 1

    def compressed(self, order: IntArray) -> Arrangement:
        """Levels for an order: of the cuts by what sharing loses and by intensity, the better one, and then moved.

        Where there are as many levels as groups, every group has its own.
        """
        places = np.argsort(order)
        if len(order) <= self.num_levels:
            return self._arranged(self.num_levels - 1 - places, places)
        sharing = self._sharing(order)
        rows = np.repeat(np.arange(len(order)), np.diff(sharing.indptr))
        first, second = order[rows], order[sharing.indices]

        def cut(weights: FloatArray) -> IntArray:
            edges = csr_array((weights, sharing.indices, sharing.indptr), shape=sharing.shape)
            return levels_of_cut(edges, self.num_levels, self.seed, self.options.num_orders)[places]

        by_intensity = self.contention.intensity[self.contention.job_of_group[first]]
        if not self.judge.evaluations:
            levels = cut(by_intensity if self.bound.is_scarce else losses(self.contention, first, second))
            return self._arranged(levels, _by_level(levels, places))
        scorer = Scorer(lambda levels: self.judge.score(self.judge.served(levels)), self.judge.evaluations // 2)
        together = np.full(len(order), self.num_levels - 1)
        cuts = cut(losses(self.contention, first, second)), cut(by_intensity), together
        best = moved(max((scorer(levels) for levels in cuts), key=_score), scorer, self.num_levels)
        # What shares a level shares at hosts too: the model has scored it so.
        return self._arranged(best.order, np.unique(-best.order, return_inverse=True)[1])

    def _sharing(self, order: IntArray) -> csr_array:
        """An entry from the more urgent of two groups that share a link with levels to the other, in this order."""
        first = np.searchsorted(self.contention.group_of, np.arange(len(order) + 1))
        uses = sum_rows(self.occupied, first)
        loads = Loads(uses.indptr.astype(np.int64), uses.indices.astype(np.int32), uses.data, uses.shape[1])
        return loads.sharing(order.tolist(), self.has_levels)

    def _arranged(self, levels: IntArray, places: IntArray) -> Arrangement:
        urgency = levels if self.judge.evaluations else -places
        served = self.judge.served(urgency)
        return Arrangement(levels, places, served, self.judge.score(served))

    def _crux_order(self) -> IntArray:
        """Groups by the P = k I of their jobs, those of one job by w / (p + slack)."""
        contention = self.contention
        comm_s = contention.comm_s
        jobs = [
            Iteration(compute_s, min(release_s / compute_s, 1.0), transfer_s)
            for compute_s, release_s, transfer_s in zip(
                contention.compute_s.tolist(),
                contention.release_s[contention.first_transfer[:-1]].tolist(),
                comm_s.tolist(),
                strict=True,
            )
        ]
        reference = int(np.argmax(comm_s))
        factors = np.array(correction_factors(jobs, jobs[reference]))
        factors[reference] = 1.0
        priority = (factors * contention.intensity)[contention.job_of_group]
        return np.lexsort((np.arange(len(priority)), -smith_ratios(contention), contention.job_of_group, -priority))


def _score(scored: Scored) -> Score:
    return scored.score


def _by_level(levels: IntArray, places: IntArray) -> IntArray:
    """Places in which groups of a higher level come before those of a lower one."""
    return np.argsort(np.lexsort((places, -levels)))


def _urgency(order: IntArray) -> IntArray:
    urgency = np.empty(len(order), dtype=np.int64)
    urgency[order] = np.arange(len(order))[::-1]
    return urgency
