"""What the network gives a job: its rate and the latency of a hop, estimated from what transmissions took.

A transmission takes its hops, its bytes, and whatever else holds it up: delay_s + hops x hop_s + bytes / rate. Once the
hops and the delay are taken off, a small transmission tells as much of the rate as a large one, so sending little does
not lower the estimate. Where the hops take longer than assumed, the rate comes out too low, but a transmission that
fits then shows a higher one, and the estimate climbs until transmissions take what is forecast.

The delay is what transmissions of a step take alike, whatever their bytes, as where threads wait for a core: the
intercept of a line through the smallest and the largest, below which none lies.
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
until transmissions are large enough.
"""

PROBING_GAIN = 1.25
"""By which the estimate grows in each such step; BBR probes with it."""

LEAST_SPREAD = 4
"""The largest transmission has so many times the bytes of the smallest, or a step tells no delay."""

FASTEST_BYTES_PER_S = 1e13
"""A sample above it comes from a clock that jumped."""


@dataclass(frozen=True, slots=True)
class Network:
    """The network as the last transmissions saw it.

    Attributes:
        steps: How many were seen.
        rate: In bytes per second.
        round_trip_s: The shortest round trip of the window.
        bucket_hop_s: The least that a transmission of the window took per hop: no hop takes longer.
        delay: What transmissions of a step are held up alike: the least of so many steps as the rate.
        hop_s: What is assumed of a hop.
        latency_share: Of the last step's transmissions, what the hops and the delay took.
    """

    steps: int = 0
    rate: WindowedMinimum = field(default_factory=lambda: WindowedMinimum(RATE_WINDOW_STEPS))
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
    times_s = link_times_s(agreed, costs, remainder)
    transmissions = [
        (cost, busy_s)
        for cost, busy_s in zip([*costs, *([] if remainder is None else [remainder])], times_s, strict=True)
        if cost.hops and cost.link_bytes < busy_s * FASTEST_BYTES_PER_S
    ]
    if not transmissions:
        return network
    round_trips = network.round_trip_s
    if agreed.round_trip_s is not None:
        round_trips = round_trips.update(time_s, agreed.round_trip_s)
    bucket_hops = network.bucket_hop_s.update(time_s, min(busy_s / cost.hops for cost, busy_s in transmissions))
    assumed_s = max(measured_hop_s, (round_trips.value or 0.0) / 2)
    least_s = bucket_hops.value
    assert least_s is not None  # there was a sample
    hop_s = min(assumed_s, least_s / 2)  # so at least half of each transmission's time is its bytes'
    hops_s = sum(cost.hops * hop_s for cost, _ in transmissions)
    all_s = sum(busy_s for _, busy_s in transmissions)
    delay_s = _delay_s([(cost.link_bytes, busy_s - cost.hops * hop_s) for cost, busy_s in transmissions])
    latency_s = max(hops_s, min(hops_s + len(transmissions) * delay_s, all_s / 2))
    sample = sum(cost.link_bytes for cost, _ in transmissions) / (all_s - latency_s)
    if latency_s / all_s >= MOSTLY_LATENCY and network.rate.samples:
        sample = min(FASTEST_BYTES_PER_S, max(sample, PROBING_GAIN * network.rate.samples[-1][1]))
    return Network(
        network.steps + 1,
        network.rate.update(network.steps, sample),
        round_trips,
        bucket_hops,
        network.delay.update(network.steps, delay_s),
        hop_s,
        latency_s / all_s,
    )


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
