"""Keep a finsy switch connected, and reconnect as soon as it is back.

finsy's ``Controller`` pauses ten seconds after a short connection; a switch that reboots would stay empty that long.
"""

import asyncio

from finsy import GRPCStatusCode, Switch, SwitchEvent

_RETRY_S = 0.5
_LAST_RETRY_S = 8.0
_SHORT_S = 2.0
"""A connection that ends sooner is short. After each one to a switch that answers, the next attempt waits longer."""


class ConnectionLostError(Exception):
    """Tells finsy by its ``code`` that a switch is away, which is no failure."""

    code = GRPCStatusCode.UNAVAILABLE


async def keep_connected(switch: Switch) -> None:
    """Connect, and connect again whenever the connection is lost, until cancelled.

    While nothing answers it tries every half second; finsy's own loop waits 10 s after an attempt that fails quickly.
    """
    loop, lost, retry_s = asyncio.get_running_loop(), asyncio.Event(), _RETRY_S
    switch.ee.on(SwitchEvent.CHANNEL_DOWN, lambda _: lost.set())
    while True:
        lost.clear()
        began_s, is_away = loop.time(), False
        try:
            async with switch:
                await lost.wait()
        except Exception as error:
            # finsy has logged it. It also connects by gNMI, whose errors differ. No switch is ever given up.
            is_away = getattr(error, "code", None) is GRPCStatusCode.UNAVAILABLE
        except asyncio.CancelledError:
            # finsy also cancels an attempt if another of its tasks has failed, and has logged that.
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
        if is_away or loop.time() - began_s >= _SHORT_S:
            retry_s = _RETRY_S
        await asyncio.sleep(retry_s)
        if not is_away:
            retry_s = min(2 * retry_s, _LAST_RETRY_S)
