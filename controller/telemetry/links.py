"""What probes have measured of every link: how full it is, and how long packets of each level wait for it."""

from dataclasses import dataclass, field

from hostlib.telemetry.int_md import Hop
from topologies.fabric import Path

_LEVELS = 8
_US_PER_S = 1_000_000


@dataclass(slots=True)
class LinkMeasurement:
    """The newest of a link, measured by the switch that it leaves, at the controller's time ``measured_s``.

    ``load_bps`` is what it carried in the switch's last complete window, headers included. Latency is from the switch's
    ingress to its egress, and ``queue_packets`` what a probe found waiting, both by the probe's level. None: not known.
    """

    measured_s: float
    load_bps: float | None = None
    latency_us: list[int | None] = field(default_factory=lambda: [None] * _LEVELS)
    queue_packets: list[int | None] = field(default_factory=lambda: [None] * _LEVELS)


class LinkMeasurements:
    """Measurements by link; ``window_us`` is the length of the windows in which switches count bytes."""

    def __init__(self, window_us: float) -> None:
        self._bps_per_byte = 8 * _US_PER_S / window_us
        self._by_link: dict[int, LinkMeasurement] = {}

    def note(self, path: Path, hops: tuple[Hop, ...], now_s: float) -> None:
        """A probe has come along a path, whose switches told this."""
        by_link = self._by_link
        for link, hop in zip(path[1:], hops, strict=True):
            measured = by_link.get(link)
            if measured is None:
                measured = by_link[link] = LinkMeasurement(now_s)
            measured.measured_s = now_s
            if hop.window_bytes is not None:
                measured.load_bps = hop.window_bytes * self._bps_per_byte
            level = hop.level
            if level is not None and level < _LEVELS:
                measured.latency_us[level] = hop.latency_us
                measured.queue_packets[level] = hop.queue_packets

    def get(self, link: int) -> LinkMeasurement | None:
        """What is known of a link."""
        return self._by_link.get(link)

    def loads_bps(self, since_s: float) -> dict[int, float]:
        """The loads that were measured at ``since_s`` or later, by link."""
        return {
            link: measured.load_bps
            for link, measured in sorted(self._by_link.copy().items())
            if measured.load_bps is not None and measured.measured_s >= since_s
        }
