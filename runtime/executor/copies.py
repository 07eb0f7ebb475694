"""Copies of large arrays, in threads of their own, so that the loop goes on meanwhile.

NumPy lets go of the interpreter while it copies. One core does not get all that the memory can give, and two do. So a
large array is copied in parts, and a second thread helps the first one. Where others need its core it is in their way,
and gains nothing: it sits out for a while. What is small is copied at once: to hand it over takes as long. But where
much of that comes in one turn of the loop, the rest is handed over as well.
"""

import os
import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

import numpy as np

from runtime.executor.loop import Loop

Array = np.ndarray[Any, Any]

AT_ONCE_BYTES = 1 << 20
PART_BYTES = 1 << 22
_OF_A_TURN_BYTES = 1 << 23
"""How much the loop may copy itself in one turn: a millisecond or two."""
_SITS_OUT_S = 0.1
_HELD_UP = 0.5
"""Others need the core if they have had it for so much of the time that the thread had it itself."""
_REMEMBERED = 0.95
"""How much of that counts still, one part later."""
_TRUSTED_S = 0.01
"""The thread begins as if it had run for so long undisturbed: wherever it wakes up, somebody is there at first."""


class Copies:
    """Copies arrays. Call it in a turn of the loop."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._turn = self._copied_bytes = 0
        self._todo: SimpleQueue[_Part] = SimpleQueue()
        self._offers: SimpleQueue[None] = SimpleQueue()
        self._spare = Spare()
        self._has_threads = False

    def copy(self, to: Array, source: Array, on_done: Callable[[], None]) -> None:
        """Copy an array, and call back in a turn of the loop; perhaps before this returns. Neither may change before.

        Copies may end in another order than they began.
        """
        if self._turn != self._loop.turns:
            self._turn, self._copied_bytes = self._loop.turns, 0
        if to.nbytes <= AT_ONCE_BYTES and self._copied_bytes + to.nbytes <= _OF_A_TURN_BYTES:
            self._copied_bytes += to.nbytes
            np.copyto(to, source)
            on_done()
            return
        if not self._has_threads:
            self._has_threads = True
            cores = len(os.sched_getaffinity(0))
            for name, work in (("copies", self._work), ("copies-help", self._help))[:cores]:
                Thread(target=work, name=name, daemon=True).start()
        self._loop.busy_threads += 1
        parts = list(parts_of(to))
        copy = _Copy(self._loop, len(parts), on_done)
        for part in parts:
            self._todo.put(_Part(copy, to[part], source[part]))
        if len(parts) > 1 and self._spare.is_there:
            self._offers.put(None)

    def _work(self) -> None:
        while True:
            self._todo.get().run()

    def _help(self) -> None:
        while True:
            self._offers.get()
            while self._spare.is_there:
                try:
                    part = self._todo.get_nowait()
                except Empty:
                    break
                self._spare.take(*part.run())
                del part


class Spare:
    """Says whether there is a core to spare for a thread, from how it fared."""

    def __init__(self) -> None:
        self._until_s = 0.0
        self._ran_s, self._held_up_s = _TRUSTED_S, 0.0

    @property
    def is_there(self) -> bool:
        """Whether the thread may run."""
        return time.perf_counter() >= self._until_s

    def take(self, ran_s: float, held_up_s: float) -> None:
        """Note for how long the thread has had a core, and for how long others had it meanwhile."""
        self._ran_s = self._ran_s * _REMEMBERED + ran_s
        self._held_up_s = self._held_up_s * _REMEMBERED + held_up_s
        if self._held_up_s > _HELD_UP * self._ran_s:
            self._ran_s, self._held_up_s = _TRUSTED_S, 0.0
            self._until_s = time.perf_counter() + _SITS_OUT_S


class _Copy:
    """A copy for the threads, of which so many parts are left; when it has ended, no thread keeps any of it."""

    def __init__(self, loop: Loop, left: int, on_done: Callable[[], None]) -> None:
        self._loop = loop
        self._left = left
        self._lock = Lock()
        self._on_done: Callable[[], None] | None = on_done

    def end_part(self) -> None:
        """Note that one more part was copied."""
        with self._lock:
            self._left -= 1
            is_whole = self._left == 0
        if is_whole:
            self._loop.take_turn(self._end)

    def _end(self) -> None:
        assert self._on_done is not None
        on_done, self._on_done = self._on_done, None
        self._loop.busy_threads -= 1
        on_done()


class _Part:
    """A part of a copy."""

    def __init__(self, copy: _Copy, to: Array, source: Array) -> None:
        self._copy = copy
        self._arrays: tuple[Array, Array] | None = (to, source)

    def run(self) -> tuple[float, float]:
        """Copy it; return for how long this thread has had a core, and for how long others had it meanwhile."""
        assert self._arrays is not None
        began_s, began_running_s = time.perf_counter(), time.thread_time()
        np.copyto(*self._arrays)
        ran_s, taken_s = time.thread_time() - began_running_s, time.perf_counter() - began_s
        self._arrays = None
        self._copy.end_part()
        return ran_s, taken_s - ran_s


def parts_of(array: Array) -> Iterator[Any]:
    """Yield indices that cut an array into parts of about ``PART_BYTES``, along the first axis that can be cut."""
    axis = next((number for number, size in enumerate(array.shape) if size > 1), None)
    if axis is None:
        yield ...
        return
    size = array.shape[axis]
    step = max(1, PART_BYTES * size // max(1, array.nbytes))
    for begin in range(0, size, step):
        yield (*[slice(None)] * axis, slice(begin, begin + step))
