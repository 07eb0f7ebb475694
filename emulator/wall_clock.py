"""A clock that makes one second of a fabric last one second of wall time."""

import asyncio
import logging
import time
from collections.abc import Callable

from emulator.clock import Deliver, VirtualClock
from emulator.fabric import PS_PER_S, Completion, EmulatedFabric

SLICE_S = 0.001
"""The fabric's time stands between slices of this length, and controllers have their turn."""

TOLERANCE_S = 0.1
"""What the fabric catches up when it is late; of a longer delay nothing, so that it never races for long."""

_SLICE_PS = round(SLICE_S * PS_PER_S)
_LOG = logging.getLogger(__name__)


class WallClock:
    """Time that passes no faster than wall time, which counts from the moment the clock is made.

    Where the machine cannot follow, the fabric's time falls behind for good, and the first time a warning says so.
    ``exclusive`` is held only while a slice of time passes, ``deliver`` is called after it; ``time_s`` reads the wall's
    clock.
    """

    def __init__(
        self,
        fabric: EmulatedFabric,
        exclusive: asyncio.Lock,
        deliver: Deliver,
        time_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fabric = fabric
        self._slices = VirtualClock(fabric, exclusive, deliver)
        self._time_s = time_s
        self._start_s = time_s() - fabric.now_ps / PS_PER_S
        self._has_warned = False

    async def run(self, until_ps: int) -> tuple[Completion, ...]:
        """See Clock."""
        while True:
            due_ps = min(self._due_ps(), until_ps)
            completions = await self._slices.run(min(due_ps, self._fabric.now_ps + _SLICE_PS))
            if completions or self._fabric.now_ps == until_ps:
                return completions
            if due_ps - self._fabric.now_ps < _SLICE_PS:
                await asyncio.sleep(SLICE_S)

    def _due_ps(self) -> int:
        """The fabric's time that wall time asks for, never before the one it has reached."""
        now_ps = self._fabric.now_ps
        late_s = self._time_s() - self._start_s - now_ps / PS_PER_S
        if late_s <= TOLERANCE_S:
            return now_ps + max(0, round(late_s * PS_PER_S))
        if not self._has_warned:
            self._has_warned = True
            _LOG.warning("the fabric's clock has fallen behind wall time: this machine cannot follow every packet")
        self._start_s += late_s
        return now_ps
