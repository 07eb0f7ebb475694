"""Simulated processes inside one process, which can be killed with all their tasks."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from itertools import count
from typing import Any

_CURRENT: "ContextVar[Process | None]" = ContextVar("process", default=None)


class Process:
    """Tasks that live and die together, with all tasks that they start.

    No other process notices anything of a killed one: its connections end, its tasks are cancelled,
    and what they still do as they end reaches no one.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
        self._tasks: set[asyncio.Task[Any]] = set()
        self._on_end: dict[int, Callable[[], None]] = {}
        self._numbers = count()

    @staticmethod
    def current() -> "Process | None":
        """The process whose task or callback runs now."""
        return _CURRENT.get()

    @property
    def num_tasks(self) -> int:
        """The number of tasks that have not ended."""
        return len(self._tasks)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Start a task of this process."""
        context = copy_context()
        context.run(_CURRENT.set, self)
        return asyncio.get_running_loop().create_task(work, context=context)

    def at_end(self, call: Callable[[], None]) -> Callable[[], None]:
        """Register a callback for the process's end; call the returned function to withdraw it."""
        number = next(self._numbers)
        self._on_end[number] = call
        return lambda: self._on_end.pop(number, None)

    def kill(self) -> None:
        """Kill the process; it may be dead already."""
        if not self.is_alive:
            return
        self.is_alive = False
        for call in tuple(self._on_end.values()):
            call()
        self._on_end.clear()
        for task in tuple(self._tasks):
            task.cancel()

    def adopt(self, task: "asyncio.Task[Any]") -> None:
        """Add a task that has started."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if not self.is_alive:
            task.cancel()


def owner_of(context: Context | None) -> Process | None:
    """Return the process to which a task with this context belongs, or else the current one."""
    return _CURRENT.get() if context is None else context.get(_CURRENT)
