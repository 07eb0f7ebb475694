"""A watchdog over the event loop: how late a timer is, how often it was too late, and what held the loop."""

import asyncio
import gc
import logging
import sys
import threading
import traceback
from collections.abc import Callable
from time import monotonic, process_time, thread_time
from types import FrameType
from typing import Any

from controller.events import EventKind, log_event
from controller.metrics import LOOP_LAG

_LOG = logging.getLogger(__name__)

PERIOD_S = 0.01
"""The period of the timer while the process works."""
IDLE_PERIOD_S = 0.1
"""Its period while the process is idle, as waking up takes time too."""
_IDLE_SHARE = 0.1
"""A process that takes less of a core than this is idle."""
STALL_S = 0.05
"""A longer delay of the timer is a stall."""
LONG_STALL_S = 0.25
"""A longer stall is logged."""
_LOOK_S = 0.1
"""How often the second thread looks whether the timer is overdue."""
_LOG_EVERY_S = 10.0
_FRAMES_NAMED = 4


class Watchdog:
    """Measures the lateness of a timer of PERIOD_S in the event loop that calls ``run``.

    A second thread looks at what the loop does while the timer is overdue.

    Attributes:
        worst_stall_s: The longest delay of the timer so far.
        stalls: How many delays were longer than STALL_S.
        long_stalls: How many of them were longer than LONG_STALL_S.
    """

    def __init__(self, now_s: Callable[[], float] = monotonic) -> None:
        self.worst_stall_s = 0.0
        self.stalls = 0
        self.long_stalls = 0
        self._now_s = now_s
        self._on_stall: Callable[[float], None] = _ignore
        self._due_s: float | None = None
        self._seen = ""
        self._logged_s: float | None = None
        self._not_logged = 0

    @property
    def overdue_s(self) -> float:
        """How long the timer is overdue by now; 0 where it is not."""
        return 0.0 if self._due_s is None else max(0.0, self._now_s() - self._due_s)

    def follow(self, on_stall: Callable[[float], None]) -> None:
        """Call ``on_stall`` after every stall, with its length in seconds."""
        self._on_stall = on_stall

    async def run(self) -> None:
        """Watch the running event loop until cancelled."""
        ended = threading.Event()
        looking = threading.Thread(target=self._look, args=(threading.get_ident(), ended), name="watchdog", daemon=True)
        collections = _Collections(self._now_s)
        gc.callbacks.append(collections)
        looking.start()
        period_s = PERIOD_S
        try:
            while True:
                start_s, process_s, loop_s = self._now_s(), process_time(), thread_time()
                self._due_s = start_s + period_s
                await asyncio.sleep(period_s)
                late_s = lateness_s(self.overdue_s, period_s, thread_time() - loop_s)
                self.note(late_s, collections.taken_s())
                is_idle = process_time() - process_s < _IDLE_SHARE * (self._now_s() - start_s)
                period_s = IDLE_PERIOD_S if is_idle else PERIOD_S
        finally:
            self._due_s = None
            gc.callbacks.remove(collections)
            ended.set()

    def note(self, late_s: float, collecting_s: float = 0.0) -> None:
        """Count a delay of the timer, of which garbage collection took ``collecting_s``."""
        seen, self._seen = self._seen, ""
        LOOP_LAG.observe(late_s)
        self.worst_stall_s = max(self.worst_stall_s, late_s)
        if late_s <= STALL_S:
            return
        self.stalls += 1
        self._on_stall(late_s)
        if late_s <= LONG_STALL_S:
            return
        self.long_stalls += 1
        now_s = self._now_s()
        if self._logged_s is not None and now_s < self._logged_s + _LOG_EVERY_S:
            self._not_logged += 1
            return
        collecting = f"; garbage collection took {collecting_s:.2f} s of it" if collecting_s > STALL_S else ""
        before = f"; {self._not_logged} more since the last such line" if self._not_logged else ""
        log_event(
            _LOG,
            logging.WARNING,
            EventKind.LOOP_LATE,
            "the event loop stood still for %.2f s%s%s%s",
            late_s,
            f", {seen}" if seen else "",
            collecting,
            before,
            late_s=round(late_s, 3),
        )
        self._logged_s, self._not_logged = now_s, 0

    def _look(self, loop_thread: int, ended: threading.Event) -> None:
        """Note what the loop does while the timer is overdue, until ended. Runs in a thread of its own."""
        while not ended.wait(_LOOK_S):
            if self.overdue_s > STALL_S:
                frame = sys._current_frames().get(loop_thread)
                if frame is not None and not self._seen:
                    self._seen = f"in {_place(frame)}"


def lateness_s(late_s: float, period_s: float, worked_s: float) -> float:
    """The lateness of a timer of PERIOD_S, by that of one of ``period_s``.

    What held the loop may have begun long before the timer was due: as long as the loop has worked meanwhile.
    """
    return late_s if late_s < PERIOD_S else max(late_s, min(late_s + period_s - PERIOD_S, worked_s))


class _Collections:
    """How long garbage collections have taken; a callback of ``gc``."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._start_s = 0.0
        self._taken_s = 0.0

    def __call__(self, phase: str, _: dict[str, Any]) -> None:
        if phase == "start":
            self._start_s = self._now_s()
        else:
            self._taken_s += self._now_s() - self._start_s

    def taken_s(self) -> float:
        """The time they have taken since the last call of this method."""
        taken_s, self._taken_s = self._taken_s, 0.0
        return taken_s


def _place(frame: FrameType) -> str:
    """The innermost functions of a stack."""
    stack = traceback.extract_stack(frame)[-_FRAMES_NAMED:]
    return " < ".join(f"{each.name} ({each.filename.rpartition('/')[2]}:{each.lineno})" for each in reversed(stack))


def _ignore(_: float) -> None:
    pass
