"""Copies of large arrays, in a thread of its own, so that the loop goes on meanwhile.

NumPy lets go of the interpreter while it copies. One thread is enough: it reads and writes about as fast as the memory
allows. What is small is copied at once: to hand it over takes as long. But where much of that comes in one turn of the
loop, the rest is handed over as well.
"""

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np

from runtime.executor.loop import Loop

Array = np.ndarray[Any, Any]

AT_ONCE_BYTES = 1 << 20
_OF_A_TURN_BYTES = 1 << 23
"""How much the loop may copy itself in one turn: a millisecond or two."""


class Copies:
    """Copies arrays. Call it in the loop's thread."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._turn = self._copied_bytes = 0
        self._todo: SimpleQueue[_Copy] | None = None

    def copy(self, to: Array, source: Array, on_done: Callable[[], None]) -> None:
        """Copy an array, and call back in the loop's thread; perhaps before this returns. Neither may change before."""
        if self._turn != self._loop.turns:
            self._turn, self._copied_bytes = self._loop.turns, 0
        if to.nbytes <= AT_ONCE_BYTES and self._copied_bytes + to.nbytes <= _OF_A_TURN_BYTES:
            self._copied_bytes += to.nbytes
            np.copyto(to, source)
            on_done()
            return
        if self._todo is None:
            self._todo = SimpleQueue()
            Thread(target=self._work, args=(self._todo,), name="copies", daemon=True).start()
        self._loop.busy_threads += 1
        self._todo.put(_Copy(self._loop, to, source, on_done))

    def _work(self, todo: "SimpleQueue[_Copy]") -> None:
        while True:
            todo.get().run()


class _Copy:
    """A copy for the thread; once it has ended, the thread keeps neither array nor what was called back."""

    def __init__(self, loop: Loop, to: Array, source: Array, on_done: Callable[[], None]) -> None:
        self._loop = loop
        self._job: tuple[Array, Array, Callable[[], None]] | None = (to, source, on_done)

    def run(self) -> None:
        assert self._job is not None
        np.copyto(self._job[0], self._job[1])
        self._loop.post(self._end)

    def _end(self) -> None:
        assert self._job is not None
        on_done, self._job = self._job[2], None
        self._loop.busy_threads -= 1
        on_done()
