"""Threads that run the parts of a fabric, one for each core but the caller's own.

They stay in machine code between runs, where they wait for the next one; a thread returns to Python only to be given
other arrays, after some have grown. A forked process, which has none of the threads, starts its own.
"""

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, cast

from numpy.typing import NDArray

from emulator.engine.border import ORDERS, RUNS
from emulator.engine.state import State
from emulator.engine.windows import order
from emulator.native.callable import kind_of


class PartThreads:
    """Runs the states of a fabric's parts, all at once. ``run_part`` is the event loop of the fabric's program."""

    def __init__(self, run_part: Callable[..., Any]) -> None:
        self._run_part = run_part
        self._arrays: tuple[Any, ...] = ()
        self._threads: list[threading.Thread] = []
        self._dismissal: Callable[[], object] | None = None

    @property
    def thread_ids(self) -> tuple[int, ...]:
        """The kernel's numbers of the threads; empty before the first run."""
        return tuple(thread.native_id for thread in self._threads if thread.native_id is not None)

    def run(self, states: Sequence[State], memory: NDArray[Any], until_ps: int) -> None:
        """Advance all parts as ``run_part`` does."""
        arrays = tuple(array for state in states for array in state)
        is_same = len(arrays) + 1 == len(self._arrays) and all(
            old is new for old, new in zip(self._arrays, (*arrays, memory), strict=True)
        )
        if not is_same or not all(thread.is_alive() for thread in self._threads):
            self._replace(states, memory)
            self._arrays = (*arrays, memory)
        self._run_part(states[0], memory, until_ps)

    def _replace(self, states: Sequence[State], memory: NDArray[Any]) -> None:
        if self._dismissal is not None:
            self._dismissal()
        # A thread that failed to compile would be waited for without end.
        cast(Any, self._run_part).compile(tuple(map(kind_of, (states[0], memory, 0))))
        meeting = states[0].meeting
        self._threads = []
        for state in states[1:]:
            state.border[RUNS] = meeting[ORDERS]
            self._threads.append(threading.Thread(target=self._run_part, args=(state, memory, 0), daemon=True))
        for thread in self._threads:
            thread.start()
        self._dismissal = weakref.finalize(self, _dismiss, meeting, self._threads)


def _dismiss(meeting: NDArray[Any], threads: Sequence[threading.Thread]) -> None:
    order(meeting, 0, 1)
    for thread in threads:
        thread.join()
