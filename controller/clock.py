"""The clock of leases and Plans."""

import time
from typing import Protocol


class Clock(Protocol):
    """A clock in seconds since some origin, which stays the same when a controller is restarted."""

    def now_s(self) -> float:
        """Return the time."""
        ...


class WallClock:
    """Unix time at the start, which then advances monotonically: changes of the system date do not affect it."""

    def __init__(self) -> None:
        self._origin_s = time.time() - time.monotonic()

    def now_s(self) -> float:
        """Return the time."""
        return self._origin_s + time.monotonic()
