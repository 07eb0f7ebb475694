"""Sums of counters that come and go, which nevertheless only grow."""

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

PlaceT = TypeVar("PlaceT", bound=Hashable)


class GrowingCounts(Generic[PlaceT]):
    """What the counters of each place have counted together, as far as they were read.

    A counter that is gone has counted what it showed last. One that shows less than before has begun anew.

        >>> counts = GrowingCounts[str]()
        >>> counts.read({("port", 1): 100})["port"]
        100
        >>> counts.read({("port", 1): 30, ("port", 2): 5})["port"]
        135
    """

    def __init__(self) -> None:
        self._last: Mapping[tuple[PlaceT, object], int] = {}
        self._sums: Counter[PlaceT] = Counter()

    def read(self, counters: Mapping[tuple[PlaceT, object], int]) -> Counter[PlaceT]:
        """Take a reading of all counters that there are, by place and what tells them apart; return the sums."""
        for (place, which), count in counters.items():
            before = self._last.get((place, which), 0)
            self._sums[place] += count - before if count >= before else count
        self._last = dict(counters)
        return Counter(self._sums)
