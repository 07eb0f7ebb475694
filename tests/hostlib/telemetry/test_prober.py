"""The prober explores every port in turn, refreshes kept ports, and never exceeds its share."""

from collections import Counter
from ipaddress import IPv4Address

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.telemetry.prober import (
    CONFIRMATIONS,
    FIRST_SOURCE_PORT,
    LAST_SOURCE_PORT,
    Pace,
    Pair,
    Prober,
    Target,
)
from hostlib.telemetry.probes import Probe, wire_bytes
from hostlib.telemetry.receiver import IDLE_NS

NIC = IPv4Address("10.0.0.1")
OTHER_NIC = IPv4Address("10.0.0.2")
PAIR = Pair(NIC, IPv4Address("10.0.2.1"))
SECOND = Pair(NIC, IPv4Address("10.0.3.1"))
RATE_BPS = 1e9
PROBE_BITS = 8 * wire_bytes(5)
PACE = Pace(steady_share=0.001, start_share=0.01, quick_probes=50, refresh_s=1.0, burst_s=0.01)


def prober(pace: Pace = PACE) -> Prober:
    return Prober({NIC: RATE_BPS, OTHER_NIC: RATE_BPS}, session=1, pace=pace)


def sent(prober: Prober, from_s: float, to_s: float) -> list[tuple[float, Probe]]:
    """Return all probes up to a time, each taken as soon as it is due."""
    found, now_s = [], from_s
    while now_s <= to_s:
        found += [(now_s, probe) for probe in prober.take(now_s)]
        next_s = prober.next_s
        if next_s is None:
            break
        now_s = max(now_s, next_s) + 1e-9
    return found


def test_without_targets_nothing_is_sent() -> None:
    idle = prober()
    assert idle.take(0.0) == []
    assert idle.next_s is None
    idle.set_targets([Target(Pair(IPv4Address("10.9.9.9"), NIC))], 0.0)
    assert idle.take(0.0) == []
    assert idle.next_s is None


def test_ports_are_tried_in_turn_and_numbered() -> None:
    exploring = prober()
    exploring.set_targets([Target(PAIR)], 0.0)
    probes = [probe for _, probe in sent(exploring, 0.0, 0.01)]
    ports = [probe.five_tuple.source_port for probe in probes]
    assert ports == list(range(FIRST_SOURCE_PORT, FIRST_SOURCE_PORT + len(ports)))
    assert [probe.mark.sequence for probe in probes] == list(range(len(probes)))
    assert {(probe.mark.port_sequence, probe.mark.session) for probe in probes} == {(0, 1)}
    assert {probe.five_tuple.destination_address for probe in probes} == {PAIR.destination_address}


def test_after_the_last_port_comes_the_first_but_not_those_that_are_known() -> None:
    exploring = prober(Pace(steady_share=1, start_share=1, quick_probes=0, refresh_s=1e9, burst_s=1e9))
    exploring.set_targets([Target(PAIR, (FIRST_SOURCE_PORT + 1,))], 0.0)
    every = LAST_SOURCE_PORT - FIRST_SOURCE_PORT + 1
    probes = [probe for _, probe in sent(exploring, 0.0, (every + 10) * PROBE_BITS / RATE_BPS)]
    counts = Counter(probe.five_tuple.source_port for probe in probes)
    assert len(counts) == every
    assert counts[FIRST_SOURCE_PORT + 1] == CONFIRMATIONS
    assert counts[FIRST_SOURCE_PORT] == 2


def test_a_port_that_is_kept_is_confirmed_at_once_and_then_refreshed() -> None:
    keeping = prober()
    keeping.set_targets([Target(PAIR, (50_000,), is_exploring=False)], 0.0)
    probes = sent(keeping, 0.0, 30.0)
    times_s = [time_s for time_s, _ in probes]
    assert times_s[:CONFIRMATIONS] == pytest.approx([0.0] * CONFIRMATIONS, abs=0.1)
    rounds_s = np.diff([0.0, *times_s[CONFIRMATIONS:]])
    assert 0.5 <= min(rounds_s) < 0.6
    assert 0.9 < max(rounds_s) <= 1.0 + 1e-6
    assert [probe.mark.port_sequence for _, probe in probes] == list(range(1, len(probes) + 1))
    last_s = times_s[-1]
    keeping.set_targets([Target(PAIR, (50_000,), is_exploring=False)], 30.0)
    assert 0.5 <= sent(keeping, 30.0, 31.5)[0][0] - last_s <= 1.0 + 1e-6


def test_a_port_that_is_dropped_and_comes_back_is_refreshed_once_a_period() -> None:
    keeping = prober()
    kept, dropped = [Target(PAIR, (50_000,), is_exploring=False)], [Target(PAIR, (), is_exploring=False)]
    for targets in (kept, dropped, kept):
        keeping.set_targets(targets, 0.0)
    assert min(np.diff([time_s for time_s, _ in sent(keeping, 0.0, 10.5)[2 * CONFIRMATIONS :]])) >= 0.5


def test_rounds_keep_the_order_of_ports_also_after_a_pause() -> None:
    keeping, ports = prober(), tuple(range(50_000, 50_007))
    for number in range(len(ports)):
        keeping.set_targets([Target(PAIR, ports[: number + 1], is_exploring=False)], number / len(ports))
    for from_s in (1.0, 100.0):
        probes = [probe.five_tuple.source_port for _, probe in sent(keeping, from_s, from_s + 20.0)]
        rounds = probes[(CONFIRMATIONS + 1) * len(ports) :]  # what waited comes first
        assert rounds[: len(ports) * 15] == rounds[: len(ports)] * 15


