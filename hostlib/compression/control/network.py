"""What the network gives a job: its rate and the latency of a hop, estimated from what transmissions took.

A transmission takes its hops, its bytes, and whatever else holds it up: delay_s + hops x hop_s + bytes / rate. Once the
hops and the delay are taken off, a small transmission tells as much of the rate as a large one, so sending little does
not lower the estimate. Where the hops take longer than assumed, the rate comes out too low, but a transmission that
fits then shows a higher one, and the estimate climbs until transmissions take what is forecast. Where hops take most of
the time, it climbs by itself, but no further than to the rate that explains all that the hops and the delay do not.

The delay is what transmissions of a step take alike, whatever their bytes, as where threads wait for a core: the
intercept of a line through the smallest and the largest, below which none lies.

Rings and exchanges have rates of their own. A rank has one flow on its link in a ring, and one for each other rank in
an exchange, so that an exchange gets more of a link that flows of others share. Half of a reduce-scatter is an exchange
and half a ring, so it tells both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hostlib.compression.agreement import Agreed
from hostlib.compression.control.cost import Cost
from hostlib.compression.control.filters import WindowedMinimum

LATENCY_WINDOW_S = 10.0
"""As BBR's RTprop (Cardwell et al., ACM Queue 14(5), 2016)."""

RATE_WINDOW_STEPS = 3
"""The rate is the least of so many steps' samples.

A maximum, as BBR takes it, overestimates a rate that is noisy or shared, and what is planned with it ends late. To send
less for a few steps costs little; to send too much holds up the job. The least falls with the first sample and rises
with the third, and one sample that is too high changes nothing.
"""

MOSTLY_LATENCY = 0.4
"""From this share of hops on, transmissions are too small to tell the rate.

Then a sample counts only if it is higher, as BBR has it of those that the application limits, and the estimate grows
until transmissions are large enough, or take longer than it explains.
"""

MOST_EXCESS = 2
"""A hop that is assumed up to so many times as long as one can have been is taken for that long.

Where it is assumed longer, it is wrong, and explains half of a transmission: at least half of the time is the bytes'.
"""

PROBING_GAIN = 1.25
"""By which the estimate grows in each such step; BBR probes with it."""

LEAST_SPREAD = 4
"""The largest transmission has so many times the bytes of the smallest, or a step tells no delay."""

FASTEST_BYTES_PER_S = 1e13
"""A sample above it comes from a clock that jumped."""


@dataclass(frozen=True, slots=True)
class Link:
    """What a rank's transmissions are taken to get.

    Attributes:
        rate: Of rings, in bytes per second.
        exchange_rate: Of exchanges.
        hop_s: Latency of a hop.
        delay_s: What holds up each transmission besides.
    """

    rate: float
    exchange_rate: float
    hop_s: float
    delay_s: float = 0.0

    def transmission_s(self, cost: Cost) -> float:
        """Return how long a transmission has the link."""
        if not cost.hops:
            return 0.0
        bytes_s = cost.ring_bytes / self.rate + cost.exchange_bytes / self.exchange_rate
        return cost.hops * self.hop_s + bytes_s + self.delay_s


