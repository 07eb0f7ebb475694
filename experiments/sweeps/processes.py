"""Work on the cores of this machine: as many processes, each with one item at a time."""

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import ModuleType
from typing import Any, Generic, cast

from experiments.sweeps.execution import Answers, Failure, R, T, attempt

_END_S = 15.0
"""So long a process may take to end what it has started; a controller's takes up to 10 s."""


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def on_processes(work: Callable[[T], R], items: Sequence[T], workers: int) -> Answers[T, R]:
    """Do the work in so many processes.

    A process that ends without an answer, killed for its memory say, costs its own item only. Pools of the standard
    library would lose all that run.
    """
    waiting = deque(items)
    started: list[_Worker[T, R]] = []
    busy: dict[Connection, _Worker[T, R]] = {}

    def give(worker: _Worker[T, R] | None) -> None:
        if waiting:
            if worker is None:
                started.append(worker := _Worker(work))
            worker.give(waiting.popleft())
            busy[worker.connection] = worker

    try:
        for _ in range(min(workers, len(items))):
            give(None)
        while busy:
            for connection in wait(list(busy)):
                worker = busy.pop(cast(Connection, connection))
                item, answer = worker.item, worker.answer()
                give(worker if worker.is_alive else None)
                yield item, answer
    finally:
        for worker in started:
            worker.stop()
        for worker in started:
            worker.join()


class _Worker(Generic[T, R]):
    """A process and the item it has."""

    item: T

    def __init__(self, work: Callable[[T], R]) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.is_alive = True
        self._process: SpawnProcess = context.Process(target=_serve, args=(work, theirs), daemon=True)
        with _without_main():
            self._process.start()
        theirs.close()

    def give(self, item: T) -> None:
        self.item = item
        with suppress(OSError):  # one that has ended has no answer
            self.connection.send(item)

    def answer(self) -> R | Failure:
        try:
            answer: R | Failure = self.connection.recv()
        except (EOFError, OSError):
            self.is_alive = False
            self._process.join()
            return Failure(f"its process ended with status {self._process.exitcode}")
        return answer

    def stop(self) -> None:
        """Ask it to end now, whatever it does."""
        self._process.terminate()

    def join(self) -> None:
        self._process.join(_END_S)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
        self.connection.close()


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the program that runs from the processes that start, which would run it once more.

    They need nothing of it, and so a script needs no ``if __name__ == "__main__"`` to start a sweep.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _serve(work: Callable[[Any], Any], connection: Connection) -> None:
    """Answer until nobody asks any more."""
    # In a group of its own: what the terminal interrupts is the sweep, which ends its processes itself.
    os.setpgrp()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        while True:
            connection.send(attempt(work, connection.recv()))
    except (EOFError, BrokenPipeError):
        return
