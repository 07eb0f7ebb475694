"""The thread of a device, for computations that take long or wait for other shards.

To hand a computation over and back takes two wake-ups. So the thread gets what comes next while it still computes: also
computations whose missing inputs are results of those that it has, which it passes on itself, from one execution to the
next as well. The loop hears at once of results that leave the device, and of the others together: while it takes them,
the thread waits for the interpreter.
"""

import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

from runtime.executor.computations import Computation, Done
from runtime.executor.loop import Loop

_MOST_AHEAD = 64
_MOST_UNTOLD = 32
"""Of so many results that stay on the device the loop may not have heard."""

Ended = tuple[Computation, Done, float]


class Worker:
    """Runs what it is given, one after the other, in a thread that begins with the first.

    Calls back in turns of the loop: ``on_end`` for each computation in order, ``on_unrun`` with those that it does not
    run because one before them failed.
    """

    def __init__(
        self,
        number: int,
        loop: Loop,
        on_end: Callable[[Computation, Done, float], None],
        on_unrun: Callable[[list[Computation]], None],
    ) -> None:
        self._name = f"device-{number}"
        self._loop = loop
        self._on_end = on_end
        self._on_unrun = on_unrun
        self._todo: deque[Computation] = deque()
        self._ended: deque[Ended] = deque()
        self._given: dict[tuple[int, int, int], Computation] = {}
        self._wake: SimpleQueue[None] | None = None
        self._is_awake = False

    @property
    def given(self) -> int:
        """Computations that it was given and that have not ended, as far as the loop knows."""
        return len(self._given)

    def given_of(self, is_meant: Callable[[Computation], bool]) -> list[Computation]:
        """Return those of the computations that it was given and that have not ended, as far as the loop knows."""
        return [each for each in self._given.values() if is_meant(each)]

    def can_follow(self, computation: Computation) -> bool:
        """Return whether a computation lacks only what this thread makes before it."""
        if computation.failure is not None or computation.function.is_timer or computation.function.is_guarded:
            return False
        return len(self._given) < _MOST_AHEAD and len(self._awaited(computation)) == computation.missing

    def give(self, computation: Computation) -> None:
        """Run a computation, after those that were given before."""
        computation.awaited = self._awaited(computation)
        self._given[_key(computation)] = computation
        self._todo.append(computation)
        if self._wake is None:
            self._wake = SimpleQueue()
            Thread(target=self._work, args=(self._wake,), name=self._name, daemon=True).start()
        if not self._is_awake:
            self._is_awake = True
            self._loop.busy_threads += 1
            self._wake.put(None)

    def take_back(self) -> list[Computation]:
        """Return what has not begun; it is not run."""
        back = []
        while self._todo:
            try:
                back.append(self._todo.pop())
            except IndexError:
                break
        for computation in back:
            del self._given[_key(computation)]
        return back[::-1]

    def _awaited(self, computation: Computation) -> list[tuple[int, Computation, int]]:
        """Return the missing inputs that are made here: each position with its maker and which of its outputs."""
        if computation.missing == 0:
            return []
        found = []
        for position, node, shard, output, execution in computation.feeds:
            maker = self._given.get((computation.execution if execution is None else execution, node, shard))
            if maker is not None and computation.inputs[position] is None:
                found.append((position, maker, output))
        return found

    def _work(self, wake: "SimpleQueue[None]") -> None:
        while True:
            wake.get()
            self._run_all()  # keeps nothing of what it ran while this thread sleeps
            self._loop.take_turn(self._sleep)

    def _run_all(self) -> None:
        has_failed = is_owed = False
        while not has_failed:
            try:
                computation = self._todo.popleft()
            except IndexError:
                break
            if is_owed:  # otherwise the loop hears of it as this thread goes to sleep
                is_owed = False
                self._loop.post(self._end_all)
            for position, maker, output in computation.awaited:
                assert maker.done is not None
                assert maker.done.outputs is not None
                computation.inputs[position] = maker.done.outputs[output]
            computation.awaited = []
            done = computation.done = computation.function.run(computation.inputs, computation.group)
            has_failed = done.outputs is None
            self._ended.append((computation, done, time.perf_counter()))
            is_owed = computation.is_told or len(self._ended) >= _MOST_UNTOLD

    def _end_all(self) -> None:
        while self._ended:
            computation, done, end_s = self._ended.popleft()
            del self._given[_key(computation)]
            self._on_end(computation, done, end_s)

    def _sleep(self) -> None:
        """The thread waits for more: what came too late for it, or follows a failure, goes on from here.

        What ends may start more. The thread must not begin with that: what follows a failure stands before it.
        """
        self._end_all()
        left = self.take_back()
        self._is_awake = False
        self._loop.busy_threads -= 1
        self._on_unrun(left)


def _key(computation: Computation) -> tuple[int, int, int]:
    return computation.execution, computation.node, computation.shard
