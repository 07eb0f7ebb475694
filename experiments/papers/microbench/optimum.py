"""The best and the worst of a case, by enumeration of paths, orders and levels.

The compressions of all orders are all assignments of levels, so the joint optimum is the best choice of paths and
levels. Only what cannot matter is left out: equivalent settings run once (``components``), the values of contention
components add up, and paths whose upper bound is below the best value so far are skipped.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import permutations
from math import copysign, fsum
from operator import mul

import numpy as np

from experiments.papers.microbench.cases import NUM_LEVELS, Case
from experiments.papers.microbench.components import Choice, Component, choices, components
from experiments.papers.microbench.outcomes import ROUNDING, Outcomes
from policies.arrays import BoolArray

_SAME = 1e-12

Order = tuple[int, ...]
"""Jobs by their numbers in the case, the highest priority first."""


class Orders:
    """The values of all orders of one component's jobs with all compressions of them to ``NUM_LEVELS`` levels.

    In a compression, of two jobs that share a link the earlier one never has the lower level. Values are GPU-seconds
    of computation in the window; ``best`` is the largest.
    """

    def __init__(self, component: Component, outcomes: Outcomes) -> None:
        self._component, self._outcomes = component, outcomes
        relations = component.relations(NUM_LEVELS)
        self._relations = np.array(list(relations), dtype=np.int64).reshape(len(relations), len(component.pairs))
        self._values = np.array([outcomes.of(component, levels) for levels in relations.values()])
        self.best = float(self._values.max())

    def of(self, order: Order) -> float:
        """Return the value of an order, which may have other jobs too, with its best compression."""
        return float(self._values[self._compressions(order)].max())

    def worst_compression(self, order: Order) -> float:
        """Return the smallest value of a compression of this order."""
        return float(self._values[self._compressions(order)].min())

    def worst(self) -> float:
        """Return the smallest value of an order with its best compression."""
        return min(map(self.of, self._distinct()))

    def best_order(self) -> Order:
        """Return, of the orders that reach ``best``, the one with the largest value with a level for each job."""
        good = [order for order in self._distinct() if self.of(order) >= self.best * (1 - _SAME)]
        return max(good, key=self._with_strict_levels)

    def _with_strict_levels(self, order: Order) -> float:
        return self._outcomes.of(self._component, self._strict_levels(order))

    def _strict_levels(self, order: Order) -> tuple[int, ...]:
        """Return a level of its own for each job, in order of the component."""
        levels = {job: level for level, job in enumerate(reversed(order))}
        return tuple(levels[job] for job in self._component.jobs)

    def _distinct(self) -> Sequence[Order]:
        """Return the first of all orders that put jobs that share a link in the same order."""
        found: dict[tuple[int, ...], Order] = {}
        for order in permutations(self._component.jobs):
            found.setdefault(self._component.relation(self._strict_levels(order)), order)
        return list(found.values())

    def _compressions(self, order: Order) -> BoolArray:
        strict = np.array(self._component.relation(self._strict_levels(order)), dtype=np.int64)
        fits: BoolArray = ((self._relations == 0) | (self._relations == strict)).all(axis=1)
        return fits


class Optimum:
    """Enumerates one case; all values are GPU-seconds of computation in its window."""

    def __init__(self, case: Case) -> None:
        self._snapshot = case.snapshot
        self._outcomes = Outcomes(case)
        self._best: dict[Component, float] = {}
        self._components: dict[Choice, tuple[Component, ...]] = {}

    @property
    def windows_run(self) -> float:
        """The simulated time so far, in windows of the case."""
        return self._outcomes.windows_run

    @cached_property
    def paths(self) -> Choice:
        """The best choice of paths with the best levels; of equal ones the one with the largest bound."""
        by_bound = sorted(self._distinct(), key=lambda choice: (-self._upper_bound(choice), choice))
        best, found = by_bound[0], self.of_paths(by_bound[0])
        for choice in by_bound[1:]:
            for component in sorted(self._components_of(choice), key=lambda component: len(component.jobs)):
                if self._upper_bound(choice) > found * (1 + ROUNDING):
                    self._best_of(component)
            if self._upper_bound(choice) > found * (1 + ROUNDING):
                best, found = choice, self.of_paths(choice)
        return best

    @cached_property
    def order(self) -> Order:
        """An order on the best paths that has a compression as good as any.

        Of several, in each component the one with the largest value with a level for each job, then the first. Jobs of
        different components are ordered by their places in these.
        """
        places = {job: place for each in self._orders for place, job in enumerate(each.best_order())}
        return tuple(sorted(places, key=lambda job: (places[job], job)))

    @property
    def gpu_seconds(self) -> float:
        """The computation of all GPUs in the window without a pause."""
        return self._outcomes.gpu_seconds

    @property
    def computed(self) -> float:
        """The largest value."""
        return fsum(each.best for each in self._orders)

    def of_paths(self, choice: Choice) -> float:
        """Return the value of paths with the best levels."""
        return fsum(map(self._best_of, self._components_of(choice)))

    def of_order(self, order: Order) -> float:
        """Return the value of an order on the best paths with its best compression."""
        return fsum(each.of(order) for each in self._orders)

    def of_levels(self, levels: Sequence[int]) -> float:
        """Return the value of levels, by job, on the best paths."""
        return fsum(
            self._outcomes.of(component, tuple(levels[job] for job in component.jobs))
            for component in self._components_of(self.paths)
        )

    def worst_paths(self) -> float:
        """Return the smallest value of a choice of paths with the best levels."""
        by_bound = sorted(self._distinct(), key=lambda choice: (self._upper_bound(choice), choice))
        found = self.of_paths(by_bound[0])
        for choice in by_bound[1:]:
            if not self._reaches(choice, found):
                found = self.of_paths(choice)
        return found

    def worst_order(self) -> float:
        """Return the smallest value of an order on the best paths with its best compression."""
        return fsum(each.worst() for each in self._orders)

    def worst_compression(self) -> float:
        """Return the smallest value of a compression of the best order on the best paths."""
        return fsum(each.worst_compression(self.order) for each in self._orders)

    @cached_property
    def _orders(self) -> list[Orders]:
        return [Orders(component, self._outcomes) for component in self._components_of(self.paths)]

    def _components_of(self, choice: Choice) -> tuple[Component, ...]:
        if choice not in self._components:
            self._components[choice] = components(self._snapshot, choice)
        return self._components[choice]

    def _distinct(self) -> Iterator[Choice]:
        """Yield one choice of each set of equivalent ones."""
        seen = set()
        for choice in choices(self._snapshot):
            if (found := self._components_of(choice)) not in seen:
                seen.add(found)
                yield choice

    def _upper_bound(self, choice: Choice) -> float:
        """Return a bound on the value of these paths, tighter for components whose best value is known."""
        return fsum(
            self._best.get(component, self._outcomes.upper_bound(component))
            for component in self._components_of(choice)
        )

    def _best_of(self, component: Component) -> float:
        """Return the value of a component with the best levels."""
        if component not in self._best:
            enough = self._outcomes.upper_bound(component) * (1 - 2 * ROUNDING)
            best = 0.0
            for levels in self._levels_by_promise(component):
                best = max(best, self._outcomes.of_if_above(component, levels, best))
                if best >= enough:
                    break
            self._best[component] = best
        return self._best[component]

    def _reaches(self, choice: Choice, enough: float) -> bool:
        """Tell whether some levels reach a value on these paths."""
        given = {component: self._best.get(component, 0.0) for component in self._components_of(choice)}
        for component in given:
            for levels in self._levels_by_promise(component) if component not in self._best else ():
                given[component] = max(
                    given[component], self._outcomes.of_if_above(component, levels, given[component])
                )
                if fsum(given.values()) >= enough:
                    return True
            self._best[component] = given[component]
        return fsum(given.values()) >= enough

    def _levels_by_promise(self, component: Component) -> list[tuple[int, ...]]:
        """Return levels for every relation; first those that prefer jobs with more work per byte."""
        jobs = [self._snapshot.jobs[job] for job in component.jobs]
        worth = [job.profile.work / max(sum(flow.size_bytes for flow in job.flows), 1.0) for job in jobs]
        likely = [copysign(1.0, worth[one] - worth[other]) for one, other in component.pairs]
        relations = component.relations(NUM_LEVELS)
        by_likeness = sorted(relations, key=lambda relation: -sum(map(mul, relation, likely)))
        return [relations[relation] for relation in by_likeness]
