"""Algorithms 1 and 2 by hand, and that they collapse."""

import pytest

from hostlib.compression.choice import Choice, Collective, Precision
from hostlib.compression.control.paper import (
    Interval,
    PaperParameters,
    PaperState,
    compress,
    decide,
    start,
)

PARAMETERS = PaperParameters()
RUNNING = PaperState(0.4, starting=False, intervals=20, bottleneck_bytes_per_s=1000, propagation_s=2.0)


def test_it_starts_at_one_hundredth() -> None:
    state, choice = start(PARAMETERS)
    assert state == PaperState(0.01)
    assert choice == Choice(0.02, Precision.FP16, Collective.ALL_GATHER, prune_share=0.49)


def test_start_up_adds_beta_1_until_the_round_trip_is_excessive() -> None:
    state, _ = start(PARAMETERS)
    for round_trip_s, ratio in [(1.0, 0.11), (1.5, 0.21), (2.0, 0.31)]:
        state, _ = decide(state, Interval(100, round_trip_s), PARAMETERS)
        assert state.ratio == pytest.approx(ratio)
        assert state.starting
    state, _ = decide(state, Interval(300, 2.1), PARAMETERS)
    assert not state.starting
    assert state.ratio == pytest.approx(0.31 / 2)  # 300 is above 0.9 x 142.9 x 1


def test_start_up_ends_with_a_loss_and_with_its_last_interval() -> None:
    state, _ = start(PARAMETERS)
    assert not decide(state, Interval(100, 1.0, retransmissions=1), PARAMETERS)[0].starting
    for _ in range(10):
        state, _ = decide(state, Interval(100, 1.0), PARAMETERS)
        assert state.starting
    assert not decide(state, Interval(100, 1.0), PARAMETERS)[0].starting


@pytest.mark.parametrize(
    ("interval", "ratio", "bottleneck", "propagation_s"),
    [
        (Interval(1801, 2.0), 0.2, 1000, 2.0),  # above 0.9 x 2000
        (Interval(1800, 2.0), 0.41, 1000, 2.0),  # at it
        (Interval(3000, 2.0), 0.2, 1500, 2.0),  # EBB 1500 is a new maximum: BDP 3000
        (Interval(500, 1.0), 0.41, 1000, 1.0),  # a new minimum: BDP 1000
        (Interval(950, 1.0), 0.2, 1000, 1.0),
    ],
)
def test_equations_1_to_3(interval: Interval, ratio: float, bottleneck: float, propagation_s: float) -> None:
    state, _ = decide(RUNNING, interval, PARAMETERS)
    assert state.ratio == pytest.approx(ratio)
    assert (state.bottleneck_bytes_per_s, state.propagation_s) == (bottleneck, propagation_s)


def test_the_ratio_stays_between_its_floor_and_one() -> None:
    low = PaperState(0.006, False, 20, 1000, 2.0)
    assert decide(low, Interval(1900, 2.0), PARAMETERS)[0].ratio == 0.005
    high = PaperState(0.995, False, 20, 1000, 2.0)
    assert decide(high, Interval(100, 2.0), PARAMETERS)[0].ratio == 1


@pytest.mark.parametrize(
    ("ratio", "norm", "choice"),
    [
        # below tr_q: quantised first, so the ratio doubles, pruning sees the doubled one, and so does the selection
        (0.05, 1.0, Choice(0.1, Precision.FP16, Collective.ALL_GATHER, 0.45)),
        # at tr_q, and with a norm that is not above tr_d: fp32
        (0.1, 1.0, Choice(0.1, Precision.FP32, Collective.ALL_GATHER, 0.45)),
        (0.05, 0.0, Choice(0.05, Precision.FP32, Collective.ALL_GATHER, 0.475)),
        (0.6, 1.0, Choice(0.6, Precision.FP32, Collective.ALL_GATHER, 0.2)),
        (1, 1.0, Choice(1, Precision.FP32, Collective.ALL_REDUCE)),
    ],
)
def test_algorithm_2(ratio: float, norm: float, choice: Choice) -> None:
    assert compress(ratio, norm, PARAMETERS) == choice


def test_a_threshold_whose_doubled_ratio_is_above_one_is_refused() -> None:
    with pytest.raises(ValueError, match="quantise_below"):
        PaperParameters(quantise_below=0.6)


@pytest.mark.parametrize("interval", [Interval(0, 1.0), Interval(100, 0.0)])
def test_an_empty_interval_changes_nothing(interval: Interval) -> None:
    assert decide(RUNNING, interval, PARAMETERS)[0] == RUNNING


def ratios(bandwidths: list[float], latency_s: float, model_bytes: float = 46.2e6) -> list[float]:
    """The ratios on an ideal link, where a transmission takes latency_s + bytes / bandwidth."""
    state, _ = start(PARAMETERS)
    found = []
    for bandwidth in bandwidths:
        sent = state.ratio * model_bytes
        state, _ = decide(state, Interval(sent, latency_s + sent / bandwidth), PARAMETERS)
        found.append(state.ratio)
    return found


@pytest.mark.parametrize("mbps", [200, 500, 800, 2000, 10_000])
def test_the_printed_loop_collapses_at_any_bandwidth(mbps: float) -> None:
    """Half the model would take 924 ms to 18 ms; the ratio does not get near."""
    settled = ratios([mbps * 1e6 / 8] * 400, 1e-3)[200:]
    assert max(settled) < 0.05


def test_the_printed_loop_reaches_its_floor() -> None:
    """At 200 Mbit/s and 1 ms: 0.231 MB, which take 10 ms of the 250 that a step computes."""
    assert set(ratios([200e6 / 8] * 400, 1e-3)[200:]) == {0.005}


@pytest.mark.parametrize("latency_s", [1e-3, 20e-3])
def test_the_printed_loop_never_recovers(latency_s: float) -> None:
    """Fifty times the bandwidth, and a thousand intervals later the ratio is what it was; RTprop is that of before."""
    slow, fast = [200e6 / 8], [10_000e6 / 8]
    before = ratios(slow * 400, latency_s)
    after = ratios(slow * 400 + fast * 1000, latency_s)
    assert max(after[1200:]) <= max(before[200:])
    assert max(ratios(fast * 400, latency_s)[200:]) > 5 * max(after[1200:])


def test_the_printed_loop_does_not_see_a_bandwidth_fall() -> None:
    """BtlBw is the maximum of all times: at a fiftieth of the bandwidth the ratio stays where it was."""
    fast, slow = [10_000e6 / 8], [200e6 / 8]
    found = ratios(fast * 400 + slow * 1000, 20e-3)
    assert min(found[1200:]) == pytest.approx(min(found[200:400]))
