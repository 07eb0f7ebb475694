"""A clock in virtual time, for a controller and for host libraries."""

import asyncio
import heapq
from itertools import count


class DrivenClock:
    """A clock that stands at ``start_s`` until someone moves it forward."""

    def __init__(self, start_s: float = 0.0) -> None:
        self._now_s = start_s
        self._order = count()
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []

    def now_s(self) -> float:
        """Return the time at which the clock stands."""
        return self._now_s

    async def wait_until(self, time_s: float) -> None:
        """Wait until the clock is moved to ``time_s`` or beyond."""
        if time_s > self._now_s:
            moved = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (time_s, next(self._order), moved))
            await moved

    def advance_to(self, time_s: float) -> None:
        """Move the clock to ``time_s``.

        Raises:
            ValueError: That is in the past.
        """
        if not time_s >= self._now_s:
            raise ValueError(f"time_s: the clock stands at {self._now_s} and never goes back to {time_s}")
        self._now_s = time_s
        while self._waiting and self._waiting[0][0] <= time_s:
            moved = heapq.heappop(self._waiting)[2]
            if not moved.done():
                moved.set_result(None)
