"""All orders of the jobs of a lot, and all compressions of them to the levels there are."""

from collections.abc import Sequence
from itertools import permutations

import numpy as np

from experiments.papers.microbench.cases import NUM_LEVELS
from experiments.papers.microbench.lots import Lot
from experiments.papers.microbench.outcomes import Outcomes
from policies.traffic import BoolArray

_SAME = 1e-12

Order = tuple[int, ...]
"""Jobs by their numbers in the case, the most urgent first."""


class Orders:
    """What the orders of one lot give, each with every compression: of two jobs that meet, the one that stands earlier
    is never on the lower level.

    Values are GPU-seconds of computation in the window. ``best`` is the most that any gives.
    """

    def __init__(self, lot: Lot, outcomes: Outcomes) -> None:
        self._lot, self._outcomes = lot, outcomes
        relations = lot.relations(NUM_LEVELS)
        self._relations = np.array(list(relations), dtype=np.int64).reshape(len(relations), len(lot.pairs))
        self._values = np.array([outcomes.of(lot, levels) for levels in relations.values()])
        self.best = float(self._values.max())

    def of(self, order: Order) -> float:
        """What an order, of these jobs and maybe others, gives with its best compression."""
        return float(self._values[self._compressions(order)].max())

    def worst_compression(self, order: Order) -> float:
        """The least that a compression of this order gives."""
        return float(self._values[self._compressions(order)].min())

    def worst(self) -> float:
        """The least that an order gives with its best compression."""
        return min(map(self.of, self._different()))

    def best_order(self) -> Order:
        """Of the orders that have a compression as good as any, the one that gives most with a level for each job."""
        good = [order for order in self._different() if self.of(order) >= self.best * (1 - _SAME)]
        return max(good, key=self._strictly)

    def _strictly(self, order: Order) -> float:
        return self._outcomes.of(self._lot, self._strict_levels(order))

    def _strict_levels(self, order: Order) -> tuple[int, ...]:
        """A level for each job, in order of the lot."""
        levels = {job: level for level, job in enumerate(reversed(order))}
        return tuple(levels[job] for job in self._lot.jobs)

    def _different(self) -> Sequence[Order]:
        """The first of all orders that put those who meet in the same order."""
        found: dict[tuple[int, ...], Order] = {}
        for order in permutations(self._lot.jobs):
            found.setdefault(self._lot.relation(self._strict_levels(order)), order)
        return list(found.values())

    def _compressions(self, order: Order) -> BoolArray:
        strict = np.array(self._lot.relation(self._strict_levels(order)), dtype=np.int64)
        fits: BoolArray = ((self._relations == 0) | (self._relations == strict)).all(axis=1)
        return fits
