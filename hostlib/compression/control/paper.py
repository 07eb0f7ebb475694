"""NetSenseML as printed: Algorithm 1 chooses a ratio, Algorithm 2 what it means (arXiv 2506.16235, section 4).

**It does not work, and is here to show that.** BtlBw and RTprop are extremes of the same transmissions: with a
transfer time of L + x/B for x bytes, the bandwidth-delay product is at most about the size of one transmission. So
"data size > 0.9 BDP" holds whenever the network is the bottleneck, and the ratio halves down to its floor or to what
the latency alone allows. RTprop falls with each smaller transmission, so the ratio stays there when the bandwidth
grows; BtlBw never falls, so it stays when the bandwidth falls, too. Use ``budget``.
"""

from dataclasses import dataclass, replace

from hostlib.compression.choice import Choice, Collective, Precision


@dataclass(frozen=True, slots=True)
class PaperParameters:
    """Every constant of both algorithms. Those that the paper does not give say so.

    Attributes:
        start_ratio: Section 4.1, step 1.
        startup_increase: β1, per interval of the start-up. Not given.
        startup_intervals: The "limited number of steps" of the start-up, after which it ends in any case. Not given.
        excessive_round_trip: A round trip above so many times RTprop is excessive and ends the start-up. Not given; two
            is what the paper says of MLT.
        bdp_share: Of the bandwidth-delay product that a transmission may take: equation 3.
        decrease: α, by which a ratio is multiplied above that share.
        increase: β2, which a ratio gains below it.
        floor: The least ratio: equation 3.
        quantise_below: tr_q, the ratio below which Algorithm 2 quantises. Not given.
        quantise_above_norm: tr_d, the L2 norm of the gradients above which it does. Not given.
        prune_share: Of what the ratio leaves out, the share that pruning takes: Algorithm 2, step 2.

    Raises:
        ValueError: ``quantise_below`` is above 0.5: Algorithm 2 doubles the ratio below it.
    """

    start_ratio: float = 0.01
    startup_increase: float = 0.1
    startup_intervals: int = 10
    excessive_round_trip: float = 2
    bdp_share: float = 0.9
    decrease: float = 0.5
    increase: float = 0.01
    floor: float = 0.005
    quantise_below: float = 0.1
    quantise_above_norm: float = 0
    prune_share: float = 0.5

    def __post_init__(self) -> None:
        if self.quantise_below > 0.5:
            raise ValueError(f"quantise_below: expected at most 0.5, got {self.quantise_below}")


@dataclass(frozen=True, slots=True)
class Interval:
    """What was measured of one gradient transmission.

    Attributes:
        data_bytes: data_size, what a rank sent.
        round_trip_s: RTT, which is in the paper how long the transmission took.
        retransmissions: Segments sent again: the paper's packet loss.
        gradient_norm: L2 norm of the gradients that Algorithm 2 looks at. All ranks must pass the same, so it is that
            of the last sum.
    """

    data_bytes: float
    round_trip_s: float
    retransmissions: int = 0
    gradient_norm: float = 1


@dataclass(frozen=True, slots=True)
class PaperState:
    """What Algorithm 1 remembers.

    Attributes:
        ratio: Of the next transmission, before Algorithm 2.
        starting: Whether the start-up goes on.
        intervals: Transmissions so far.
        bottleneck_bytes_per_s: BtlBw, the maximum of EBB.
        propagation_s: RTprop, the minimum of RTT; infinite before the first.
    """

    ratio: float
    starting: bool = True
    intervals: int = 0
    bottleneck_bytes_per_s: float = 0
    propagation_s: float = float("inf")


def start(parameters: PaperParameters) -> tuple[PaperState, Choice]:
    """Return the state before the first transmission, and what that is sent as."""
    return PaperState(parameters.start_ratio), compress(parameters.start_ratio, 1, parameters)


def decide(state: PaperState, interval: Interval, parameters: PaperParameters) -> tuple[PaperState, Choice]:
    """Return the next state and what the next transmission is sent as: Algorithm 1, then Algorithm 2.

    An interval without bytes or without duration says nothing, and changes nothing.
    """
    if interval.data_bytes > 0 and interval.round_trip_s > 0:
        state = _sensed(state, interval, parameters)
    return state, compress(state.ratio, interval.gradient_norm, parameters)


def compress(ratio: float, gradient_norm: float, parameters: PaperParameters) -> Choice:
    """Return what Algorithm 2 makes of a ratio: quantise, then prune, then select. At 1 it is an all-reduce."""
    precision = Precision.FP32
    if ratio < parameters.quantise_below and gradient_norm > parameters.quantise_above_norm:
        precision, ratio = Precision.FP16, 2 * ratio
    if ratio >= 1:
        return Choice(1, precision, Collective.ALL_REDUCE)
    return Choice(ratio, precision, Collective.ALL_GATHER, prune_share=parameters.prune_share * (1 - ratio))


def _sensed(state: PaperState, interval: Interval, parameters: PaperParameters) -> PaperState:
    bottleneck = max(state.bottleneck_bytes_per_s, interval.data_bytes / interval.round_trip_s)  # equation 1
    propagation_s = min(state.propagation_s, interval.round_trip_s)
    intervals = state.intervals + 1
    starting = (
        state.starting
        and not interval.retransmissions
        and interval.round_trip_s <= parameters.excessive_round_trip * propagation_s
        and intervals <= parameters.startup_intervals
    )
    if starting:
        ratio = min(1, state.ratio + parameters.startup_increase)  # step 1
    elif interval.data_bytes > parameters.bdp_share * bottleneck * propagation_s:  # equations 2 and 3
        ratio = max(parameters.floor, state.ratio * parameters.decrease)
    else:
        ratio = min(1, state.ratio + parameters.increase)
    return replace(
        state,
        ratio=ratio,
        starting=starting,
        intervals=intervals,
        bottleneck_bytes_per_s=bottleneck,
        propagation_s=propagation_s,
    )
