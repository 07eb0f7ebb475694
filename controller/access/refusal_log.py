"""Logs refusals to strangers and for wrong roles, however they call: not many lines for one address, nor for all."""

import logging
from collections.abc import Callable

from controller.access.budget import Budget
from controller.events import EventKind, log_event
from topologies.printable import printable

_LOG = logging.getLogger(__name__)

_LOGGED_EVERY_S = 10.0
_LOGGED_AT_ONCE = 20


class RefusalLog:
    """One line in ten seconds for an address, and one in a second for all, after some at once."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._of_address = Budget(1, 1 / _LOGGED_EVERY_S, now_s)
        self._of_all = Budget(_LOGGED_AT_ONCE, 1.0, now_s)

    def tell(self, what: str, peer: str, address: str, problem: str) -> None:
        """Log that ``what`` was refused to ``peer``, which has a network address."""
        if self._of_address.take(address) is None:
            return
        left_out = self._of_all.take("")
        if left_out is not None:
            more = f" ({left_out:,} more from other addresses)" if left_out else ""
            log_event(
                _LOG,
                logging.WARNING,
                EventKind.CALL_REFUSED,
                "%s from %s refused: %s%s",
                what,
                peer,
                printable(problem),
                more,
                call=what,
                peer=peer,
                problem=problem,
            )
