"""Clock that makes one second of a fabric last one second of wall time."""

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
"""Time advances in slices of this length; controllers run between slices."""

IDLE_S = 0.01
"""While nothing happens, time advances in steps of this length, unless the clock is woken."""

TOLERANCE_S = 0.1
"""Delay that the fabric catches up. Of a longer delay it catches up one slice, so that it never races or stalls."""

LATE_TIMES, LATE_WITHIN_S = 3, 10.0
"""A warning follows this many delays within this time; the next warning at the earliest after that time."""

_SLICE_PS = round(SLICE_S * PS_PER_S)
_LOG = logging.getLogger(__name__)


class WallClock:
    """Advances no faster than wall time, counted from the creation of the clock.

    If the machine cannot follow, the fabric's time falls behind for good, and a warning is logged if that repeats. The
    clock holds ``exclusive`` only during a slice and calls ``deliver`` after it; ``time_s`` reads wall time.
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
        """Advance as ``Clock.run`` describes."""
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
        """React to a change of the fabric at once. Call it in the event loop's thread."""
        self._woken.set()

    async def _pause(self) -> None:
        ahead_s = (self._fabric.next_event_ps - self._fabric.now_ps) / PS_PER_S
        if ahead_s <= SLICE_S:
            await asyncio.sleep(SLICE_S)
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), min(ahead_s, IDLE_S))

    def _due_ps(self) -> int:
        """Return the fabric's time that corresponds to wall time, never before the current one."""
        now_ps = self._fabric.now_ps
        late_s = self._time_s() - self._start_s - now_ps / PS_PER_S
        if late_s <= TOLERANCE_S:
            return now_ps + max(0, round(late_s * PS_PER_S))
        lost_s = late_s - SLICE_S
        self._start_s += lost_s
        self._note_loss(lost_s)
        return now_ps + _SLICE_PS

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
