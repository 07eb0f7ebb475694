"""Find out from the counters of switches for how long no packet has left by links."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

_STRAY_BYTES = 400
"""What may leave within a second: a frame or two by which switches tell each other of their cables."""

_SECOND_S = 1.0


class LinkCounters(Protocol):
    """The byte counters of the ports of switches."""

    async def link_bytes(self, links: Collection[int]) -> Mapping[int, int]:
        """Read what has left by these links; those of switches that do not answer are missing."""


@dataclass(frozen=True, slots=True)
class _Reading:
    count: int
    read_s: float
    quiet_since_s: float
    second_s: float
    """When the second began whose bytes are being counted."""
    second_count: int
    """The counter then."""


class QuietLinks:
    """Remembers the last reading of every link, and since when it has stayed the same."""

    def __init__(self, counters: LinkCounters) -> None:
        self._counters = counters
        self._readings: dict[int, _Reading] = {}

    async def read(self, links: Collection[int], now_s: float) -> dict[int, float | None]:
        """Read the counters of these links and of no others.

        Returns for how many seconds each has been quiet, None where there was no earlier reading. Links of switches
        that do not answer are missing.
        """
        counts = await self._counters.link_bytes(links)
        before = self._readings
        self._readings = {link: _next(before.get(link), count, now_s) for link, count in counts.items()}
        return {
            link: reading.read_s - reading.quiet_since_s if link in before else None
            for link, reading in self._readings.items()
        }


def _next(before: _Reading | None, count: int, now_s: float) -> _Reading:
    if before is None or count < before.count or count - before.second_count > _STRAY_BYTES:
        return _Reading(count, now_s, now_s, now_s, count)
    if now_s - before.second_s >= _SECOND_S:
        return _Reading(count, now_s, before.quiet_since_s, now_s, count)
    return _Reading(count, now_s, before.quiet_since_s, before.second_s, before.second_count)