@dataclass(frozen=True, slots=True)
class Network:
    """The network as the last transmissions saw it.

    Attributes:
        steps: How many were seen.
        rate: Of rings, in bytes per second.
        exchange_rate: Of exchanges.
        round_trip_s: The shortest round trip of the window.
        bucket_hop_s: The least that a transmission of the window took per hop: no hop takes longer.
        delay: What transmissions of a step are held up alike: the least of so many steps as the rate.
        hop_s: What is assumed of a hop.
        latency_share: Of the last step's transmissions, what the hops and the delay took.
    """

    steps: int = 0
    rate: WindowedMinimum = field(default_factory=lambda: WindowedMinimum(RATE_WINDOW_STEPS))
    exchange_rate: WindowedMinimum = field(default_factory=lambda: WindowedMinimum(RATE_WINDOW_STEPS))
    round_trip_s: WindowedMinimum = field(default_factory=lambda: WindowedMinimum(LATENCY_WINDOW_S))
    bucket_hop_s: WindowedMinimum = field(default_factory=lambda: WindowedMinimum(LATENCY_WINDOW_S))
    delay: WindowedMinimum = field(default_factory=lambda: WindowedMinimum(RATE_WINDOW_STEPS))
    hop_s: float = 0
    latency_share: float = 0

    @property
    def delay_s(self) -> float:
        """What each transmission is held up, whatever its bytes."""
        return self.delay.value or 0.0

    @property
    def link(self) -> Link | None:
        """What is expected of the link; None before the first sample."""
        rate, exchange_rate = self.rate.value, self.exchange_rate.value
        if rate is None or exchange_rate is None:
            return None
        return Link(rate, exchange_rate, self.hop_s, self.delay_s)

    @property
    def probing(self) -> bool:
        """Whether the last step was too small to tell the rate."""
        return self.latency_share >= MOSTLY_LATENCY


def sensed(
    network: Network,
    time_s: float,
    agreed: Agreed,
    costs: Sequence[Cost],
    measured_hop_s: float,
    remainder: Cost | None = None,
) -> Network:
    """Return the network with one more step.

    Args:
        network: As it was.
        time_s: When the step ended, on the job's own clock of step times.
        agreed: What was measured.
        costs: Per bucket, what it was sent as.
        measured_hop_s: Of a hop, as measured when the job started: through all software, which TCP's round trip is not.
        remainder: Of the remainder that travelled before them; None: there was none.
    """
    transmissions = _transmissions(agreed, costs, remainder)
    if not transmissions:
        return network
    round_trips = network.round_trip_s
    if agreed.round_trip_s is not None:
        round_trips = round_trips.update(time_s, agreed.round_trip_s)
    bucket_hops = network.bucket_hop_s.update(time_s, min(each.busy_s / each.cost.hops for each in transmissions))
    assumed_s = max(measured_hop_s, (round_trips.value or 0.0) / 2)
    least_s = bucket_hops.value
    assert least_s is not None  # there was a sample
    longest_s = min(assumed_s, least_s)
    hop_s = longest_s if assumed_s <= MOST_EXCESS * least_s else least_s / 2
    delay_s = _delay_s([(each.cost.link_bytes, each.busy_s - each.cost.hops * hop_s) for each in transmissions])
    rings, exchanges, both = _parts(transmissions, hop_s, delay_s)
    rate = rings.rate or both.rate
    assert rate is not None  # no transmission was faster than what counts
    last = network.rate.samples[-1][1] if network.rate.samples else None
    if last is not None and both.is_mostly_latency:
        rate = max(rate, min(PROBING_GAIN * last, _highest_rate(transmissions, longest_s, delay_s)))
    exchange_rate = None if exchanges.is_mostly_latency else exchanges.rate
    if exchange_rate is None:  # as much faster than rings as when it was last seen
        faster = 1.0 if last is None else network.exchange_rate.samples[-1][1] / last
        exchange_rate = min(FASTEST_BYTES_PER_S, faster * rate)
    return Network(
        network.steps + 1,
        network.rate.update(network.steps, rate),
        network.exchange_rate.update(network.steps, exchange_rate),
        round_trips,
        bucket_hops,
        network.delay.update(network.steps, delay_s),
        hop_s,
        both.latency_s / both.busy_s,
    )


@dataclass(frozen=True, slots=True)
class _Transmission:
    """One of a step, with how long it had the link, and how much of that was an exchange."""

    cost: Cost
    busy_s: float
    exchange_s: float


def _transmissions(agreed: Agreed, costs: Sequence[Cost], remainder: Cost | None) -> list[_Transmission]:
    """Return those of a step that took a time that can be."""
    every = [*costs, *([] if remainder is None else [remainder])]
    times_s = link_times_s(agreed, costs, remainder)
    return [
        _Transmission(cost, busy_s, min(exchange_s, busy_s) if cost.has_exchange else 0.0)
        for cost, busy_s, exchange_s in zip(every, times_s, agreed.exchange_s, strict=True)
        if cost.hops and cost.link_bytes < busy_s * FASTEST_BYTES_PER_S
    ]


