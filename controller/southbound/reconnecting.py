"""A switch of finsy's that is found again as soon as it is back."""

import asyncio
import time

from finsy import GRPCStatusCode, P4ClientError, Switch, SwitchEvent

_AWAY_RETRY_S = 0.5
_FAILED_RETRY_S = 5.0
_SHORT_S = 2.0
"""A connection that has not held for so long, to a switch that is there, has failed: it is not tried again at once."""


class ReconnectingSwitch(Switch):
    """Tried every half second while nothing answers; finsy itself waits 10 s after each attempt that fails soon."""

    async def run(self) -> None:
        """Connect, and connect again whenever the connection is lost; until cancelled."""
        lost = asyncio.Event()
        self.ee.on(SwitchEvent.CHANNEL_DOWN, lambda _: lost.set())
        while True:
            lost.clear()
            began_s = time.monotonic()
            has_failed = False
            try:
                async with self:
                    await lost.wait()
                has_failed = time.monotonic() - began_s < _SHORT_S
            except P4ClientError as error:
                has_failed = error.code is not GRPCStatusCode.UNAVAILABLE
            except asyncio.CancelledError:
                # finsy also cancels an attempt where another of its tasks has failed, and has logged that.
                if (task := asyncio.current_task()) is None or task.cancelling():
                    raise
                has_failed = True
            await asyncio.sleep(_FAILED_RETRY_S if has_failed else _AWAY_RETRY_S)
