"""Log each difference between file and world once, and when it is gone; without a flood."""

import logging
from collections.abc import Callable, Sequence

from controller.discovery.differences import Difference, DifferenceKind
from controller.events import EventKind, LineBudget, log_event

_LOG = logging.getLogger(__name__)

_LINES, _REFILL_S = 40, 2.0
"""So many lines at once, then one in so many seconds."""

_OF_SWITCHES = (DifferenceKind.MISPLACED, DifferenceKind.UNHEARD)
"""What no host can cause. It has lines of its own, which hosts cannot use up."""


class DifferenceLog:
    """The differences that the log has; ``now_s`` is a monotonic clock. What finds no room is logged later."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._of_switches = LineBudget(_LINES, _REFILL_S)
        self._of_hosts = LineBudget(_LINES, _REFILL_S)
        self._told: dict[tuple[str, DifferenceKind], str] = {}

    def tell(self, found: Sequence[Difference]) -> None:
        """Log what differs now and did not before, and what did; what hosts change in between is left out."""
        by_key = {(each.place, each.kind): each.found for each in found}
        for (place, kind), words in by_key.items():
            known = self._told.get((place, kind))
            if (known is None or (kind in _OF_SWITCHES and known != words)) and self._has_line(kind):
                log_event(
                    _LOG,
                    logging.WARNING,
                    EventKind.CABLE_DIFFERS,
                    "cable %s: %s: %s",
                    place,
                    kind,
                    words,
                    cable=place,
                    problem=kind,
                    found=words,
                )
                self._told[place, kind] = words
        for place, kind in self._told.keys() - by_key.keys():
            if self._has_line(kind):
                words = "cable %s: no longer %s"
                log_event(_LOG, logging.WARNING, EventKind.CABLE_AGREES, words, place, kind, cable=place, problem=kind)
                del self._told[place, kind]

    def _has_line(self, kind: DifferenceKind) -> bool:
        budget = self._of_switches if kind in _OF_SWITCHES else self._of_hosts
        if not budget.has_one(self._now_s()):
            return False
        budget.spend()
        return True
