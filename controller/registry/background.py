"""What is written in the background: by one task at a time, for which nobody waits who need not."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Background:
    """A task that does ``work`` whenever there is some; ``work`` returns once nothing is left to do."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._work = work
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """There is something to do."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def done(self) -> None:
        """Return once nothing is left to do. Whoever waits may be cancelled; the work is not."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def end(self, patience_s: float) -> None:
        """Have it end, once nothing is left to do or when that takes too long."""
        if (task := self._task) is not None:
            await asyncio.wait((task,), timeout=patience_s)
            task.cancel()

    async def _run(self) -> None:
        try:
            await self._work()
        finally:
            self._task = None
