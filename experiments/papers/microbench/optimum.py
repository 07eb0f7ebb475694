"""The best and the worst of a case, by enumeration of paths, orders and levels.

Compressions of all orders make all assignments of levels, so that the joint optimum is the best choice of paths and
levels. Nothing is left out but what cannot matter: settings that come to the same are run once (``lots``), what jobs
give that do not meet adds up, and paths whose bound lies below what was found already are passed over.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import copysign, fsum
from operator import mul

from experiments.papers.microbench.bounds import ROUNDING
from experiments.papers.microbench.cases import NUM_LEVELS, Case
from experiments.papers.microbench.lots import Choice, Lot, choices, lots
from experiments.papers.microbench.orders import Order, Orders
from experiments.papers.microbench.outcomes import Outcomes


class Optimum:
    """Enumerates one case; all values are GPU-seconds of computation in its window."""

    def __init__(self, case: Case) -> None:
        self._snapshot = case.snapshot
        self._outcomes = Outcomes(case)
        self._best: dict[Lot, float] = {}
        self._lots: dict[Choice, tuple[Lot, ...]] = {}

    @property
    def windows_run(self) -> float:
        """How much was run of the simulator so far, in windows of the case."""
        return self._outcomes.windows_run

    @cached_property
    def paths(self) -> Choice:
        """The choice of paths that gives most with the best levels; the first by its bound of those that do."""
        by_bound = sorted(self._different(), key=lambda choice: (-self._most(choice), choice))
        best, found = by_bound[0], self.of_paths(by_bound[0])
        for choice in by_bound[1:]:
            for lot in sorted(self._lots_of(choice), key=lambda lot: len(lot.jobs)):
                if self._most(choice) > found * (1 + ROUNDING):
                    self._best_of(lot)
            if self._most(choice) > found * (1 + ROUNDING):
                best, found = choice, self.of_paths(choice)
        return best

    @cached_property
    def order(self) -> Order:
        """An order on the best paths that has a compression as good as any.

        Of several, in each lot the one that gives most with a level for each job, then the first. Jobs of different
        lots stand by their places in these.
        """
        places = {job: place for each in self._orders for place, job in enumerate(each.best_order())}
        return tuple(sorted(places, key=lambda job: (places[job], job)))

    @property
    def gpu_seconds(self) -> float:
        """What all GPUs would compute in the window without a pause."""
        return self._outcomes.gpu_seconds

    @property
    def computed(self) -> float:
        """The most that there is."""
        return fsum(each.best for each in self._orders)

    def of_paths(self, choice: Choice) -> float:
        """What paths give with the best levels."""
        return fsum(map(self._best_of, self._lots_of(choice)))

    def of_order(self, order: Order) -> float:
        """What an order gives on the best paths with its best compression."""
        return fsum(each.of(order) for each in self._orders)

    def of_levels(self, levels: Sequence[int]) -> float:
        """What levels, by job, give on the best paths."""
        return fsum(self._outcomes.of(lot, tuple(levels[job] for job in lot.jobs)) for lot in self._lots_of(self.paths))

    def worst_paths(self) -> float:
        """The least that a choice of paths gives with the best levels."""
        by_bound = sorted(self._different(), key=lambda choice: (self._most(choice), choice))
        found = self.of_paths(by_bound[0])
        for choice in by_bound[1:]:
            if not self._reaches(choice, found):
                found = self.of_paths(choice)
        return found

    def worst_order(self) -> float:
        """The least that an order gives on the best paths with its best compression."""
        return fsum(each.worst() for each in self._orders)

    def worst_compression(self) -> float:
        """The least that a compression of the best order gives on the best paths."""
        return fsum(each.worst_compression(self.order) for each in self._orders)

    @cached_property
    def _orders(self) -> list[Orders]:
        return [Orders(lot, self._outcomes) for lot in self._lots_of(self.paths)]

    def _lots_of(self, choice: Choice) -> tuple[Lot, ...]:
        if choice not in self._lots:
            self._lots[choice] = lots(self._snapshot, choice)
        return self._lots[choice]

    def _different(self) -> Iterator[Choice]:
        """One choice of those for which the same flows meet in the same way."""
        seen = set()
        for choice in choices(self._snapshot):
            if (meetings := self._lots_of(choice)) not in seen:
                seen.add(meetings)
                yield choice

    def _most(self, choice: Choice) -> float:
        """No levels can give more on these paths, as far as is known."""
        return fsum(self._best.get(lot, self._outcomes.most(lot)) for lot in self._lots_of(choice))

    def _best_of(self, lot: Lot) -> float:
        """What the jobs of a lot give with the best levels."""
        if lot not in self._best:
            enough = self._outcomes.most(lot) * (1 - 2 * ROUNDING)
            best = 0.0
            for levels in self._likely_first(lot):
                best = max(best, self._outcomes.unless_below(lot, levels, best))
                if best >= enough:
                    break
            self._best[lot] = best
        return self._best[lot]

    def _reaches(self, choice: Choice, enough: float) -> bool:
        """Whether some levels give so much on these paths."""
        given = {lot: self._best.get(lot, 0.0) for lot in self._lots_of(choice)}
        for lot in given:
            for levels in self._likely_first(lot) if lot not in self._best else ():
                given[lot] = max(given[lot], self._outcomes.unless_below(lot, levels, given[lot]))
                if fsum(given.values()) >= enough:
                    return True
            self._best[lot] = given[lot]
        return fsum(given.values()) >= enough

    def _likely_first(self, lot: Lot) -> list[tuple[int, ...]]:
        """Levels for every relation of the jobs; first those that are most as what a byte of a job computes."""
        jobs = [self._snapshot.jobs[job] for job in lot.jobs]
        worth = [job.profile.work / max(sum(flow.size_bytes for flow in job.flows), 1.0) for job in jobs]
        likely = [copysign(1.0, worth[one] - worth[other]) for one, other in lot.pairs]
        relations = lot.relations(NUM_LEVELS)
        by_likeness = sorted(relations, key=lambda relation: -sum(map(mul, relation, likely)))
        return [relations[relation] for relation in by_likeness]
