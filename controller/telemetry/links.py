"""What probes have measured of every link: how full it is, and how long packets of each level wait for it."""

from dataclasses import dataclass, field
from statistics import median_low

from hostlib.telemetry.int_md import Hop
from topologies.fabric import Path

MAX_REPORTERS = 5
"""Hosts whose word on a link's load is kept, those that spoke last: as long as most tell the truth, it is heard."""

_LEVELS = 8
_US_PER_S = 1_000_000


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

    def note(self, path: Path, hops: tuple[Hop, ...], host: str, now_s: float) -> None:
        """A host reports a probe that has come along a path, whose switches told this."""
        by_link = self._by_link
        for link, hop in zip(path[1:], hops, strict=True):
            measured = by_link.get(link)
            if measured is None:
                measured = by_link[link] = LinkMeasurement(now_s)
            if now_s > measured.measured_s:
                measured.measured_s = now_s
            if hop.window_bytes is not None:
                told = measured.window_bytes
                told.pop(host, None)
                told[host] = now_s, hop.window_bytes
                if len(told) > MAX_REPORTERS:
                    del told[next(iter(told))]
            level = hop.level
            if level is not None and level < _LEVELS:
                measured.latency_us[level] = hop.latency_us
                measured.queue_packets[level] = hop.queue_packets

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

    def loads_bps(self, since_s: float) -> dict[int, float]:
        """The same of every link, as far as there is one."""
        loads = ((link, self.load_bps(link, since_s)) for link in sorted(self._by_link.copy()))
        return {link: load for link, load in loads if load is not None}
