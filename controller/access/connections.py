"""The connections of each identity and its calls in progress, limited so that none takes all that there is."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from controller.errors import DaemonError

MOST_CALLS = 10_000
"""Of an identity at a time: calls in progress, most of which are streams of directives."""
_IDLE_S = 300.0
"""How long a connection without a call still counts; then it is closed."""
_MANY_IDENTITIES = 1_000


class ConnectionLimitError(DaemonError):
    """An identity has too many connections, or too many calls in progress."""


@dataclass(slots=True)
class _Connection:
    """The calls in progress of a connection, and when the last of them began or ended."""

    heard_s: float
    calls: int = 0


class ConnectionTable:
    """The connections of every identity.

    Args:
        now_s: The time.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._of: dict[str, dict[str, _Connection]] = {}
        self._calls: dict[str, int] = {}
        self._pruned_s = 0.0

    def __len__(self) -> int:
        return len(self._of)

    @contextmanager
    def call(self, identity: str, connection: str, most: int) -> Iterator[None]:
        """Count a call while the context lasts.

        Raises ConnectionLimitError where the connection is one more than ``most``, or there are too many calls.
        """
        self._forget_idle_identities()
        known, calls = self._of.setdefault(identity, {}), self._calls.get(identity, 0)
        if calls >= MOST_CALLS:
            raise ConnectionLimitError(f"calls: this identity may have {MOST_CALLS:,} in progress at a time")
        if connection not in known and len(known) >= most:
            for peer in [peer for peer, each in known.items() if self._is_idle(each)]:
                del known[peer]
            if len(known) >= most:
                raise ConnectionLimitError(f"connections: this identity may have {most:,} at a time")
        used = known.setdefault(connection, _Connection(self._now_s()))
        used.calls += 1
        self._calls[identity] = calls + 1
        try:
            yield
        finally:
            used.calls -= 1
            used.heard_s = self._now_s()
            self._calls[identity] -= 1

    def _is_idle(self, connection: _Connection) -> bool:
        return not connection.calls and connection.heard_s <= self._now_s() - _IDLE_S

    def _forget_idle_identities(self) -> None:
        if len(self._of) < _MANY_IDENTITIES or self._now_s() < self._pruned_s + _IDLE_S:
            return
        self._pruned_s = self._now_s()
        self._of = {name: known for name, known in self._of.items() if not all(map(self._is_idle, known.values()))}
        self._calls = {name: calls for name, calls in self._calls.items() if name in self._of}
