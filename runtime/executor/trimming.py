"""Gives memory of the arena back that nobody has used for a while, a little at a time."""

import time

from runtime.executor.loop import Loop
from runtime.transport.arena import Arena

PERIOD_S = 10.0
"""Memory that was free for one to two periods is given back."""
_STEP_BYTES = 1 << 23
_STEP_S = 0.005
"""The loop does other things between steps, each of which takes it a few milliseconds."""


class Trimming:
    """Looks at an arena once in a period, from now on."""

    def __init__(self, loop: Loop, arena: Arena, period_s: float = PERIOD_S) -> None:
        self._loop = loop
        self._arena = arena
        self._period_s = period_s
        self._wait()

    def _wait(self) -> None:
        self._loop.at(time.perf_counter() + self._period_s, self._age)

    def _age(self) -> None:
        self._arena.age()
        self._wait()
        self._step()

    def _step(self) -> None:
        if self._arena.give_back(_STEP_BYTES):
            self._loop.at(time.perf_counter() + _STEP_S, self._step)
