"""Runs that wait for memory of this host, so that nothing they send is needed yet.

The server hears of a run once all that it was granted here has waited for some time, and as soon as it goes on.
"""

import time
from collections.abc import Callable
from functools import partial

from runtime import messages
from runtime.executor.dataflow import Dataflow
from runtime.executor.loop import Loop
from runtime.executor.reserved import Held

STALLED_S = 1e-2
"""What waits for less time is not told."""
_LOOKS_EVERY_S = 0.1
"""At most, of a run that does not stall."""


class Stalls:
    """Watches the runs of a host. ``tell`` sends a message to the server."""

    def __init__(self, loop: Loop, dataflow: Dataflow, tell: Callable[[object], None]) -> None:
        self._loop = loop
        self._dataflow = dataflow
        self._tell = tell
        self._is_told: dict[int, bool] = {}
        """By run of which something waits, whether the server takes it to be stalled."""

    def watch(self, held: Held) -> None:
        """Watch a run, of which this reservation waits."""
        run = held.execution
        held.waiting.append(partial(self.go_on, run))
        if run not in self._is_told:
            self._is_told = {each: told for each, told in self._is_told.items() if self._dataflow.is_running(each)}
            self._is_told[run] = False
            self._look_later(run, STALLED_S)

    def go_on(self, run: int) -> None:
        """Take note that something of a run has memory."""
        if self._is_told.get(run):
            self._is_told[run] = False
            self._tell(messages.RunStalled(run, False))
            self._look_later(run, STALLED_S)

    def _look_later(self, run: int, after_s: float) -> None:
        self._loop.at(time.perf_counter() + after_s, partial(self._look, run, after_s))

    def _look(self, run: int, after_s: float) -> None:
        if not self._dataflow.is_waiting(run):
            self._is_told.pop(run, None)
        elif self._dataflow.is_stalled(run):
            self._is_told[run] = True
            self._tell(messages.RunStalled(run, True))
        else:
            self._look_later(run, min(2 * after_s, _LOOKS_EVERY_S))
