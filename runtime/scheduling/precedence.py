"""What is granted before what, over all islands.

Each gang is granted after those whose results it takes, on whatever island they run. So the grants of all islands, in
the order in which they were made, are one order that every device follows and that runs no gang before its inputs. The
first gang in it that has not completed can always run: programs that cross islands never wait for each other in a ring.
"""

from typing import Protocol

from runtime.scheduling.errors import GangOrderError
from runtime.scheduling.gangs import GangRequest


class Holder(Protocol):
    """The scheduler of an island, as the order over all islands sees it."""

    def release(self, number: int) -> None:
        """Let a gang compete: what it comes after has been granted."""

    def discard(self, number: int) -> None:
        """Forget a gang: what it comes after is not going to be granted."""


class _Entry:
    __slots__ = ("followers", "holder", "num_awaited")

    def __init__(self, holder: Holder) -> None:
        self.holder = holder
        self.num_awaited = 0
        self.followers: list[int] = []


class Precedence:
    """The gangs of all islands that have not been granted, and which of them come after which."""

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}
        self._last_number = -1

    def check(self, request: GangRequest) -> None:
        """Refuse a number that does not follow the last one.

        Raises:
            GangOrderError: It does not.
        """
        if request.number <= self._last_number:
            raise GangOrderError(f"gang {request.number}: number: must be above the last one, {self._last_number}")

    def submit(self, request: GangRequest, holder: Holder) -> None:
        """Take a gang, and release it at once where all that it comes after has been granted.

        A predecessor that is not known has been granted, since numbers arrive in order.
        """
        self._last_number = request.number
        entry = self._entries[request.number] = _Entry(holder)
        for earlier in set(request.after):
            awaited = self._entries.get(earlier)
            if awaited is not None:
                awaited.followers.append(request.number)
                entry.num_awaited += 1
        if entry.num_awaited == 0:
            holder.release(request.number)

    def grant(self, number: int) -> None:
        """Release what waited for this gang alone."""
        for follower in self._entries.pop(number).followers:
            entry = self._entries.get(follower)
            if entry is None:
                continue
            entry.num_awaited -= 1
            if entry.num_awaited == 0:
                entry.holder.release(follower)

    def drop(self, numbers: list[int]) -> list[int]:
        """Discard gangs that have not been granted, and all that come after them; return their numbers, sorted."""
        dropped: list[int] = []
        left = list(numbers)
        while left:
            number = left.pop()
            entry = self._entries.pop(number, None)
            if entry is None:
                continue
            entry.holder.discard(number)
            dropped.append(number)
            left += entry.followers
        return sorted(dropped)
