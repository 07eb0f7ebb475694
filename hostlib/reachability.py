"""Tells the log once that no controller can be reached, and once that one answers again."""

import logging
from collections.abc import Sequence

_LOG = logging.getLogger(__name__)

PATIENCE_S = 10.0
"""Silence of a controller that has answered before; a restart or a fail-over takes less."""


class Reachability:
    """Whether a controller answers at one of the ``addresses``, as calls find out; the caller provides the time.

    Where none ever answered, the first failed call is logged; later only silence for ``PATIENCE_S``.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = ", ".join(addresses)
        self._has_answered = False
        self._silent_since_s: float | None = None
        self._is_told = False

    def note_answer(self) -> None:
        """Note that a controller has answered, even if it has refused."""
        if self._is_told:
            _LOG.warning("the controller at %s answers", self._addresses)
        self._has_answered, self._silent_since_s, self._is_told = True, None, False

    def note_silence(self, reason: str, now_s: float) -> None:
        """Note that no address has answered, and why."""
        if self._silent_since_s is None:
            self._silent_since_s = now_s
        is_long = not self._has_answered or now_s >= self._silent_since_s + PATIENCE_S
        if is_long and not self._is_told:
            self._is_told = True
            _LOG.warning(
                "no controller answers at %s; jobs run on without it, and the library keeps trying: %s",
                self._addresses,
                reason,
            )
