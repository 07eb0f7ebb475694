"""Copies of large arrays, in threads of their own, so that the loop goes on meanwhile.

NumPy lets go of the interpreter while it copies. What is small is copied at once: to hand it over takes as long. But
where much of that comes in one turn of the loop, the rest is handed over as well.
"""

import os
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

import numpy as np

from runtime.executor.loop import Loop

Array = np.ndarray[Any, Any]

_AT_ONCE_BYTES = 1 << 20
_OF_A_TURN_BYTES = 1 << 23
"""How much the loop may copy itself in one turn: a millisecond or two."""
_PART_BYTES = 1 << 22
_THREADS = 2
"""One core reads and writes less than the memory gives."""


class Copies:
    """Copies arrays. Call it in the loop's thread."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._copied_bytes = 0
        self._parts: SimpleQueue[tuple[_Copy, Array, Array]] = SimpleQueue()
        self._threads = 0

    def copy(self, to: Array, source: Array, on_done: Callable[[], None]) -> None:
        """Copy an array, and call back in the loop's thread; perhaps before this returns. Neither may change before."""
        if to.nbytes <= _AT_ONCE_BYTES and self._copied_bytes + to.nbytes <= _OF_A_TURN_BYTES:
            if not self._copied_bytes:
                self._loop.soon(self._end_turn)
            self._copied_bytes += to.nbytes
            np.copyto(to, source)
            on_done()
            return
        parts = list(_parts(to, source))
        copy = _Copy(self._loop, len(parts), on_done)
        self._loop.busy_threads += 1
        while self._threads < min(_THREADS, os.cpu_count() or 1, len(parts)):
            self._threads += 1
            Thread(target=self._work, name=f"copies-{self._threads}", daemon=True).start()
        for part in parts:
            self._parts.put((copy, *part))

    def _end_turn(self) -> None:
        self._copied_bytes = 0

    def _work(self) -> None:
        while True:
            _run(*self._parts.get())  # keeps nothing of what it copied while it waits


class _Copy:
    """A copy that has parts left; the thread that ends the last one tells the loop."""

    def __init__(self, loop: Loop, parts: int, on_done: Callable[[], None]) -> None:
        self._loop = loop
        self._left = parts
        self._lock = Lock()
        self._on_done = on_done

    def end_part(self) -> None:
        with self._lock:
            self._left -= 1
            is_done = self._left == 0
        if is_done:
            self._loop.post(self._end)

    def _end(self) -> None:
        self._loop.busy_threads -= 1
        self._on_done()


def _run(copy: _Copy, to: Array, source: Array) -> None:
    np.copyto(to, source)
    del to, source
    copy.end_part()


def _parts(to: Array, source: Array) -> Iterator[tuple[Array, Array]]:
    """Yield parts that can be copied side by side: slices along the first axis that can be cut."""
    axis = next((axis for axis, size in enumerate(to.shape) if size > 1), None)
    number = min(_THREADS, to.nbytes // _PART_BYTES)
    if axis is None or number < 2:
        yield to, source
        return
    size = to.shape[axis]
    for part in range(number):
        rows = (slice(None),) * axis + (slice(part * size // number, (part + 1) * size // number),)
        yield to[rows], source[rows]
