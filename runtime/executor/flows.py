"""Flows: what this host sends to hosts of other islands, over a network that has levels.

Each has a connection of its own, so that switches tell it from others by its 5-tuple. The server says at which level,
how fast and from which port a flow sends, as soon as it knows; until then, and where nobody ranks it, it sends like
everything else.
"""

import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from runtime.executor.connection import Connection
from runtime.messages import FlowRank
from runtime.transport.deliveries import Name

_KEPT = 20_000
"""Pieces that a host remembers for traces."""


class SentPiece(NamedTuple):
    """A piece of a flow, which has been on the queue of its connection since ``began_s``.

    ``level`` is that of its connection since ``ranked_s``, and -1 where nobody has ranked it. It was made at
    ``made_s``. Times are those of the machine's monotonic clock.
    """

    flow: int
    name: Name
    host: int
    size_bytes: int
    level: int
    ranked_s: float
    made_s: float
    began_s: float


class ArrivedPiece(NamedTuple):
    """A piece of a flow that has come as a whole at ``ended_s``."""

    name: Name
    ended_s: float


class Flow:
    """A flow to a host; its level is -1 until it is told one.

    It sends from ``port``, which is to be ``source_port`` unless that is 0; where it is not, ``cause`` says why, and
    ``is_looked_after`` whether that is tried again. ``retiring`` is the connection on which it was before; that ends
    once all that was sent there has arrived.
    """

    __slots__ = (
        "cause",
        "host",
        "is_looked_after",
        "level",
        "number",
        "port",
        "ranked_s",
        "rate_bps",
        "retiring",
        "source_port",
    )

    def __init__(self, number: int, host: int) -> None:
        self.number = number
        self.host = host
        self.level = -1
        self.rate_bps: float | None = None
        self.ranked_s = 0.0
        self.source_port = 0
        self.port = 0
        self.cause = ""
        self.is_looked_after = False
        self.retiring: Connection | None = None

    @property
    def is_steered(self) -> bool:
        """Whether it sends from the port that it was told, if it was told one."""
        return self.source_port in (0, self.port)

    def take(self, connection: Connection) -> None:
        """Send on a connection from now on."""
        self.port = connection.source_port()
        self.mark(connection)

    def mark(self, connection: Connection) -> None:
        """Let a connection send as the flow was told to, if it was; one inside the machine has no levels."""
        if self.level >= 0 and not connection.is_local:
            connection.send_at(self.level, self.rate_bps)


class Flows:
    """The flows of a host, by number, and the pieces of flows that it has sent and received lately."""

    def __init__(self) -> None:
        self._flows: dict[int, Flow] = {}
        self.sent: deque[SentPiece] = deque(maxlen=_KEPT)
        self.arrived: deque[ArrivedPiece] = deque(maxlen=_KEPT)

    def open(self, number: int, host: int) -> None:
        """Know a flow from now on."""
        self._flows[number] = Flow(number, host)

    def close(self, number: int) -> Flow | None:
        """Forget a flow, and return it if it was known."""
        return self._flows.pop(number, None)

    def find(self, number: int) -> Flow | None:
        """Return a flow if it is known."""
        return self._flows.get(number)

    def rank(self, rank: FlowRank) -> Flow | None:
        """Note how a flow is to send, and return it if it is known."""
        flow = self._flows.get(rank.number)
        if flow is not None:
            flow.level, flow.rate_bps, flow.ranked_s = rank.level, rank.rate_bps, time.perf_counter()
            flow.source_port = rank.source_port
        return flow

    def note_sent(self, number: int, name: Name, size_bytes: int, made_s: float) -> None:
        """Note that a piece of a flow goes on the queue of its connection."""
        flow = self._flows.get(number)
        if flow is not None:
            ranked = (flow.level, flow.ranked_s)
            self.sent.append(SentPiece(number, name, flow.host, size_bytes, *ranked, made_s, time.perf_counter()))

    def note_arrived(self, name: Name) -> None:
        """Note that a piece of another host's flow has come."""
        self.arrived.append(ArrivedPiece(name, time.perf_counter()))

    def shown(self) -> Sequence[tuple[int, int, int, int]]:
        """Return number, destination, level and port of each flow."""
        return [(flow.number, flow.host, flow.level, flow.port) for flow in self._flows.values()]