class _Part:
    """A step's rings, or its exchanges, or both: their bytes, and how long they had the link.

    ``latency_s`` is how much of that time was no byte's: half of it at most.
    """

    def __init__(self, link_bytes: float, busy_s: float, latency_s: float) -> None:
        self.link_bytes = link_bytes
        self.busy_s = busy_s
        self.latency_s = min(latency_s, busy_s / 2)

    @property
    def rate(self) -> float | None:
        """In bytes per second; None where there was no such part, or a clock jumped."""
        if not 0 < self.link_bytes < self.busy_s * FASTEST_BYTES_PER_S:
            return None
        return self.link_bytes / (self.busy_s - self.latency_s)

    @property
    def is_mostly_latency(self) -> bool:
        """Whether it was too small to tell the rate."""
        return self.latency_s >= MOSTLY_LATENCY * self.busy_s


def _parts(transmissions: Sequence[_Transmission], hop_s: float, delay_s: float) -> tuple[_Part, _Part, _Part]:
    """Return a step's rings, its exchanges, and both. The latency of a reduce-scatter is shared as its time is."""
    latencies_s = [each.cost.hops * hop_s + delay_s for each in transmissions]
    exchange_latency_s = sum(
        latency_s * each.exchange_s / each.busy_s for each, latency_s in zip(transmissions, latencies_s, strict=True)
    )
    exchange_s = sum(each.exchange_s for each in transmissions)
    busy_s = sum(each.busy_s for each in transmissions)
    latency_s = sum(latencies_s)
    return (
        _Part(sum(each.cost.ring_bytes for each in transmissions), busy_s - exchange_s, latency_s - exchange_latency_s),
        _Part(sum(each.cost.exchange_bytes for each in transmissions), exchange_s, exchange_latency_s),
        _Part(sum(each.cost.link_bytes for each in transmissions), busy_s, latency_s),
    )


def _highest_rate(transmissions: Sequence[_Transmission], hop_s: float, delay_s: float) -> float:
    """Return the rate at which a step's bytes take what hops and delay leave of its time, if they take that much."""
    bytes_s = sum(each.busy_s - each.cost.hops * hop_s - delay_s for each in transmissions)
    link_bytes = sum(each.cost.link_bytes for each in transmissions)
    return link_bytes / bytes_s if link_bytes < bytes_s * FASTEST_BYTES_PER_S else FASTEST_BYTES_PER_S


def _delay_s(transmissions: Sequence[tuple[float, float]]) -> float:
    """Return what a step's transmissions, bytes and seconds without hops, take alike; 0 where they do not tell."""
    small, large = min(transmissions), max(transmissions)
    if large[0] < LEAST_SPREAD * small[0] or large[1] <= small[1]:
        return 0.0
    byte_s = (large[1] - small[1]) / (large[0] - small[0])
    return max(0.0, min(busy_s - size_bytes * byte_s for size_bytes, busy_s in transmissions))


def link_times_s(agreed: Agreed, costs: Sequence[Cost], remainder: Cost | None = None) -> list[float]:
    """Return how long each transmission had the link: without waiting for the one before it.

    They are those of the buckets, then that of the remainder if one travelled before them.
    """
    count = len(costs)
    times_s, free_s = [], 0.0 if remainder is None else agreed.ready_s[count]
    for network_s, ready_s, cost in zip(agreed.network_s[:count], agreed.ready_s[:count], costs, strict=True):
        issued_s = ready_s + cost.encode_s
        completed_s = issued_s + network_s
        times_s.append(max(0.0, completed_s - max(issued_s, free_s)))
        free_s = max(free_s, completed_s)
    return times_s if remainder is None else [*times_s, agreed.network_s[count]]
