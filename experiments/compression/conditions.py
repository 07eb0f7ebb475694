"""What the network is like over time: the rate of the slow links, and how many other streams cross them."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

BPS_PER_MBPS = 1e6
FAST_BPS = 10e9
"""The rate of all other links."""


@dataclass(frozen=True, slots=True)
class Condition:
    """From a time on, until the next one.

    Attributes:
        from_s: Its begin.
        rate_bps: Of the slow links, in each direction.
        streams: TCP streams of others that cross a slow link in each direction, without end.
    """

    from_s: float
    rate_bps: float
    streams: int = 0

    @property
    def share_bps(self) -> float:
        """What a job with one flow in each direction has of the link."""
        return self.rate_bps / (1 + self.streams)


@dataclass(frozen=True, slots=True)
class Conditions:
    """A network's conditions by time, the first from 0 s on; the last lasts for ever.

    Raises:
        ValueError: They do not begin at 0 s, or are not in order.
    """

    name: str
    parts: tuple[Condition, ...]

    def __post_init__(self) -> None:
        starts_s = [part.from_s for part in self.parts]
        if starts_s[:1] != [0.0] or any(later <= before for before, later in pairwise(starts_s)):
            raise ValueError(
                f"{self.name}: conditions must begin at 0 s, each later than the one before, at {starts_s}"
            )

    def at(self, time_s: float) -> Condition:
        """Return what holds at a time; a condition holds from its first moment on."""
        return self.parts[bisect_right(self.parts, time_s, key=lambda part: part.from_s) - 1]

    def change_after(self, time_s: float) -> float:
        """Return when the condition next changes; infinity where it no more does."""
        following = bisect_right(self.parts, time_s, key=lambda part: part.from_s)
        return self.parts[following].from_s if following < len(self.parts) else float("inf")


def fixed(rate_mbps: float) -> Conditions:
    """Scenario 1: one rate (section 5, Tables 1 and 2)."""
    return Conditions(f"{rate_mbps:g} Mbit/s", (Condition(0.0, rate_mbps * BPS_PER_MBPS),))


def falling(hold_s: float) -> Conditions:
    """Scenario 2: from 2000 to 200 Mbit/s in steps of 200 (Figure 7), each held for so long."""
    rates = range(2000, 0, -200)
    parts = (Condition(step * hold_s, rate_mbps * BPS_PER_MBPS) for step, rate_mbps in enumerate(rates))
    return Conditions("falling", tuple(parts))


STREAMS = (0, 1, 3, 0, 4, 2, 0)
"""Streams that come and go; the paper's Figure 8 shows such a pattern and gives no numbers."""


def contended(hold_s: float, rate_mbps: float = 1000) -> Conditions:
    """Scenario 3: competing streams come and go on links of one rate (Figure 8), each number held for so long."""
    parts = (Condition(step * hold_s, rate_mbps * BPS_PER_MBPS, count) for step, count in enumerate(STREAMS))
    return Conditions("contended", tuple(parts))
