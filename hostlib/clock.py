"""The time that leases are renewed by."""

import asyncio
import time
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
