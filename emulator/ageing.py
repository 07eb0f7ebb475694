"""Idle entries: which entries of tables nobody has hit for so long that their controller wants to know.

Compiled code writes the time of each hit into the entry's slot, in tables whose entries age, and nothing else. The
timers are Python's: the fabric's time stops at the earliest one, which looks at the entry and is set again.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count

from emulator.engine.events import NEVER_PS
from emulator.entries import EntryKey

SHORTEST_TIMEOUT_PS = 1_000_000_000
"""A shorter timeout counts as this one, a millisecond, so that timers leave time for packets."""

MOST_AT_ONCE = 10_000
MOST_WAITING = 100_000
"""Idle entries of a switch that wait to be told; more are not told."""

_FEW = 64


@dataclass(frozen=True, slots=True)
class IdleEntry:
    """An entry that nobody has hit for its timeout, at ``time_ps``."""

    table: str
    key: EntryKey
    time_ps: int


@dataclass(eq=False, slots=True)
class _Timer:
    """``turn`` is the number of its place in the queue, 0 once it has been stopped."""

    timeout_ps: int
    last_hit_ps: Callable[[], int]
    tell: Callable[[int], None]
    told_ps: int = -1
    looks_ps: int = NEVER_PS
    turn: int = 0

    @property
    def due_ps(self) -> int:
        """Moment at which the entry has been idle for its timeout since it was hit, or told idle."""
        return max(self.last_hit_ps(), self.told_ps) + self.timeout_ps


class IdleTimers:
    """The timers of a fabric; ``now_ps`` gives its time."""

    def __init__(self, now_ps: Callable[[], int] = lambda: 0) -> None:
        self.now_ps = now_ps
        self._queue: list[tuple[int, int, _Timer]] = []
        self._turns = count(1)
        self._running = 0

    @property
    def next_ps(self) -> int:
        """Time of the next timer, which may find that its entry is not idle; NEVER_PS if there is none."""
        while self._queue and self._queue[0][2].turn != self._queue[0][1]:
            heappop(self._queue)
        return self._queue[0][0] if self._queue else NEVER_PS

    def start(self, timeout_ps: int, last_hit_ps: Callable[[], int], tell: Callable[[int], None]) -> _Timer:
        """Call ``tell`` with the time whenever an entry has been idle for ``timeout_ps``, until ``stop``."""
        timer = _Timer(max(timeout_ps, SHORTEST_TIMEOUT_PS), last_hit_ps, tell)
        self._running += 1
        self._look_at(timer, timer.due_ps)
        return timer

    def change(self, timer: _Timer, timeout_ps: int) -> None:
        """Give a timer another timeout."""
        timer.timeout_ps = max(timeout_ps, SHORTEST_TIMEOUT_PS)
        # A later moment is found out when the earlier one has come.
        if timer.due_ps < timer.looks_ps:
            self._look_at(timer, timer.due_ps)

    def stop(self, timer: _Timer) -> None:
        """End a timer."""
        timer.turn = 0
        self._running -= 1

    def run(self, now_ps: int) -> None:
        """Tell all entries that are idle now."""
        while self.next_ps <= now_ps:
            _, _, timer = heappop(self._queue)
            if timer.due_ps <= now_ps:
                timer.told_ps = now_ps
                timer.tell(now_ps)
            self._look_at(timer, timer.due_ps)

    def _look_at(self, timer: _Timer, time_ps: int) -> None:
        timer.turn, timer.looks_ps = next(self._turns), time_ps
        heappush(self._queue, (time_ps, timer.turn, timer))
        if len(self._queue) > 2 * self._running + _FEW:
            self._queue = [place for place in self._queue if place[2].turn == place[1]]
            heapify(self._queue)


class Ageing:
    """The entries of one switch that have a timeout, and those that have been told idle."""

    def __init__(self, timers: IdleTimers, last_hit_ps: Callable[[str, EntryKey], int]) -> None:
        self._timers = timers
        self._last_hit_ps = last_hit_ps
        self._running: dict[tuple[str, EntryKey], _Timer] = {}
        self._idle: deque[IdleEntry] = deque()

    def set(self, table: str, key: EntryKey, timeout_ps: int) -> None:
        """Give an entry a timeout; 0 takes it away."""
        place = table, key
        timer = self._running.get(place)
        if not timeout_ps:
            self.forget(table, key)
        elif timer is not None:
            self._timers.change(timer, timeout_ps)
        else:
            self._running[place] = self._timers.start(
                timeout_ps,
                lambda: self._last_hit_ps(table, key),
                lambda now_ps: self._tell(IdleEntry(table, key, now_ps)),
            )

    def forget(self, table: str, key: EntryKey) -> None:
        """Take an entry's timeout away, if it has one."""
        timer = self._running.pop((table, key), None)
        if timer is not None:
            self._timers.stop(timer)

    def take(self) -> list[IdleEntry]:
        """Return the entries that have been told idle since the last call and are still there, MOST_AT_ONCE at most."""
        idle = [self._idle.popleft() for _ in range(min(len(self._idle), MOST_AT_ONCE))]
        return [entry for entry in idle if (entry.table, entry.key) in self._running]

    def _tell(self, entry: IdleEntry) -> None:
        # Whoever does not hear of an entry hears of it after another timeout.
        if len(self._idle) < MOST_WAITING:
            self._idle.append(entry)

    def end(self) -> None:
        """Forget all entries."""
        for timer in self._running.values():
            self._timers.stop(timer)
        self._running.clear()
        self._idle.clear()
