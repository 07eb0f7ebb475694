"""One switch with 8 hosts, and the collectives between them.

The links of two hosts are slow, those of the others have 10 Gbit/s; each link has two directions. A ring is one flow
from each host to the next. How long a collective takes there, a back end says (``simulated_star``, ``emulated_star``).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

HOSTS = 8
SLOW_HOSTS = (0, 4)
HOP_S = 25e-6
"""From one host to another for a message without content: a switch and two stacks in a data centre."""


class Pattern(StrEnum):
    """Which hosts send to which."""

    RING = "ring"
    """Each to the next."""
    EXCHANGE = "exchange"
    """Each to each other one."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """One collective on the wire.

    Attributes:
        pattern: Who sends to whom.
        flow_bytes: Of each flow.
        hops: Messages that wait for each other.
    """

    pattern: Pattern
    flow_bytes: float
    hops: int


def all_reduce(size_bytes: float) -> Transfer:
    """Return a ring all-reduce of so many bytes: 2 (W - 1) / W of them on each link, in 2 (W - 1) rounds."""
    return Transfer(Pattern.RING, 2 * (HOSTS - 1) / HOSTS * size_bytes, 2 * (HOSTS - 1))


def all_gather(payload_bytes: float) -> Transfer:
    """Return a ring all-gather of a payload of so many bytes from each host."""
    return Transfer(Pattern.RING, (HOSTS - 1) * payload_bytes, HOSTS - 1)


def exchange(part_bytes: float) -> Transfer:
    """Return an all-to-all in which each host sends so many bytes to each other one, all at once."""
    return Transfer(Pattern.EXCHANGE, part_bytes, 1)


def _pairs(pattern: Pattern) -> list[tuple[int, int]]:
    if pattern is Pattern.RING:
        return [(host, (host + 1) % HOSTS) for host in range(HOSTS)]
    return [(source, sink) for source in range(HOSTS) for sink in range(HOSTS) if source != sink]


PAIRS = {pattern: _pairs(pattern) for pattern in Pattern}
STREAM_ENDS = ((SLOW_HOSTS[0], HOSTS), (HOSTS, SLOW_HOSTS[0]))
"""A ninth host, at the fast rate, sends the streams of others to a slow host, and receives as many."""


class Star(Protocol):
    """The network under conditions; one collective at a time, in the order of their starts."""

    def finish_s(self, transfer: Transfer, start_s: float) -> float:
        """Return when all hosts have all of a collective that starts at a time, both in seconds."""
