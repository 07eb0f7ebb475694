"""Which pieces a connection has delivered, so that a broken one fails those that it lost, and no others. Pure.

The sender keeps the names of what is not known to have arrived, the receiver counts what has come. Both count in the
order of the connection. When it ends, the sender names what it does not know of, and the receiver says which of these
never came.
"""

from collections import deque
from collections.abc import Sequence

from runtime.frames import FrameError

Name = tuple[int, int, int, int]
"""Execution, edge, destination shard, source shard."""

CONFIRMED_EVERY = 64
"""After so many pieces the receiver says how many have come."""


class Sent:
    """The pieces of a connection that are not known to have arrived, in order; ``first`` is the number of the first."""

    def __init__(self) -> None:
        self.first = 0
        self._names: deque[Name] = deque()

    @property
    def names(self) -> Sequence[Name]:
        """Their names."""
        return tuple(self._names)

    def add(self, name: Name) -> None:
        """Note that a piece is sent."""
        self._names.append(name)

    def confirm(self, number: int) -> None:
        """Note that so many pieces have arrived. Raises FrameError if so many were not sent, or were known to have."""
        if not self.first <= number <= self.first + len(self._names):
            raise FrameError(f"{number} pieces have arrived, of {self.first + len(self._names)}")
        for _ in range(number - self.first):
            self._names.popleft()
        self.first = number


class Taken:
    """How many pieces of a connection have come, and those of them that could not be read and come once more."""

    def __init__(self) -> None:
        self.number = 0
        self._unread: set[Name] = set()

    def take(self, name: Name, *, is_read: bool = True) -> bool:
        """Count a piece; return whether the sender is to be told the number."""
        self.number += 1
        if is_read:
            self._unread.discard(name)
        else:
            self._unread.add(name)
        return self.number % CONFIRMED_EVERY == 0

    def lost(self, first: int, names: Sequence[Name]) -> list[Name]:
        """Return which pieces never came, each once, of those that the sender does not know of."""
        came = max(0, self.number - first)
        return list(dict.fromkeys(name for place, name in enumerate(names) if place >= came or name in self._unread))
