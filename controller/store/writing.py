"""A thread that does one thing after the other for an event loop, and that nobody has to wait for."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, TypeVar

from controller.errors import StoreError

_ResultT = TypeVar("_ResultT")


class Writer(Executor):
    """One thread, which does not keep a process that ends: a database that hangs could keep it for ever."""

    def __init__(self, name: str = "database") -> None:
        self._name = name
        self._waiting: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._is_closed = False
        self._thread: Thread | None = None

    def submit(self, call: Callable[..., _ResultT], /, *arguments: Any, **named: Any) -> "Future[_ResultT]":
        """See concurrent.futures."""
        if self._is_closed:
            raise RuntimeError("has been closed")
        if self._thread is None:
            self._thread = Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        future: Future[_ResultT] = Future()
        self._waiting.put((future, lambda: call(*arguments, **named)))
        return future

    def close(self, patience_s: float) -> None:
        """Take nothing more; returns once all is done, or when that takes too long."""
        self._is_closed = True
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(patience_s)

    def _work(self) -> None:
        while (taken := self._waiting.get()) is not None:
            future, call = taken
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:
                    future.set_exception(error)
                    del error
            del taken, future, call


async def in_own_thread(call: Callable[[], _ResultT], name: str = "database") -> _ResultT:
    """What a call returns, made in a thread of its own; whoever is cancelled meanwhile leaves that thread behind."""
    writer = Writer(name)
    try:
        return await asyncio.get_running_loop().run_in_executor(writer, call)
    finally:
        writer.close(0.0)


class Once(Generic[_ResultT]):
    """A call that is made once at most, and not at all where it was withdrawn before it began."""

    def __init__(self, call: Callable[[], _ResultT]) -> None:
        self._call = call
        self._taken = Lock()

    def __call__(self) -> _ResultT:
        if not self._taken.acquire(blocking=False):
            raise StoreError("withdrawn")
        return self._call()

    def withdraw(self) -> bool:
        """Whether it is never going to be made."""
        return self._taken.acquire(blocking=False)
