"""What probes have measured of every link: how full it is, and how long packets of each level wait for it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.telemetry.stacks import NOT_KNOWN, Samples

MAX_REPORTERS = 5
"""Hosts whose word on a link's load is kept, those that spoke last: as long as most tell the truth, it is heard."""

_LEVELS = 8
_US_PER_S = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class WindowLoads:
    """What links have carried in one complete window each, headers included, and when a probe came that told so."""

    links: NDArray[np.int64]
    came_s: NDArray[np.float64]
    bps: NDArray[np.float64]


@dataclass(slots=True)
class LinkMeasurement:
    """The newest of a link, measured by the switch that it leaves, at the controller's time ``measured_s``.

    ``window_bytes`` has by host, the one that spoke last at the end, when a probe to it came by the link and what this
    had carried in the switch's last complete window then, headers included. Latency is from the switch's ingress to its
    egress, and ``queue_packets`` what a probe found waiting, both by the probe's level. None: not known.
    """

    measured_s: float
    window_bytes: dict[str, tuple[float, int]] = field(default_factory=dict)
    latency_us: list[int | None] = field(default_factory=lambda: [None] * _LEVELS)
    queue_packets: list[int | None] = field(default_factory=lambda: [None] * _LEVELS)


class LinkMeasurements:
    """Measurements by link; ``window_us`` is the length of the windows in which switches count bytes."""

    def __init__(self, window_us: float) -> None:
        self._bps_per_byte = 8 * _US_PER_S / window_us
        self._by_link: dict[int, LinkMeasurement] = {}

    def note(self, samples: Samples, host: str) -> WindowLoads:
        """A host reports what switches have told probes to it; the last of each link and level counts.

        Returns what of links' loads counts.
        """
        links, places = np.unique(samples.links, return_inverse=True)
        newest_s = np.full(len(links), -np.inf)
        np.maximum.at(newest_s, places, samples.came_s)
        by_link = self._by_link
        for link, came_s in zip(links.tolist(), newest_s.tolist(), strict=True):
            measured = by_link.get(link)
            if measured is None:
                by_link[link] = LinkMeasurement(came_s)
            elif came_s > measured.measured_s:
                measured.measured_s = came_s
        last = _last(samples.links, samples.window_bytes != NOT_KNOWN)
        for link, came_s, window_bytes in _at(last, samples.links, samples.came_s, samples.window_bytes):
            told = by_link[link].window_bytes
            told.pop(host, None)
            told[host] = came_s, window_bytes
            if len(told) > MAX_REPORTERS:
                del told[next(iter(told))]
        is_level = (samples.level != NOT_KNOWN) & (samples.level < _LEVELS)
        rows = _last(samples.links * _LEVELS + samples.level, is_level)
        columns = samples.links, samples.level, samples.latency_us, samples.queue_packets
        for link, level, latency_us, queue_packets in _at(rows, *columns):
            measured = by_link[link]
            measured.latency_us[level] = None if latency_us == NOT_KNOWN else latency_us
            measured.queue_packets[level] = None if queue_packets == NOT_KNOWN else queue_packets
        window_bps = samples.window_bytes[last].astype(np.float64) * self._bps_per_byte
        return WindowLoads(samples.links[last], samples.came_s[last], window_bps)

    def get(self, link: int) -> LinkMeasurement | None:
        """What is known of a link."""
        return self._by_link.get(link)

    def load_bps(self, link: int, since_s: float) -> float | None:
        """The load of a link: the median of what hosts have told of it last, at ``since_s`` or later.

        Of an even number it is the lower of the two in the middle. None where nobody has told any.
        """
        measured = self._by_link.get(link)
        told = () if measured is None else tuple(measured.window_bytes.copy().values())
        lately = [window_bytes for told_s, window_bytes in told if told_s >= since_s]
        return median_low(lately) * self._bps_per_byte if lately else None


def _last(keys: NDArray[np.int64], counts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The last row of each key, of those that count."""
    rows = np.flatnonzero(counts)[::-1]
    return rows[np.unique(keys[rows], return_index=True)[1]]


def _at(rows: NDArray[np.int64], *columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    return zip(*(column[rows].tolist() for column in columns), strict=True)
