"""An event loop in virtual time, whose behaviour depends only on the program and its seed.

Time passes only where every task waits, and with it that of an emulated fabric. What would run in a thread runs at a
moment that the seed draws. Tasks and futures hash by their number: sets of them have an order that does not depend on
where they lie in memory.
"""

import asyncio
import contextvars
import math
import selectors
from collections.abc import Callable, Coroutine, Generator
from itertools import count
from random import Random
from typing import Any

from emulator.fabric import PS_PER_S, EmulatedFabric
from emulator.observations import Capture, Completion
from tests.chaos.processes import Process, owner_of

_LONGEST_IN_THREAD_S = 0.05
_LONGEST_PS = 3600 * PS_PER_S
"""Of a wait for nothing that is known: who waits longer is told so."""


class StuckError(Exception):
    """Every task waits for another one, and none for time."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs tasks in the time of ``fabric``.

    ``on_arrival`` gets the transfers that arrive, ``on_capture`` the injected packets that arrive.
    """

    def __init__(
        self,
        fabric: EmulatedFabric,
        draws: Random,
        on_arrival: Callable[[tuple[Completion, ...]], None],
        on_capture: Callable[[tuple[Capture, ...]], None],
    ) -> None:
        self._fabric = fabric
        self._draws = draws
        self._on_arrival = on_arrival
        self._on_capture = on_capture
        self._numbers = count()
        super().__init__(_Waiting(self._pass_time))
        self.set_task_factory(self._numbered_task)

    def time(self) -> float:
        """Return the fabric's time in seconds."""
        return self._fabric.now_ps / PS_PER_S

    def create_future(self) -> "asyncio.Future[Any]":
        """See asyncio."""
        return _NumberedFuture(next(self._numbers), self)

    def run_in_executor(self, _executor: object, call: Callable[..., Any], *arguments: object) -> "asyncio.Future[Any]":
        """Run the work of a thread at a time that the seed draws, as a whole.

        It runs even if no task waits for it any more, but not after its process was killed.
        """
        outcome, process = self.create_future(), Process.current()

        def run() -> None:
            if process is not None and not process.is_alive:
                outcome.cancel()
                return
            try:
                result = call(*arguments)
            except Exception as error:
                if not outcome.done():
                    outcome.set_exception(error)
            else:
                if not outcome.done():
                    outcome.set_result(result)

        self.call_later(self._draws.uniform(0, _LONGEST_IN_THREAD_S), run)
        return outcome

    def _numbered_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        context: contextvars.Context | None = None,
    ) -> "asyncio.Task[Any]":
        task = _NumberedTask(next(self._numbers), coroutine, loop, context)
        if (process := owner_of(context)) is not None:
            process.adopt(task)
        return task

    def _pass_time(self, wait_s: float | None) -> None:
        """Advance time to the next timer, or to the first transfers that arrive before."""
        if wait_s is not None and wait_s <= 0:
            return
        wait_ps = _LONGEST_PS if wait_s is None else math.ceil(wait_s * PS_PER_S)
        arrived = self._fabric.run(self._fabric.now_ps + wait_ps)
        captured = self._fabric.captured()
        if captured:
            self.call_soon(self._on_capture, captured)
        if arrived:
            self.call_soon(self._on_arrival, arrived)
        elif wait_s is None and not captured:
            raise StuckError(f"at {self.time()} s every task waits for another")

    def _write_to_self(self) -> None:
        """Do nothing: the loop never sleeps."""


class _Waiting(selectors.SelectSelector):
    """Advances time instead of waiting for files."""

    def __init__(self, pass_time: Callable[[float | None], None]) -> None:
        super().__init__()
        self._pass_time = pass_time

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._pass_time(timeout)
        return []


class _NumberedFuture(asyncio.Future):  # type: ignore[type-arg]
    def __init__(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self._number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class _NumberedTask(asyncio.Task):  # type: ignore[type-arg]
    def __init__(
        self,
        number: int,
        coroutine: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        loop: asyncio.AbstractEventLoop,
        context: contextvars.Context | None,
    ) -> None:
        self._number = number
        super().__init__(coroutine, loop=loop, context=context)

    def __hash__(self) -> int:
        return self._number
