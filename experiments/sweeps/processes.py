"""Work on the cores of this machine, in as many processes, each of which does one item at a time.

``on_processes`` and ``ray_cluster.on_ray`` have one form: they apply a function, which every process must be able to
import, to all items, and yield each item with its answer as soon as there is one, in any order. Closing the generator
early ends what it has started.
"""

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import ModuleType
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")

_STOP_TIMEOUT_S = 15.0
"""How long a process may take to end what it has started; a run's controller takes up to 10 s."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The answer of an item that failed, with the reason."""

    reason: str


Answers = Generator[tuple[T, R | Failure], None, None]


def attempt(work: Callable[[T], R], item: T) -> R | Failure:
    """Do one item; any exception becomes a Failure, so that the other items are done all the same."""
    try:
        return work(item)
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}")


def num_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def on_processes(work: Callable[[T], R], items: Sequence[T], workers: int) -> Answers[T, R]:
    """Do the work in so many processes.

    A process that dies, killed for its memory for example, fails only its own item. The standard library's pools would
    lose every item under way.
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
    """A process and the item it works on."""

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
        with suppress(OSError):  # a dead process never answers, which ``answer`` reports
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
        """Send SIGTERM, whatever it does now."""
        self._process.terminate()

    def join(self) -> None:
        self._process.join(_STOP_TIMEOUT_S)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
        self.connection.close()


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the main module from the processes that start, which would run it again.

    They need nothing of it, and so a script needs no ``if __name__ == "__main__"`` to start a sweep.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _serve(work: Callable[[Any], Any], connection: Connection) -> None:
    """Answer items until the other side closes the connection."""
    # A process group of its own: an interrupt at the terminal reaches only the sweep, which ends its processes itself.
    os.setpgrp()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        while True:
            connection.send(attempt(work, connection.recv()))
    except (EOFError, BrokenPipeError):
        return
