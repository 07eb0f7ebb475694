"""A clock that makes one second of a fabric last one second of wall time."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from emulator.clock import Deliver, VirtualClock
from emulator.fabric import PS_PER_S, EmulatedFabric
from emulator.observations import Completion

SLICE_S = 0.001
"""The fabric's time stands between slices of this length, and controllers have their turn."""

IDLE_S = 0.01
"""While nothing happens the fabric's time passes in steps of this length, unless the clock is woken."""

TOLERANCE_S = 0.1
"""What the fabric catches up when it is late; of a longer delay nothing, so that it never races for long."""

LATE_TIMES, LATE_WITHIN_S = 3, 10.0
"""Whoever is so late so often within this time, and not by a single stall, is told so, and once in as long again."""

_SLICE_PS = round(SLICE_S * PS_PER_S)
_LOG = logging.getLogger(__name__)


class WallClock:
    """Time that passes no faster than wall time, which counts from the moment the clock is made.

    Where the machine cannot follow, the fabric's time falls behind for good; a warning says so where it goes on.
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
        self._woken = asyncio.Event()
        self._losses: deque[tuple[float, float]] = deque(maxlen=LATE_TIMES)
        self._quiet_until_s = self._start_s

    async def run(self, until_ps: int) -> tuple[Completion, ...]:
        """See Clock."""
        while True:
            due_ps = min(self._due_ps(), until_ps)
            self._woken.clear()
            if self._fabric.next_event_ps <= due_ps:
                completions = await self._slices.run(min(due_ps, self._fabric.now_ps + _SLICE_PS))
            else:
                completions = await self._slices.run(due_ps)
            if completions or self._fabric.now_ps == until_ps:
                return completions
            if due_ps - self._fabric.now_ps < _SLICE_PS:
                await self._pause()

    def wake(self) -> None:
        """Something was done to the fabric that it shall react to at once. For the thread of the event loop."""
        self._woken.set()

    async def _pause(self) -> None:
        ahead_s = (self._fabric.next_event_ps - self._fabric.now_ps) / PS_PER_S
        if ahead_s <= SLICE_S:
            await asyncio.sleep(SLICE_S)
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), min(ahead_s, IDLE_S))

    def _due_ps(self) -> int:
        """The fabric's time that wall time asks for, never before the one it has reached."""
        now_ps = self._fabric.now_ps
        late_s = self._time_s() - self._start_s - now_ps / PS_PER_S
        if late_s <= TOLERANCE_S:
            return now_ps + max(0, round(late_s * PS_PER_S))
        self._start_s += late_s
        self._note_loss(late_s)
        return now_ps

    def _note_loss(self, late_s: float) -> None:
        now_s = self._start_s + self._fabric.now_ps / PS_PER_S
        self._losses.append((now_s, late_s))
        first_s, _ = self._losses[0]
        if len(self._losses) < LATE_TIMES or now_s - first_s > LATE_WITHIN_S or now_s < self._quiet_until_s:
            return
        self._quiet_until_s = now_s + LATE_WITHIN_S
        _LOG.warning(
            "the fabric's clock has fallen behind wall time %d times in %.1f s, by %.1f s in all:"
            " this machine cannot follow every packet",
            LATE_TIMES,
            now_s - first_s,
            sum(late_s for _, late_s in self._losses),
        )
