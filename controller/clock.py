"""The time that leases and plans go by."""

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds since some moment of the clock's own, the same for a controller that is started again."""

    def now_s(self) -> float: ...


class WallClock:
    """Unix time as it was at the start, and from then on as time passes, unaffected by changes of the date."""

    def __init__(self) -> None:
        self._origin_s = time.time() - time.monotonic()

    def now_s(self) -> float:
        return self._origin_s + time.monotonic()


class DrivenClock:
    """Virtual time: from ``start_s`` on it stands still until somebody moves it forward."""

    def __init__(self, start_s: float = 0.0) -> None:
        self._now_s = start_s

    def now_s(self) -> float:
        return self._now_s

    def advance_to(self, time_s: float) -> None:
        """Move to ``time_s``; raises ValueError where that is in the past."""
        if not time_s >= self._now_s:
            raise ValueError(f"time_s: the clock stands at {self._now_s} and never goes back to {time_s}")
        self._now_s = time_s
