"""The connections of each identity, which are limited so that none of them takes all that the controller has."""

from collections.abc import Callable

from controller.errors import DaemonError

_IDLE_S = 300.0
"""How long a connection without a call still counts."""


class ConnectionLimitError(DaemonError):
    """An identity has too many connections."""


class ConnectionTable:
    """When each identity was last heard of on each of its connections.

    Args:
        now_s: The time.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._heard_s: dict[str, dict[str, float]] = {}

    def note(self, identity: str, connection: str, most: int) -> None:
        """Note a call. Raises ConnectionLimitError where the connection is one more than ``most``."""
        now_s = self._now_s()
        known = self._heard_s.setdefault(identity, {})
        if connection not in known and len(known) >= most:
            for idle in [peer for peer, heard_s in known.items() if heard_s <= now_s - _IDLE_S]:
                del known[idle]
            if len(known) >= most:
                raise ConnectionLimitError(f"connections: this identity may have {most:,} at a time")
        known[connection] = now_s
