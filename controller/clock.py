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
