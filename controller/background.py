"""Work beside the event loop: a task that drains a queue, threads for calls that block, and slices of long work."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Executor, Future
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, TypeVar

from controller.errors import StoreError

_LOG = logging.getLogger(__name__)

_ResultT = TypeVar("_ResultT")

PLANNING_NICENESS = 10
"""Of threads that plan: the event loop and the database go first, so that calls are answered while a Plan is made."""


class BackgroundTask:
    """Runs ``work`` as one task at a time; ``work`` returns once nothing is left to do. What it raises is logged.

    Example::

        task = BackgroundTask(write_all)
        queue.append(row)
        task.start()  # does nothing where the task runs already
        await task.join()
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._work = work
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the task, unless it runs."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def join(self) -> None:
        """Wait until nothing is left to do. Cancelling the wait does not cancel the work."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def stop(self, patience_s: float) -> None:
        """Wait until nothing is left to do, then cancel the task if that takes longer than ``patience_s``."""
        if (task := self._task) is not None:
            await asyncio.wait((task,), timeout=patience_s)
            task.cancel()

    async def _run(self) -> None:
        try:
            await self._work()
        except Exception:
            _LOG.exception("work in the background has failed")
        finally:
            self._task = None


class SerialExecutor(Executor):
    """An executor with one daemon thread: a call that never returns does not keep the process from ending.

    The thread has so much more ``niceness`` than the process, by which Linux gives it less of the processor.
    """

    def __init__(self, name: str = "database", niceness: int = 0) -> None:
        self._name = name
        self._niceness = niceness
        self._waiting: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._is_closed = False
        self._thread: Thread | None = None

    @property
    def num_waiting(self) -> int:
        """How many calls wait for the thread."""
        return self._waiting.qsize()

    def submit(self, call: Callable[..., _ResultT], /, *arguments: Any, **named: Any) -> "Future[_ResultT]":
        """Queue a call; see ``concurrent.futures.Executor``. Raises RuntimeError where the executor is closed."""
        if self._is_closed:
            raise RuntimeError("has been closed")
        if self._thread is None:
            self._thread = Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        future: Future[_ResultT] = Future()
        self._waiting.put((future, lambda: call(*arguments, **named)))
        return future

    def close(self, patience_s: float) -> None:
        """Accept no more calls, and wait up to ``patience_s`` for the queued ones."""
        self._is_closed = True
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(patience_s)

    def _work(self) -> None:
        if self._niceness and sys.platform == "linux":  # elsewhere it is a property of processes
            os.nice(self._niceness)
        while (taken := self._waiting.get()) is not None:
            future, call = taken
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:
                    future.set_exception(error)
                    del error
            del taken, future, call


class Worker:
    """One thread for pure work that would hold the event loop; calls are made in the order in which they come.

    Example::

        worker = Worker("switches")
        stages = await worker.run(partial(difference, held, desired), len(desired))
    """

    SMALL = 500
    """Work on fewer items is done at once: the way to the thread and back would take longer."""

    def __init__(self, name: str) -> None:
        self._executor = SerialExecutor(name, PLANNING_NICENESS)

    async def run(self, call: Callable[[], _ResultT], items: int) -> _ResultT:
        """Make a call that takes some microseconds for each of so many items."""
        if items < self.SMALL:
            return call()
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def close(self) -> None:
        """End the thread once it has nothing left to do."""
        self._executor.close(0.0)


async def in_slices(steps: Iterable[object], at_once: int) -> None:
    """Take all steps, and let others use the event loop after every ``at_once``."""
    for number, _ in enumerate(steps, start=1):
        if number % at_once == 0:
            await asyncio.sleep(0)


async def to_its_end(work: Coroutine[Any, Any, _ResultT]) -> _ResultT:
    """Do work to its end, also where the caller is cancelled meanwhile."""
    working = asyncio.ensure_future(work)
    # Retrieves the error where the caller has gone.
    working.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(working)


async def run_in_thread(call: Callable[[], _ResultT], name: str = "database", niceness: int = 0) -> _ResultT:
    """Make a blocking call in a daemon thread of its own, which goes on where the caller is cancelled."""
    executor = SerialExecutor(name, niceness)
    try:
        return await asyncio.get_running_loop().run_in_executor(executor, call)
    finally:
        executor.close(0.0)


async def run_planning(call: Callable[..., _ResultT], *arguments: Any) -> _ResultT:
    """Make a call that takes long, for a Plan, in a thread that leaves the processor to others."""
    return await run_in_thread(partial(call, *arguments), "planning", PLANNING_NICENESS)


class CancellableCall(Generic[_ResultT]):
    """A call that is made at most once, and never where it was cancelled before it began."""

    def __init__(self, call: Callable[[], _ResultT]) -> None:
        self._call = call
        self._taken = Lock()

    def __call__(self) -> _ResultT:
        """Make the call. Raises StoreError where it was made or cancelled before."""
        if not self._taken.acquire(blocking=False):
            raise StoreError("withdrawn")
        return self._call()

    def cancel(self) -> bool:
        """Cancel the call; returns False where it has begun."""
        return self._taken.acquire(blocking=False)
