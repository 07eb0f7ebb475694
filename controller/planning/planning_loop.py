"""The loop around a planner: when it plans, and what happens where that fails."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from controller.clock import Clock
from controller.events import BurstLog, EventKind
from controller.metrics import PLANS
from controller.registry.errors import CommitError
from controller.southbound.southbound import SouthboundError

_LOG = logging.getLogger(__name__)

_RETRY_S = 1.0
_GATHER_S = 0.005
"""How long the loop waits for further changes: a job's flow groups follow the job at once."""
_TICK_S = 0.005
"""A timer that has ended may wait for calls, which may renew the lease that it is about."""
_LONG_S = 0.2
"""After a Plan that took longer than this, wait as long as it took, so that half of the time is left for requests."""


class PlanningLoop:
    """Settles after every change and whenever a timer ends.

    Args:
        settle: Plans what has changed; raises SouthboundError, CommitError or ValueError where it cannot.
        next_timer_s: Returns when the next timer ends; None where none runs.
        changed: Set where something has changed; ``settle`` clears it.
        clock: The clock of the timers.
    """

    def __init__(
        self,
        settle: Callable[[], Awaitable[None]],
        next_timer_s: Callable[[], float | None],
        changed: asyncio.Event,
        clock: Clock,
    ) -> None:
        self._settle = settle
        self._next_timer_s = next_timer_s
        self._changed = changed
        self._clock = clock
        self._refusals = BurstLog(_LOG, logging.ERROR)

    async def run(self) -> None:
        """Go on until cancelled."""
        pause_s = _GATHER_S
        while True:
            timer_s = self._next_timer_s()
            timeout_s = None if timer_s is None else max(_TICK_S, timer_s - self._clock.now_s())
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._changed.wait()
                    await asyncio.sleep(pause_s)
            start_s = asyncio.get_running_loop().time()
            await self._settle_or_wait()
            taken_s = asyncio.get_running_loop().time() - start_s
            pause_s = taken_s if taken_s > _LONG_S else _GATHER_S

    async def _settle_or_wait(self) -> None:
        try:
            await self._settle()
        except SouthboundError as error:
            PLANS.labels("refused").inc()
            words = "the plan is not in force everywhere; trying again: %s"
            self._refusals.tell(EventKind.SWITCH_REFUSES, words, error, problem=str(error))
            await asyncio.sleep(_RETRY_S)
        except CommitError as error:
            _LOG.warning("jobs whose leases have ended stay for now: %s", error)
            with suppress(TimeoutError):
                async with asyncio.timeout(_RETRY_S):
                    await self._changed.wait()
        except ValueError:
            _LOG.exception("no plan can be made; the one before stays in force")
            await asyncio.sleep(_RETRY_S)
