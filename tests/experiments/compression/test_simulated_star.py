from itertools import pairwise

import pytest

from experiments.compression.conditions import Condition, Conditions, contended, falling, fixed
from experiments.compression.simulated_star import SimulatedStar
from experiments.compression.star import HOP_S, all_gather, all_reduce, exchange

SLOW_BPS = 200e6


def test_a_ring_waits_for_its_slow_links() -> None:
    # 2 x 7/8 of 46.2 MB at 200 Mbit/s, and 14 messages one after the other.
    finish_s = SimulatedStar(fixed(200)).finish_s(all_reduce(46.2e6), 1.0)
    assert finish_s == pytest.approx(1.0 + 1.75 * 46.2e6 * 8 / SLOW_BPS + 14 * HOP_S, rel=1e-9)


def test_an_all_gather_brings_seven_payloads() -> None:
    assert SimulatedStar(fixed(200)).finish_s(all_gather(1e6), 0.0) == pytest.approx(
        7e6 * 8 / SLOW_BPS + 7 * HOP_S, rel=1e-9
    )


def test_the_flows_of_an_exchange_share_a_slow_link() -> None:
    assert SimulatedStar(fixed(200)).finish_s(exchange(1e6), 0.0) == pytest.approx(7e6 * 8 / SLOW_BPS + HOP_S, rel=1e-9)


def test_streams_share_a_slow_link_with_a_ring_flow() -> None:
    conditions = Conditions("three", (Condition(0.0, SLOW_BPS, streams=3),))
    assert SimulatedStar(conditions).finish_s(all_gather(1e6), 0.0) == pytest.approx(
        7e6 * 8 / (SLOW_BPS / 4) + 7 * HOP_S
    )


def test_a_rate_that_changes_under_way_counts_from_then_on() -> None:
    conditions = Conditions("halved twice", (Condition(0.0, 400e6), Condition(1.0, 200e6), Condition(2.0, 100e6)))
    # From 0.5 s on: 25 MB by 1 s, 25 MB by 2 s, and 10 MB at 12.5 MB/s.
    finish_s = SimulatedStar(conditions).finish_s(all_gather(60e6 / 7), 0.5)
    assert finish_s == pytest.approx(2.0 + 10e6 / 12.5e6 + 7 * HOP_S, rel=1e-9)


def test_a_remembered_collective_takes_the_same_time_later() -> None:
    star = SimulatedStar(fixed(500))
    first, second = (star.finish_s(all_reduce(1e6), start_s) - start_s for start_s in (0.0, 10.0))
    assert first == pytest.approx(second)


def test_nothing_to_send_takes_its_hops() -> None:
    assert SimulatedStar(fixed(500)).finish_s(all_reduce(0.0), 2.0) == pytest.approx(2.0 + 14 * HOP_S)


def test_scenario_2_falls_in_steps_of_200() -> None:
    rates = [part.rate_bps for part in falling(10.0).parts]
    assert (rates[0], rates[-1]) == (2e9, 200e6)
    assert {before - later for before, later in pairwise(rates)} == {200e6}


def test_a_condition_holds_from_its_first_moment_on() -> None:
    conditions = contended(10.0)
    assert [conditions.at(time_s).streams for time_s in (9.999, 10.0)] == [0, 1]
    assert conditions.change_after(10.0) == 20.0
    assert conditions.change_after(1e9) == float("inf")


def test_conditions_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="backwards: conditions must begin at 0 s"):
        Conditions("backwards", (Condition(0.0, 1e9), Condition(0.0, 2e9)))