def test_probes_see_all_of_what_repeats_as_often_as_they_do() -> None:
    """Includes a period as long as an average round, and ports that all start at once."""
    for period_s in (0.25, 0.5, 0.75, 1.0, 2.0):
        for session in range(5):
            keeping = Prober({NIC: RATE_BPS}, session, PACE)
            keeping.set_targets([Target(PAIR, (50_000, 50_001), is_exploring=False)], 0.0)
            phases = np.array([time_s for time_s, _ in sent(keeping, 1.0, 200.0)]) / period_s
            assert abs(np.exp(2j * np.pi * phases).mean()) < 0.35


def test_a_pair_that_is_left_and_wanted_again_counts_on() -> None:
    exploring = prober()
    exploring.set_targets([Target(PAIR), Target(SECOND)], 0.0)
    before = [probe for _, probe in sent(exploring, 0.0, 5.0)]
    for now_s in (5.0, 6.0):
        exploring.set_targets([Target(PAIR)], now_s)
    exploring.set_targets([Target(PAIR), Target(SECOND)], 7.0)
    after = [probe for _, probe in sent(exploring, 7.0, 12.0)]
    for pair in (PAIR, SECOND):
        numbers = [
            probe.mark.sequence
            for probe in before + after
            if probe.five_tuple.destination_address == pair.destination_address
        ]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) > 100


def test_a_pair_that_receivers_have_forgotten_counts_from_the_start() -> None:
    exploring = prober()
    exploring.set_targets([Target(PAIR)], 0.0)
    assert len(sent(exploring, 0.0, 1.0)) > 1
    exploring.set_targets([], 1.0)
    exploring.set_targets([Target(PAIR)], 1.0 + 3 * IDLE_NS / 1e9)
    assert [probe.mark.sequence for probe in exploring.take(182.0)][:1] == [0]


def test_pairs_are_explored_in_turn() -> None:
    exploring = prober()
    exploring.set_targets([Target(PAIR), Target(SECOND)], 0.0)
    counts = Counter(probe.five_tuple.destination_address for _, probe in sent(exploring, 0.0, 0.015))
    assert abs(counts[PAIR.destination_address] - counts[SECOND.destination_address]) <= 1


def test_what_is_tried_and_what_is_kept_do_not_starve_each_other() -> None:
    pace = Pace(steady_share=0.001, start_share=0.01, quick_probes=0, refresh_s=0.001, burst_s=0.01)
    busy = prober(pace)
    kept = tuple(range(60_000, 60_050))
    busy.set_targets([Target(PAIR, kept)], 0.0)
    ports = Counter(probe.five_tuple.source_port in kept for _, probe in sent(busy, 0.0, 1.0))
    assert ports[True] - CONFIRMATIONS * len(kept) == pytest.approx(ports[False], rel=0.05)


def test_the_start_is_quick_and_ends() -> None:
    exploring = prober()
    exploring.set_targets([Target(PAIR)], 0.0)
    times_s = [time_s for time_s, _ in sent(exploring, 0.0, 1.0)]
    quick_s = PACE.quick_probes * PROBE_BITS / (PACE.start_share * RATE_BPS)
    burst = PACE.burst_s * PACE.steady_share * RATE_BPS / PROBE_BITS
    assert PACE.quick_probes <= sum(time_s < quick_s for time_s in times_s) <= PACE.quick_probes + burst + 1
    steady = [time_s for time_s in times_s if time_s > quick_s]
    assert len(steady) == pytest.approx((1 - quick_s) * PACE.steady_share * RATE_BPS / PROBE_BITS, abs=burst + 1)


def test_what_was_not_sent_in_time_is_made_up_for_but_little() -> None:
    late = prober()
    late.set_targets([Target(PAIR)], 0.0)
    assert len(late.take(100.0)) == pytest.approx(PACE.burst_s * PACE.start_share * RATE_BPS / PROBE_BITS + 1, abs=1)


@pytest.mark.slow
@given(
    num_ports=st.integers(0, 200),
    is_exploring=st.booleans(),
    tick_s=st.sampled_from([0.0003, 0.001, 0.007, 0.1]),
)
def test_a_nic_never_takes_more_than_its_share(num_ports: int, is_exploring: bool, tick_s: float) -> None:
    pace = Pace(steady_share=0.001, start_share=1.0, quick_probes=0, refresh_s=0.05, burst_s=0.01)
    busy = prober(pace)
    ports = tuple(range(50_000, 50_000 + num_ports))
    busy.set_targets([Target(PAIR, ports, is_exploring), Target(SECOND, ports, is_exploring)], 0.0)
    ticks = 400
    count = sum(len(busy.take(tick * tick_s)) for tick in range(ticks)) - 2 * CONFIRMATIONS * num_ports
    allowed = (ticks * tick_s + pace.burst_s) * pace.steady_share * RATE_BPS / PROBE_BITS + 1
    assert count <= allowed
    if is_exploring and tick_s < pace.burst_s:
        assert count >= 0.95 * ticks * tick_s * pace.steady_share * RATE_BPS / PROBE_BITS - 2


@pytest.mark.parametrize(
    "keys",
    [
        {"steady_share": 0.0},
        {"steady_share": 0.1, "start_share": 0.01},
        {"start_share": 1.1},
        {"refresh_s": 0.0},
        {"burst_s": -1.0},
        {"quick_probes": -1},
    ],
)
def test_a_pace_that_cannot_be_meant_is_refused(keys: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must"):
        Pace(**keys)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rate must be positive"):
        Prober({NIC: 0.0}, 1)
