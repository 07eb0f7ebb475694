"""Priorities of the jobs of a component that is too large for the model: one level and one place for each job.

Initial orders (``order``) are compared by capacity alone (``capacity``), and compressed to levels (``levels``).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from policies.arrays import BoolArray, FloatArray, IntArray
from policies.trainyard.capacity import served_in_turn
from policies.trainyard.contention import Contention
from policies.trainyard.fluid_bound import FluidBound
from policies.trainyard.levels import LevelCut
from policies.trainyard.options import InitialOrder, TrainyardOptions
from policies.trainyard.order import crux_order, fluid_bound_order
from policies.trainyard.score import Score, Scorer

UNASSIGNED = -1
"""Level of a job that has none yet."""


@dataclass(frozen=True, slots=True, eq=False)
class Priorities:
    """Levels and places of jobs, with what they are worth.

    Attributes:
        levels: By job.
        places: By job, its place in the order, 0 first; a lower level never has the earlier place.
        served: By job, the share of its iterations alone that it gets by capacity.
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
        scorer: Scores what they get.
        occupied_s: Seconds for which each transfer (row) occupies each link of the fabric (column).
        has_levels: By link of the fabric, whether a switch queue keeps the order there.
        num_levels: How many levels there are.
        seed: Of the compression.
        options: Of the policy.
    """

    contention: Contention
    bound: FluidBound
    scorer: Scorer
    occupied_s: csr_array
    has_levels: BoolArray
    num_levels: int
    seed: int
    options: TrainyardOptions

    def orders(self) -> Iterator[IntArray]:
        """Yield the initial orders."""
        for initial in self.options.initial_orders:
            is_crux = initial is InitialOrder.CRUX
            yield crux_order(self.contention) if is_crux else fluid_bound_order(self.contention, self.bound)

    def promise(self) -> Score:
        """Return the best score of an initial order."""
        return max(map(self._score_of, self.orders()))

    def best(self) -> Priorities:
        """Return the best priorities found, whatever is in force."""
        return self.compressed(max(self.orders(), key=self._score_of))

    def better_than(self, score: Score, min_gain: float) -> Priorities | None:
        """Return the best priorities found, or None where they do not gain ``min_gain`` over this score.

        No levels of an order are taken to be better than the order itself, so the order is checked first.
        """
        best = fluid_bound_order(self.contention, self.bound)
        return self.compressed(best) if self._score_of(best).is_better_than(score, min_gain) else None

    def kept(self, levels: IntArray, places: IntArray) -> Priorities:
        """Return the priorities in force, with a level for each job that is ``UNASSIGNED``.

        A new job gets the level of its neighbour in the initial order, and the last place there. All other jobs keep
        their places, so a new job shares a place where it would come between two that follow one another.
        """
        levels, places = levels.copy(), places.copy()
        order = fluid_bound_order(self.contention, self.bound)
        for job in order[levels[order] == UNASSIGNED].tolist():
            level = self._neighbours_level(job, order, levels)
            ahead = int(places[levels >= level].max(initial=-1))
            places[job] = ahead if ahead >= 0 and ahead + 1 in places[levels != UNASSIGNED] else ahead + 1
            levels[job] = level
        return self._priorities(levels, places)

    def level_starts(self, order: IntArray) -> list[IntArray]:
        """Return levels by job for an order: each its own where there are enough, else those of both cuts."""
        if len(order) <= self.num_levels:
            return [self.num_levels - 1 - np.argsort(order)]
        cut = self._cut(order)
        return [cut.by_loss(), cut.by_intensity()]

    def compressed(self, order: IntArray) -> Priorities:
        """Return levels for an order, and places that follow them."""
        places = np.argsort(order)
        if len(order) <= self.num_levels:
            return self._priorities(self.num_levels - 1 - places, places)
        cut = self._cut(order)
        levels = cut.by_intensity() if self.bound.is_scarce else cut.by_loss()
        # Places in which jobs of a higher level come before those of a lower one.
        return self._priorities(levels, np.argsort(np.lexsort((places, -levels))))

    def _cut(self, order: IntArray) -> LevelCut:
        of_links = self.occupied_s, self.has_levels, self.num_levels
        return LevelCut.of(self.contention, order, *of_links, self.seed, self.options.num_orders)

    def _score_of(self, order: IntArray) -> Score:
        return self.scorer.score(served_in_turn(self.contention, order))

    def _neighbours_level(self, job: int, order: IntArray, levels: IntArray) -> int:
        """Return the level of the nearest job before it in the order that has one, else of the nearest one after."""
        at = int(np.flatnonzero(order == job)[0])
        known = [int(levels[other]) for other in (*order[:at][::-1], *order[at + 1 :]) if levels[other] != UNASSIGNED]
        return known[0] if known else self.num_levels - 1

    def _priorities(self, levels: IntArray, places: IntArray) -> Priorities:
        served = served_in_turn(self.contention, np.argsort(places, kind="stable"))
        return Priorities(levels, places, served, self.scorer.score(served))
