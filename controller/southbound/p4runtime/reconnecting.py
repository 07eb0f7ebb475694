"""Keep a finsy switch connected, and reconnect as soon as it is back.

finsy's ``Controller`` pauses ten seconds after a short connection; a switch that reboots would stay empty that long.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from finsy import GRPCStatusCode, P4ClientError, Switch, SwitchEvent
from finsy.gnmiclient import GNMIClientError

from topologies.printable import printable

_RETRY_S = 0.5
_LAST_RETRY_S = 8.0
_SHORT_S = 2.0
"""A connection that ends sooner is short. After each one to a switch that answers, the next attempt waits longer."""


class ConnectionLostError(Exception):
    """Tells finsy by its ``code`` that a switch is away, which is no failure."""

    code = GRPCStatusCode.UNAVAILABLE


def reason_of(error: BaseException) -> str:
    """Return what went wrong, in one line that is safe to log."""
    match error:
        case P4ClientError() if error.details:
            number, first = next(iter(error.details.items()))
            more = f" and {len(error.details) - 1} more" if len(error.details) > 1 else ""
            return printable(f"{first.canonical_code.name} for update {number}{more}: {first.message}")
        case P4ClientError() | GNMIClientError():
            return printable(f"{error.code.name}: {error.message}" if error.message else error.code.name)
        case ConnectionLostError():
            return printable(str(error))
    return printable(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


async def keep_connected(switch: Switch, on_end: Callable[[str], None]) -> None:
    """Connect, and connect again whenever the connection is lost, until cancelled.

    While nothing answers it tries every half second; finsy's own loop waits 10 s after an attempt that fails quickly.
    ``on_end`` is called with the reason whenever an attempt or a connection has ended.
    """
    loop, lost, retry_s = asyncio.get_running_loop(), asyncio.Event(), _RETRY_S
    switch.ee.on(SwitchEvent.CHANNEL_DOWN, lambda _: lost.set())
    failures = _watch_tasks(switch)
    while True:
        lost.clear()
        failures.clear()
        began_s, is_away = loop.time(), False
        try:
            async with switch:
                await lost.wait()
        except Exception as error:
            # It also connects by gNMI, whose errors differ. No switch is ever given up.
            is_away = getattr(error, "code", None) is GRPCStatusCode.UNAVAILABLE
            failures.append(error)
        except asyncio.CancelledError:
            # finsy also cancels an attempt if another of its tasks has failed.
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
        on_end(reason_of(failures[0]) if failures else "the connection is closed")
        if is_away or loop.time() - began_s >= _SHORT_S:
            retry_s = _RETRY_S
        await asyncio.sleep(retry_s)
        if not is_away:
            retry_s = min(2 * retry_s, _LAST_RETRY_S)


def _watch_tasks(switch: Switch) -> list[BaseException]:
    """Return a list to which every failure of a task of the switch is appended from now on; finsy only logs them."""
    failures: list[BaseException] = []
    create_task = switch.create_task

    def note(task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            failures.append(error)

    def create_watched_task(coroutine: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Task[Any]:
        task = create_task(coroutine, **options)
        task.add_done_callback(note)
        return task

    vars(switch)["create_task"] = create_watched_task
    return failures
