"""Processes that are stopped and resumed, as by SIGSTOP and SIGCONT: what was due meanwhile happens at once then."""

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any

from tests.chaos.processes import Process, owner_of
from tests.chaos.virtual_loop import VirtualLoop


class StoppingLoop(VirtualLoop):
    """An event loop in virtual time in which processes can be stopped, also with messages under way."""

    def __init__(self, *arguments: Any) -> None:
        self._held: dict[Process, list[tuple[asyncio.Handle, Callable[..., object], tuple[Any, ...]]]] = {}
        super().__init__(*arguments)

    def stop_process(self, process: Process) -> None:
        """Stop a process with everything that it has started."""
        self._held.setdefault(process, [])

    def go_on(self, process: Process) -> None:
        """Resume a process, which then does everything that was due."""
        for handle, callback, arguments in self._held.pop(process, ()):
            context = handle._context  # type: ignore[attr-defined]
            super().call_soon(_unless_cancelled, handle, callback, *arguments, context=context)

    def call_soon(
        self, callback: Callable[..., object], *arguments: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """See asyncio."""
        context = copy_context() if context is None else context
        held = _Held(self._held, callback, arguments, owner_of(context))
        held.handle = super().call_soon(held, context=context)
        return held.handle

    def call_at(
        self, when: float, callback: Callable[..., object], *arguments: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """See asyncio."""
        context = copy_context() if context is None else context
        held = _Held(self._held, callback, arguments, owner_of(context))
        held.handle = handle = super().call_at(when, held, context=context)
        return handle


def _unless_cancelled(handle: asyncio.Handle, callback: Callable[..., object], *arguments: Any) -> None:
    """Run a callback unless it was cancelled meanwhile, as when a timeout's body has ended."""
    if not handle.cancelled():
        callback(*arguments)


class _Held:
    """A callback that waits while its process is stopped."""

    def __init__(
        self,
        stopped: dict[Process, list[tuple[asyncio.Handle, Callable[..., object], tuple[Any, ...]]]],
        callback: Callable[..., object],
        arguments: tuple[Any, ...],
        process: Process | None,
    ) -> None:
        self.handle: asyncio.Handle | None = None
        self._stopped = stopped
        self._callback = callback
        self._arguments = arguments
        self._process = process

    def __call__(self) -> None:
        if self._process is not None and self._process in self._stopped:
            assert self.handle is not None
            self._stopped[self._process].append((self.handle, self._callback, self._arguments))
        else:
            self._callback(*self._arguments)
