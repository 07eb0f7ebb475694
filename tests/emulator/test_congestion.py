"""Congestion controls on textbook cases, against the formulas of the papers that describe them."""

import math

import pytest

from emulator.fabric import EmulatedFabric
from tests.emulator.congested import (
    BASE_RTT_S,
    BOTTLENECK_GBPS,
    PACKET_BYTES,
    TARGET_S,
    fast_hosts,
    hosts,
    peaks,
    send,
    watch,
)
from tests.emulator.fabrics import advance, completion_times, five_tuple, star
from tests.emulator.marking_program import marked

pytestmark = pytest.mark.slow

CONTROLS = ("reno", "dctcp", "swift")
BANDWIDTH_DELAY = BOTTLENECK_GBPS * 1e9 * BASE_RTT_S / 8 / PACKET_BYTES
SMALL_BUFFER_BYTES = 30 * PACKET_BYTES


@pytest.mark.parametrize("acknowledge_every", [1, 4])
@pytest.mark.parametrize("control", ["reno", "dctcp"])
def test_slow_start_doubles_the_window_in_every_round_trip(control: str, acknowledge_every: int) -> None:
    """RFC 5681, 3.1, with bytes counted (RFC 3465)."""
    result = marked(fast_hosts(1, delay_us=100), hosts(1, acknowledge_every))
    samples = watch(result, send(result, control, 1), 0.0041, 0.00005)
    round_trip_s = samples.round_trip_s[-1, 0]
    assert round_trip_s == pytest.approx(600e-6, rel=0.1)
    middles = [(number + 0.5) * round_trip_s for number in range(6)]
    windows = [samples.window[int(middle / 0.00005) - 1, 0] for middle in middles]
    assert windows == [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize("period", [100, 200, 400, 800])
def test_reno_with_regular_losses_follows_the_sawtooth_and_the_square_root_law(period: int) -> None:
    """Mathis, Semke, Mahdavi and Ott, CCR 1997: a rate of sqrt(3 / 2p) packets per round-trip time.

    The law leaves out recoveries. With one round-trip time for each, in which half a window is sent, the packets of a
    cycle are 3/8 W² + W/2 = 1/p.
    """
    result = marked(fast_hosts(1, delay_us=20), hosts(), lose_every={"t0": period})
    flows = send(result, "reno", 1)
    samples = watch(result, flows, 0.12).last(0.8)
    cuts = peaks(samples.window[:, 0])
    highest = (-0.5 + math.sqrt(0.25 + 1.5 * period)) / 0.75
    assert len(cuts) > 5
    for before, after in cuts:
        assert before == pytest.approx(highest, abs=1.3)
        assert after == pytest.approx(before / 2, rel=0.05)
    a_round_trip = samples.rates[0] * samples.round_trip_s.mean()
    assert a_round_trip == pytest.approx(period / (highest / 2 + 1), rel=0.1)
    assert a_round_trip < math.sqrt(1.5 * period)
    if period >= 400:
        assert a_round_trip > 0.9 * math.sqrt(1.5 * period)
    assert result.sender(flows[0]).timeouts == 0


def test_reno_fills_a_link_whose_buffer_holds_a_bandwidth_delay_product() -> None:
    """Appenzeller, Keslassy and McKeown, SIGCOMM 2004, section 2."""
    result = marked(fast_hosts(1), hosts(), queue_limit_bytes=SMALL_BUFFER_BYTES)
    flows = send(result, "reno", 1)
    samples = watch(result, flows, 0.05).last(0.6)
    assert samples.window.max() == pytest.approx(BANDWIDTH_DELAY + 30, rel=0.08)
    assert samples.window.min() == pytest.approx(samples.window.max() / 2, rel=0.05)
    assert samples.goodput_gbps > 0.99 * BOTTLENECK_GBPS
    assert result.sender(flows[0]).timeouts == 0


@pytest.mark.parametrize(("pairs", "threshold"), [(1, 8), (1, 20), (1, 30), (2, 8), (2, 20), (3, 20)])
def test_dctcp_queue_swings_below_the_threshold_as_its_analysis_says(pairs: int, threshold: int) -> None:
    """Alizadeh et al., SIGCOMM 2010, 3.3: Q_max = K + N, and an amplitude of sqrt(2 N (C RTT + K)) / 2.

    The estimate alpha solves alpha² (1 - alpha / 4) = (2 W* + 1) / (W* + 1)² with W* = (C RTT + K) / N.
    """
    result = marked(fast_hosts(pairs), hosts(), mark_from=threshold)
    flows = send(result, "dctcp", pairs)
    samples = watch(result, flows, 0.04, 5e-6).last(0.5)
    assert samples.queue.max() == pytest.approx(threshold + pairs, abs=1.5)
    amplitude = math.sqrt(2 * pairs * (BANDWIDTH_DELAY + threshold)) / 2
    assert samples.queue.max() - samples.queue.min() == pytest.approx(amplitude, abs=2)
    assert samples.goodput_gbps > 0.99 * BOTTLENECK_GBPS  # the threshold is above C RTT / 7
    if pairs == 1:
        critical = BANDWIDTH_DELAY + threshold
        share = (2 * critical + 1) / (critical + 1) ** 2
        assert samples.alpha.mean() ** 2 * (1 - samples.alpha.mean() / 4) == pytest.approx(share, rel=0.25)
        assert samples.window.max() == pytest.approx(critical + 1, rel=0.05)
    assert all(result.sender(flow).timeouts == 0 for flow in flows)
    assert result.drops("t0").queue_full == 0


@pytest.mark.parametrize("pairs", [1, 2, 5])
def test_swift_holds_its_target_delay(pairs: int) -> None:
    """Kumar et al., SIGCOMM 2020, 3.1: the delay stays near the target, with the link full and nothing lost."""
    result = marked(fast_hosts(pairs), hosts())
    samples = watch(result, send(result, "swift", pairs), 0.03).last(0.5)
    assert samples.round_trip_s.mean() == pytest.approx(TARGET_S, rel=0.05)
    assert samples.round_trip_s.max() < 1.2 * TARGET_S
    assert samples.goodput_gbps > 0.99 * BOTTLENECK_GBPS
    # Packets that wait, and those that are being sent.
    assert samples.queue.mean() == pytest.approx((TARGET_S - BASE_RTT_S) / (8 * PACKET_BYTES / 1e10), abs=4)


def test_swift_paces_windows_below_one_packet() -> None:
    """With more flows than packets fit under the target, TCP's smallest window would fill the queue (3.3)."""
    pairs = 64
    result = marked(fast_hosts(pairs), hosts(1), queue_limit_bytes=3 * pairs * PACKET_BYTES)
    flows = send(result, "swift", pairs)
    samples = watch(result, flows, 0.03, 100e-6).last(0.5)
    assert samples.window.mean() < 1
    assert samples.queue.mean() < pairs / 2
    assert samples.round_trip_s.mean() < 1.4 * TARGET_S
    assert samples.goodput_gbps > 0.98 * BOTTLENECK_GBPS
    assert not any(result.sender(flow).timeouts for flow in flows)
    assert result.drops("t0").queue_full == 0


@pytest.mark.parametrize("pairs", [2, 5])
@pytest.mark.parametrize("control", CONTROLS)
def test_flows_share_a_bottleneck_fairly(control: str, pairs: int) -> None:
    """Jain's index over some hundred round-trip times."""
    result = bottleneck(control, pairs)
    samples = watch(result, send(result, control, pairs), 0.06, 100e-6).last(0.6)
    assert samples.fairness >= 0.95
    assert samples.goodput_gbps > 0.98 * BOTTLENECK_GBPS


@pytest.mark.parametrize("control", CONTROLS)
def test_shares_converge_when_flows_come_and_go(control: str) -> None:
    """Chiu and Jain, 1989: additive increase and multiplicative decrease end in equal shares."""
    result = bottleneck(control, 3)
    flows = [result.add_flow(five_tuple(result.fabric, f"h{n}", f"h{3 + n}"), control) for n in range(3)]
    result.start_transfer(flows[0], 1_000_000_000)
    assert watch(result, flows[:1], 0.02).last(0.5).goodput_gbps > 0.98 * BOTTLENECK_GBPS
    result.start_transfer(flows[1], 1_000_000_000)
    assert watch(result, flows[:2], 0.06).last(0.5).fairness >= 0.95
    result.start_transfer(flows[2], 20_000_000)
    assert watch(result, flows, 0.03).last(0.3).fairness >= 0.9
    assert completion_times(result, [flows[2]], result.now_ps + 10**11)
    alone = watch(result, flows[:2], 0.03).last(0.5)
    assert alone.fairness >= 0.95
    assert alone.goodput_gbps > 0.98 * BOTTLENECK_GBPS


@pytest.mark.parametrize("acknowledge_every", [1, 4])
def test_incast_of_32_senders_costs_reno_timeouts_and_dctcp_none(acknowledge_every: int) -> None:
    """Alizadeh et al., SIGCOMM 2010, 4.2.1, with 100 packets of buffer at the port."""
    took_ms = {}
    for control in CONTROLS:
        result = marked(star(33, 10.0), hosts(2, acknowledge_every), mark_from=20, queue_limit_bytes=150_000)
        ends = [five_tuple(result.fabric, f"h{n}", "h32") for n in range(32)]
        flows = [result.add_flow(connection, control) for connection in ends]
        for _ in range(3):
            started_ps = result.now_ps
            for flow in flows:
                result.start_transfer(flow, 64_000)
            ended_ps = max(completion_times(result, flows).values())
        took_ms[control] = (ended_ps - started_ps) / 1e9
        timeouts = sum(result.sender(flow).timeouts for flow in flows)
        assert (timeouts > 10) if control == "reno" else timeouts == 0, control
    ideal_ms = 32 * 64_000 * 8 / 10e9 * 1e3
    assert took_ms["dctcp"] == pytest.approx(ideal_ms, rel=0.06)
    assert took_ms["swift"] == pytest.approx(ideal_ms, rel=0.06)
    assert took_ms["reno"] > 67  # the timer


def test_only_ecn_capable_packets_are_marked() -> None:
    """RFC 3168, 5."""
    for control, is_marked in (("reno", False), ("dctcp", True), ("swift", False)):
        result = marked(fast_hosts(1), hosts(), mark_from=0)
        (flow,) = send(result, control, 1, 1_000_000)
        assert completion_times(result, [flow])
        advance(result, result.now_ps + 10**9)
        sender = result.sender(flow)
        assert sender.delivered_packets == -(-1_000_000 // 1458)
        assert sender.marked_packets == is_marked * sender.delivered_packets
        if is_marked:
            assert sender.words["alpha"] == 1
            assert sender.window_packets == 2


def bottleneck(control: str, pairs: int) -> EmulatedFabric:
    """A dumbbell with what a control needs of switches: marks, or a buffer that overflows."""
    return marked(
        fast_hosts(pairs),
        hosts(),
        mark_from=20 if control == "dctcp" else (1 << 19) - 1,
        queue_limit_bytes=SMALL_BUFFER_BYTES,
    )
