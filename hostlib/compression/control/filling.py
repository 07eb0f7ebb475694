"""Which choices fill the time until a deadline with the least error.

Progressive filling, as for max-min fairness: all buckets start alike, rise together, and each stays where it would make
the step late. Levels count from the least error, 0.

A remainder is what one bucket left out in the step before. It is there when a step begins, so it has the link during
the forward pass, which no bucket can use. It counts as one more bucket, the first; at the last level none is sent.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

from hostlib.compression.control.network import Link
from hostlib.compression.control.rungs import Rung
from hostlib.compression.control.timeline import Forecast, Service, Timing, forecast

FEWER_LEVELS = (1, 2, 4, 8)
"""How many levels lower the buckets are tried that are short of time."""

_NO_SERVICE = Service(0, 0, 0)


def services_of(rung: Rung, link: Link) -> tuple[Service, ...]:
    """Return what each bucket takes that is sent as a choice."""
    return tuple(Service(cost.encode_s, link.transmission_s(cost), cost.decode_s) for cost in rung.costs)


class Filling:
    """One step's choices: per bucket a level of the ladder of choices that are worth it at a rate.

    Args:
        all_rungs: All choices, the least error first.
        timing: The step's computation.
        link: What carries it.
    """

    def __init__(self, all_rungs: Sequence[Rung], timing: Timing, link: Link) -> None:
        self.timing = timing
        self.ladder: list[Rung] = []
        self.services: list[tuple[Service, ...]] = []
        least_s = float("inf")
        for rung in all_rungs:
            services = services_of(rung, link)
            total_s = sum(service.encode_s + service.network_s + service.decode_s for service in services)
            if total_s < least_s:  # more error is worth it for less time alone
                least_s = total_s
                self.ladder.append(rung)
                self.services.append(services)

    def with_remainder_of(self, position: int) -> "Filling":
        """Return the same step with the remainder of a bucket before the first one."""
        other = copy(self)
        begin_s = self.timing.backward_s - self.timing.compute_s
        other.timing = replace(self.timing, ready_s=(begin_s, *self.timing.ready_s))
        other.services = [(services[position], *services) for services in self.services[:-1]]
        other.services.append((_NO_SERVICE, *self.services[-1]))
        return other

    def forecast(self, levels: Sequence[int]) -> Forecast:
        """Return what becomes of the step at these levels."""
        return forecast(self.timing, [self.services[level][position] for position, level in enumerate(levels)])

    def fastest(self) -> tuple[float, Rung]:
        """Return when the step's sums are there at the earliest, if all buckets are sent alike, and as what."""
        count = len(self.timing.ready_s)
        finish_s, level = min((self.forecast([level] * count).finish_s, level) for level in range(len(self.ladder)))
        return finish_s, self.ladder[level]

    def filled(self, deadline_s: float, elements: Sequence[int]) -> list[int] | None:
        """Return the levels that fill the time until a deadline; None if alike the buckets meet it at no level.

        The buckets that are ready last are often short of time, and the encoding of the others takes of it. They get
        all of it at first. Then it is tried what the others gain if these get less, and the least error counts.

        Args:
            deadline_s: When all sums must be there.
            elements: By bucket.
        """
        count = len(self.timing.ready_s)
        alike = (level for level in range(len(self.ladder)) if self.forecast([level] * count).finish_s <= deadline_s)
        level = next(alike, None)
        if level is None:
            return None
        filled, short = self._raised(deadline_s, level, [0] * count, elements)
        tried = [filled]
        for fewer in FEWER_LEVELS if len(short) < count else ():
            highest = [0] * count
            for position in short:
                highest[position] = min(len(self.ladder) - 1, filled[position] + fewer)
            levels, _ = self._raised(deadline_s, level, highest, elements)
            if self.forecast(levels).finish_s <= deadline_s:
                tried.append(levels)
        return min(
            (self._dense_where_it_fits(levels, deadline_s, elements) for levels in tried),
            key=lambda levels: self._error(levels, elements),
        )

    def _dense_where_it_fits(self, levels: list[int], deadline_s: float, elements: Sequence[int]) -> list[int]:
        """Return the levels with those buckets dense, the largest first, that can be: dense is quicker to encode."""
        dense = [level for level, rung in enumerate(self.ladder) if rung.choice.is_dense]
        for position in sorted(range(len(levels)), key=lambda position: -elements[position]):
            for level in dense:
                if level >= levels[position]:
                    break
                risen = [*levels[:position], level, *levels[position + 1 :]]
                if self.forecast(risen).finish_s <= deadline_s:
                    levels = risen
                    break
        return levels

    def _error(self, levels: Sequence[int], elements: Sequence[int]) -> float:
        return sum(self.ladder[level].error * count for level, count in zip(levels, elements, strict=True))

    def _raised(
        self, deadline_s: float, level: int, highest: Sequence[int], elements: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """Return the levels to which the buckets rise together, and which of them stayed first.

        All rise from a level until one more would be late. Then the buckets that make it late stay, but for one more
        level where it fits, the largest first; the others rise on.

        Args:
            deadline_s: When all sums must be there.
            level: Where the buckets start; there they meet the deadline.
            highest: The level, by bucket, above which it does not rise.
            elements: By bucket.
        """
        rising = list(range(len(elements)))
        levels = _at(rising, rising, level, highest)
        short: list[int] = []
        while rising and level:
            level = self._common(levels, rising, level, highest, deadline_s)
            levels = _at(levels, rising, level, highest)
            if level:
                late = self.forecast(_at(levels, rising, level - 1, highest))
                chain = [position for position in rising if position >= late.chain_start] or rising
                rising = [position for position in rising if position not in chain]
                short = short or chain
                for position in sorted(chain, key=lambda position: -elements[position]):
                    risen = _at(levels, [position], level - 1, highest)
                    if self.forecast(risen).finish_s <= deadline_s:
                        levels = risen
        return levels, short

    def _common(
        self, levels: Sequence[int], rising: Sequence[int], level: int, highest: Sequence[int], deadline_s: float
    ) -> int:
        """Return the least level, by bisection, at which all that rise still meet the deadline."""
        late, met = -1, level
        while met - late > 1:
            middle = (late + met) // 2
            if self.forecast(_at(levels, rising, middle, highest)).finish_s <= deadline_s:
                met = middle
            else:
                late = middle
        return met


def _at(levels: Sequence[int], positions: Sequence[int], level: int, highest: Sequence[int]) -> list[int]:
    """Return the levels with those of some buckets set, as high as each may be."""
    changed = list(levels)
    for position in positions:
        changed[position] = max(level, highest[position])
    return changed
