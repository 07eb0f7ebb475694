"""Events that an operator cares about: lines of the log that have a kind and fields besides their words.

Example::

    log_event(_LOG, logging.WARNING, EventKind.SWITCH_AWAY, "switch %s: away: %s", name, reason, switch=name)

The log shows the words, or all of it where it is JSON. ``RecentEvents`` keeps the last ones for the page. What may come
in bursts goes through a ``LineBudget``, or through a ``BurstLog``, which has one.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from topologies.logs import LogLevel, set_log_level
from topologies.printable import printable

_KEPT = 1_000
_MOST_CHARACTERS = 4_096
_LINES, _REFILL_S = 20, 2.0
"""So many lines of a BurstLog at once; then one line in so many seconds."""


class EventKind(StrEnum):
    """What has happened. docs/monitoring.md has what each means."""

    STARTED = "controller started"
    ENDED = "controller ended"
    LEADERSHIP = "leadership"
    SWITCH_REACHED = "switch reached"
    SWITCH_AWAY = "switch away"
    SWITCH_LOST = "switch lost"
    SWITCH_REFUSES = "switch refuses"
    PIPELINE_PUSHED = "pipeline pushed"
    DRIFT_REPAIRED = "drift repaired"
    PORTS_UNKNOWN = "port states unknown"
    JOB_ADMITTED = "job admitted"
    JOB_PLANNED = "job planned"
    JOB_WITHDRAWN = "job withdrawn"
    LINKS_LEFT = "links left"
    LINKS_BACK = "links back"
    RELOADED = "reloaded"
    RELOAD_REFUSED = "reload refused"
    DRAINED = "drained"
    UNDRAINED = "undrained"
    PAUSED = "planning paused"
    RELEASED = "rules released"
    RESUMED = "planning resumed"
    PINNED = "pinned"
    UNPINNED = "unpinned"
    CABLE_DIFFERS = "cable differs"
    CABLE_AGREES = "cable agrees"
    PLAN_FAILED = "plan failed"
    DATABASE_AWAY = "database away"
    DATABASE_BACK = "database back"
    RECORD_GAP = "record gap"
    CALL_REFUSED = "call refused"
    LOOP_LATE = "event loop late"


FieldValue = str | float | None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that has happened, at a Unix time; ``number`` counts the events of the process from 1."""

    number: int
    time_s: float
    severity: str
    kind: EventKind
    message: str
    fields: Mapping[str, FieldValue]


def log_event(
    logger: logging.Logger, level: int, kind: EventKind, message: str, /, *arguments: object, **fields: FieldValue
) -> None:
    """Log an event, with what it is about in ``fields``: names of switches, jobs and the like."""
    logger.log(level, message, *arguments, extra={"event": kind, "fields": fields}, stacklevel=2)


def log_from(level: LogLevel) -> None:
    """Log to stderr from this level on; ``RecentEvents`` gets all events from info on nevertheless."""
    set_log_level(level)
    logging.getLogger("controller").setLevel(min(level.number, logging.INFO))


class LineBudget:
    """Lines that may be logged: up to ``lines`` at once, and one more after every ``refill_s``."""

    def __init__(self, lines: int, refill_s: float) -> None:
        self._most = self._left = float(lines)
        self._refill_s = refill_s
        self._counted_s: float | None = None

    def has_one(self, now_s: float) -> bool:
        """Tell whether a line may be logged now."""
        if self._counted_s is not None:
            self._left = min(self._most, self._left + (now_s - self._counted_s) / self._refill_s)
        self._counted_s = now_s
        return self._left >= 1

    def spend(self) -> None:
        """Count a line as logged."""
        self._left -= 1


class BurstLog:
    """Logs events that may come by the thousand: some one by one, then how many more there were of each kind.

    To be used in an event loop, whose clock it goes by, and which logs these numbers soon.
    """

    def __init__(self, logger: logging.Logger, level: int = logging.INFO) -> None:
        self._logger = logger
        self._level = level
        self._budget = LineBudget(_LINES, _REFILL_S)
        self._more: Counter[EventKind] = Counter()

    def tell(self, kind: EventKind, message: str, /, *arguments: object, **fields: FieldValue) -> None:
        """Log an event, or count it."""
        if self._more or not self._budget.has_one(asyncio.get_running_loop().time()):
            self.count(kind, 1)
            return
        self._budget.spend()
        log_event(self._logger, self._level, kind, message, *arguments, **fields)

    def count(self, kind: EventKind, events: int) -> None:
        """Count events that get no line of their own."""
        if not self._more:
            asyncio.get_running_loop().call_later(_REFILL_S, self._tell_more)
        self._more[kind] += events

    def _tell_more(self) -> None:
        more, self._more = self._more, Counter()
        for kind, events in more.items():
            log_event(self._logger, self._level, kind, "and %d more: %s", events, kind, more=events)


class RecentEvents(logging.Handler):
    """Keeps the last events that are logged; to be added to the loggers whose events it is to keep."""

    def __init__(self) -> None:
        super().__init__()
        self._events: deque[Event] = deque(maxlen=_KEPT)
        self._number = 0

    @property
    def newest_number(self) -> int:
        """The number of the newest event; 0 before the first."""
        return self._number

    def since(self, number: int) -> tuple[Event, ...]:
        """The events after one, as far as they are kept, in order."""
        assert self.lock is not None
        with self.lock:  # threads log too
            new = min(self._number - number, len(self._events))
            return tuple(islice(self._events, len(self._events) - max(0, new), None))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the event of a record, if it is one."""
        kind: EventKind | None = getattr(record, "event", None)
        if kind is not None:
            self._number += 1
            fields: Mapping[str, FieldValue] = getattr(record, "fields", {})
            level = record.levelname.lower()
            message = printable(record.getMessage(), _MOST_CHARACTERS)
            self._events.append(Event(self._number, record.created, level, kind, message, fields))
