"""The time that leases are renewed by."""

import asyncio
import heapq
import time
from itertools import count
from typing import Protocol


class Clock(Protocol):
    """Seconds since some moment of the clock's own."""

    def now_s(self) -> float: ...

    async def wait_until(self, time_s: float) -> None: ...


class WallClock:
    """Time as it passes, unaffected by changes of the date."""

    def now_s(self) -> float:
        return time.monotonic()

    async def wait_until(self, time_s: float) -> None:
        """Return once ``time_s`` has come."""
        await asyncio.sleep(max(0.0, time_s - time.monotonic()))


class DrivenClock:
    """Virtual time: it stands still until somebody moves it forward."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._order = count()
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []

    def now_s(self) -> float:
        return self._now_s

    async def wait_until(self, time_s: float) -> None:
        """Return once the clock has been moved to ``time_s`` or beyond."""
        if time_s > self._now_s:
            moved = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (time_s, next(self._order), moved))
            await moved

    def advance_to(self, time_s: float) -> None:
        """Move to ``time_s``; raises ValueError where that is in the past."""
        if not time_s >= self._now_s:
            raise ValueError(f"time_s: the clock stands at {self._now_s} and never goes back to {time_s}")
        self._now_s = time_s
        while self._waiting and self._waiting[0][0] <= time_s:
            moved = heapq.heappop(self._waiting)[2]
            if not moved.done():
                moved.set_result(None)
