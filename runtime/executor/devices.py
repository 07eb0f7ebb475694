"""Devices of a host: each runs one computation at a time, strictly in the order in which they were enqueued."""

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from runtime.executor.computations import Computation, Done
from runtime.executor.loop import Loop
from runtime.executor.workers import Worker
from runtime.store.buffers import HOST

_INLINE_S = 100e-6
"""What is shorter than this runs on the loop's own thread: handing it to another and back would take as long."""


_KEPT = 20_000
"""Computations that a device remembers for traces."""


class Ran(NamedTuple):
    """A computation that a device has run. Times are those of the machine's monotonic clock."""

    name: str
    client: int
    execution: int
    device: int
    start_s: float
    end_s: float


class Device:
    """A device. What is at the head of its queue runs as soon as its inputs are there.

    A timer starts when the one before it ended, or when its inputs were there, whichever is later: as on an
    accelerator, what the host does meanwhile costs it nothing. What takes long, or waits for other shards, runs in a
    thread (``Worker``). So does all that runs on the CPUs of the host, the device HOST: it may wait for files.
    """

    def __init__(self, number: int, loop: Loop, on_done: Callable[[Computation, Done, float], None]) -> None:
        self.number = number
        self._loop = loop
        self._on_done = on_done
        self._queue: deque[Computation] = deque()
        self._running: Computation | None = None
        self._is_advancing = False
        self._free_s = 0.0
        self._worker = Worker(number, loop, self._end, self._take_back)
        self.busy_s = 0.0
        self.ran: deque[Ran] = deque(maxlen=_KEPT)

    @property
    def queued(self) -> int:
        """Computations that are enqueued and have not ended."""
        return len(self._queue) + (self._running is not None) + self._worker.given

    def enqueue(self, computation: Computation) -> None:
        """Put a computation at the end of the queue."""
        computation.is_enqueued = True
        self._queue.append(computation)
        self.advance()

    def advance(self) -> None:
        """Start what can start. Call it when inputs of an enqueued computation have come."""
        if self._is_advancing:
            return  # called by what has just ended; the loop below goes on
        self._is_advancing = True
        try:
            while self._running is None and self._queue and self._can_start(self._queue[0]):
                self._start(self._queue.popleft())
        finally:
            self._is_advancing = False

    def _can_start(self, computation: Computation) -> bool:
        if self._worker.given:
            return self._worker.can_follow(computation)
        return computation.missing == 0

    def _start(self, computation: Computation) -> None:
        computation.is_running = True
        function = computation.function
        if self._worker.given:
            self._worker.give(computation)
        elif computation.failure is not None:
            self._end(computation, Done(None, computation.failure, 0.0), time.perf_counter())
        elif function.is_skipped(computation.inputs):
            self._end(computation, function.run(computation.inputs), time.perf_counter())
        elif function.is_timer:
            self._running = computation
            self._free_s = max(self._free_s, computation.ready_s) + function.seconds
            self._loop.at(self._free_s, lambda: self._end_timer(computation))
        elif function.seconds < _INLINE_S and not computation.waits_for_shards and self.number != HOST:
            self._end(computation, function.run(computation.inputs, computation.group), time.perf_counter())
        else:
            self._worker.give(computation)

    def drop(self, is_dropped: Callable[[Computation], bool]) -> list[Computation]:
        """Take computations out of the queue, and return them. Of those that run, only a timer can be stopped."""
        self._put_back(self._worker.take_back())
        dropped = [each for each in self._queue if is_dropped(each)]
        self._queue = deque(each for each in self._queue if not is_dropped(each))
        running = self._running
        if running is not None and is_dropped(running):
            dropped.append(running)
            self._running = None
            self._free_s = time.perf_counter()
        self.advance()
        return dropped

    def in_thread(self, is_meant: Callable[[Computation], bool]) -> list[Computation]:
        """Return those of the computations that the thread of the device runs, which nobody can stop."""
        return self._worker.given_of(is_meant)

    def _take_back(self, computations: list[Computation]) -> None:
        self._put_back(computations)
        self.advance()

    def _put_back(self, computations: list[Computation]) -> None:
        """Put computations that the worker has not begun at the head of the queue."""
        for computation in computations:
            computation.is_running = False
        self._queue.extendleft(reversed(computations))

    def _end_timer(self, computation: Computation) -> None:
        if self._running is computation:
            self._running = None
            self._end(computation, computation.function.run(computation.inputs), self._free_s)
            self.advance()

    def _end(self, computation: Computation, done: Done, end_s: float) -> None:
        self.busy_s += done.duration_s
        self._free_s = max(self._free_s, end_s)
        self.ran.append(
            Ran(
                computation.function.name,
                computation.client,
                computation.execution,
                self.number,
                end_s - done.duration_s,
                end_s,
            )
        )
        self._on_done(computation, done, end_s)
