"""Devices of a host: each runs one computation at a time, strictly in the order in which they were enqueued."""

import time
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple

from runtime.executor.computations import Computation, Done
from runtime.executor.loop import Loop

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

    A timer starts when the one before it ended, or when its inputs came, whichever is later: as on an accelerator, what
    the host does meanwhile costs it nothing.
    """

    def __init__(self, number: int, loop: Loop, on_done: Callable[[Computation, Done, float], None]) -> None:
        self.number = number
        self._loop = loop
        self._on_done = on_done
        self._queue: deque[Computation] = deque()
        self._running: Computation | None = None
        self._is_advancing = False
        self._free_s = 0.0
        self._work: SimpleQueue[Computation] | None = None
        self.busy_s = 0.0
        self.ran: deque[Ran] = deque(maxlen=_KEPT)

    @property
    def queued(self) -> int:
        """Computations that are enqueued and have not ended."""
        return len(self._queue) + (self._running is not None)

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
            while self._running is None and self._queue and self._queue[0].missing == 0:
                self._start(self._queue.popleft())
        finally:
            self._is_advancing = False

    def _start(self, computation: Computation) -> None:
        self._running = computation
        computation.is_running = True
        function = computation.function
        if computation.failure is not None:
            self._end(computation, Done(None, computation.failure, 0.0))
        elif function.is_skipped(computation.inputs):
            self._end(computation, function.run(computation.inputs))
        elif function.is_timer:
            self._free_s = max(self._free_s, computation.ready_s) + function.seconds
            self._loop.at(self._free_s, lambda: self._end_timer(computation))
        elif function.seconds < _INLINE_S and not function.is_collective:
            self._end(computation, function.run(computation.inputs))
        else:
            self._hand_over(computation)

    def drop(self, is_dropped: Callable[[Computation], bool]) -> list[Computation]:
        """Take computations out of the queue, and return them. Of those that run, only a timer can be stopped."""
        dropped = [each for each in self._queue if is_dropped(each)]
        self._queue = deque(each for each in self._queue if not is_dropped(each))
        running = self._running
        if running is not None and running.function.is_timer and is_dropped(running):
            dropped.append(running)
            self._running = None
            self._free_s = time.perf_counter()
        self.advance()
        return dropped

    def _end_timer(self, computation: Computation) -> None:
        if self._running is computation:
            self._end(computation, computation.function.run(computation.inputs))
            self.advance()

    def _end(self, computation: Computation, done: Done) -> None:
        self._running = None
        self.busy_s += done.duration_s
        end_s = self._free_s if computation.function.is_timer else time.perf_counter()
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

    def _hand_over(self, computation: Computation) -> None:
        if self._work is None:
            self._work = SimpleQueue()
            Thread(target=self._work_off, args=(self._work,), name=f"device-{self.number}", daemon=True).start()
        self._work.put(computation)

    def _work_off(self, work: "SimpleQueue[Computation]") -> None:
        while True:
            computation = work.get()
            done = computation.function.run(computation.inputs, computation.group)
            self._loop.post(partial(self._end_work, computation, done))
            del computation, done  # else their arrays would live until the next one comes

    def _end_work(self, computation: Computation, done: Done) -> None:
        self._free_s = time.perf_counter()
        self._end(computation, done)
        self.advance()
