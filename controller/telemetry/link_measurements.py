"""Keep what probes measured on every link: its load, and the delays and queues of each level."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.telemetry.int_reports import NOT_KNOWN, HopSamples
from policies.arrays import FloatArray

MAX_REPORTERS = 5
"""Hosts whose reports on the load of a link are kept, the most recent ones; the median is right while most are."""

_LEVELS = 8
_US_PER_S = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class WindowLoads:
    """The load of links in one complete window each, with headers, and when the probe that reported it arrived."""

    links: NDArray[np.int64]
    came_s: NDArray[np.float64]
    bps: NDArray[np.float64]


@dataclass(slots=True)
class LinkMeasurement:
    """The latest measurement of a link by the switch that sends on it, at the controller's time ``measured_s``.

    ``window_bytes`` has by host, the most recent reporter last, when its probe crossed the link and how many bytes,
    with headers, the link carried in the switch's last complete window. ``latency_us``, from the switch's ingress to
    its egress, and ``queue_packets``, the queue that a probe found, are by the probe's level; None is not known.
    """

    measured_s: float
    window_bytes: dict[str, tuple[float, int]] = field(default_factory=dict)
    latency_us: list[int | None] = field(default_factory=lambda: [None] * _LEVELS)
    queue_packets: list[int | None] = field(default_factory=lambda: [None] * _LEVELS)


class LinkMeasurements:
    """Measurements by link; switches count bytes in windows of ``window_us``.

    Attributes:
        bps_per_byte: The load for which a byte in a window stands.
    """

    def __init__(self, window_us: float) -> None:
        self.bps_per_byte = 8 * _US_PER_S / window_us
        self._by_link: dict[int, LinkMeasurement] = {}

    def record(self, samples: HopSamples, host: str) -> WindowLoads:
        """Record what the probes to a host measured; return the loads of links, the last one of each."""
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
            by_host = by_link[link].window_bytes
            by_host.pop(host, None)
            by_host[host] = came_s, window_bytes
            if len(by_host) > MAX_REPORTERS:
                del by_host[next(iter(by_host))]
        is_level = (samples.level != NOT_KNOWN) & (samples.level < _LEVELS)
        rows = _last(samples.links * _LEVELS + samples.level, is_level)
        columns = samples.links, samples.level, samples.latency_us, samples.queue_packets
        for link, level, latency_us, queue_packets in _at(rows, *columns):
            measured = by_link[link]
            measured.latency_us[level] = None if latency_us == NOT_KNOWN else latency_us
            measured.queue_packets[level] = None if queue_packets == NOT_KNOWN else queue_packets
        window_bps = samples.window_bytes[last].astype(np.float64) * self.bps_per_byte
        return WindowLoads(samples.links[last], samples.came_s[last], window_bps)

    def get(self, link: int) -> LinkMeasurement | None:
        """Return the measurement of a link, None if there is none."""
        return self._by_link.get(link)

    def load_bps(self, link: int, since_s: float) -> float | None:
        """Return the median load of a link over the hosts that reported it at ``since_s`` or later.

        Of an even number it is the lower of the two in the middle; None where no host reported any.
        """
        measured = self._by_link.get(link)
        if measured is None:
            return None
        by_host = tuple(measured.window_bytes.copy().values())
        recent = sorted(window_bytes for came_s, window_bytes in by_host if came_s >= since_s)
        return recent[(len(recent) - 1) // 2] * self.bps_per_byte if recent else None

    def loads_bps(self, links: Iterable[int], since_s: float) -> FloatArray:
        """Return the same of many links at once, NaN for None."""
        by_link, found = self._by_link, []
        for link in links:
            measured = by_link.get(link)
            if measured is None or measured.measured_s < since_s:
                found.append(np.nan)
            elif len(measured.window_bytes) == 1:
                ((came_s, window_bytes),) = measured.window_bytes.values()
                found.append(window_bytes * self.bps_per_byte if came_s >= since_s else np.nan)
            else:
                load_bps = self.load_bps(link, since_s)
                found.append(np.nan if load_bps is None else load_bps)
        return np.array(found)


def _last(keys: NDArray[np.int64], counts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the last row of each key, among the rows that count."""
    rows = np.flatnonzero(counts)[::-1]
    return rows[np.unique(keys[rows], return_index=True)[1]]


def _at(rows: NDArray[np.int64], *columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    return zip(*(column[rows].tolist() for column in columns), strict=True)
