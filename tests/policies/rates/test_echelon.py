import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from policies.rates.echelon import echelon_madd, further_tardiness_s, in_order_of_due, pressing_s
from policies.rates.madd import madd
from policies.rates.network import FloatArray
from tests.policies.rates.references import Case, cases, plain_echelon_madd, plain_pressing


def in_bytes(case: Case) -> Case:
    """The same with values of an eighth, so that a value over a capacity is in seconds."""
    return replace(case, values=[value / 8 for value in case.values])


@st.composite
def cases_with_due(draw: st.DrawFn) -> tuple[Case, FloatArray]:
    """Flows of every tier in order of when they are due; coarse numbers, so that many are due together."""
    case = draw(cases())
    due = [float(draw(st.integers(-3, 6))) for _ in case.paths]
    tiers = [sorted(tier, key=lambda flow: due[flow]) for tier in case.tiers]
    return replace(case, tiers=tiers), np.array(due)


def rates(case: Case, due: FloatArray) -> FloatArray:
    return echelon_madd(*in_bytes(case).arguments, due)


def test_flows_end_equally_late() -> None:
    """Two a second apart on a link that needs two seconds more for both: the first may take 3, the second 4 s."""
    case = Case([1.0], [(0,), (0,)], [[0, 1]], [1.5, 2.5])
    assert rates(case, np.array([1.0, 2.0])).tolist() == [0.5, 0.5]
    assert further_tardiness_s(*in_bytes(case).arguments, np.array([1.0, 2.0])).tolist() == [2.0]


def test_what_is_not_needed_yet_is_left_to_the_next_group() -> None:
    """A flow due in 4 s needs a quarter; the rest goes to a group of lower rank before more goes to it."""
    case = Case([1.0], [(0,), (0,)], [[0], [1]], [1.0, 0.75])
    assert rates(case, np.array([4.0, -9.0])).tolist() == [0.25, 0.75]
    assert rates(case, np.array([4.0, 2.0])).tolist() == [0.25 + 0.375, 0.375], "what nobody needs, the first gets"


def test_a_later_stage_waits_where_the_earlier_needs_the_link() -> None:
    case = Case([1.0, 1.0], [(0,), (0, 1), (1,)], [[0, 1, 2]], [3.0, 1.0, 2.0])
    assert rates(case, np.array([0.0, 1.0, 1.0])).tolist() == [1.0, 0.0, 1.0]


def test_a_group_that_finds_a_link_used_up_gets_leftovers_only() -> None:
    case = Case([1.0, 1.0], [(0,), (0,), (1,), (1,)], [[0], [1, 2], [3]], [1.0, 1.0, 1.0, 1.0])
    assert rates(case, np.zeros(4)).tolist() == [1.0, 0.0, 0.0, 1.0]


@given(cases_with_due())
def test_agrees_with_the_plain_version(given_case: tuple[Case, FloatArray]) -> None:
    case, due = given_case
    assert rates(case, due) == pytest.approx(plain_echelon_madd(case, due.tolist()), abs=1e-9)


@given(cases_with_due())
def test_nobody_can_be_given_more_and_no_link_carries_more_than_it_can(given_case: tuple[Case, FloatArray]) -> None:
    case, due = given_case
    carried = case.carried(rates(case, due))
    assert all(load <= capacity * (1 + 1e-9) for load, capacity in zip(carried, case.capacities, strict=True))
    for tier in case.tiers:
        for flow in tier:
            if case.values[flow] > 0:
                assert any(carried[link] >= case.capacities[link] * (1 - 1e-9) for link in case.paths[flow])


@given(cases(), st.lists(st.floats(-10, 0), min_size=8, max_size=8))
def test_groups_whose_flows_are_due_together_get_what_madd_gives_to_the_last_bit(case: Case, due: list[float]) -> None:
    by_flow = np.zeros(len(case.paths))
    for number, tier in enumerate(case.tiers):
        by_flow[tier] = due[number]
    assert rates(case, by_flow).tolist() == madd(*in_bytes(case).arguments).tolist()


@given(cases_with_due())
def test_what_ended_and_links_without_bytes_leave_no_trace(given_case: tuple[Case, FloatArray]) -> None:
    case, due = given_case
    network, order, values = in_bytes(case).arguments
    first = echelon_madd(network, order, values, due).tolist()
    late = further_tardiness_s(network, order, values, due).tolist()
    assert echelon_madd(network, order, values, due).tolist() == first
    assert further_tardiness_s(network, order, values, due).tolist() == late
    pressing_s(network, order, values, due)
    assert echelon_madd(network, order, values, due).tolist() == first
    sends = [any(case.values[flow] > 0 for flow in tier) for tier in case.tiers]
    assert [value > -math.inf for value in late] == sends


@given(cases_with_due())
def test_what_presses_agrees_with_the_plain_version(given_case: tuple[Case, FloatArray]) -> None:
    """Where rounding decides whether a stage counts, either is right."""
    case, due = given_case
    assume(all(capacity > 0 for capacity in case.capacities))
    found = pressing_s(*in_bytes(case).arguments, due)
    with_it, without_it = (plain_pressing(case, due.tolist(), margin) for margin in (1e-9, -1e-9))
    for one, *either in zip(found.tolist(), with_it, without_it, strict=True):
        assert any(one == pytest.approx(plain, abs=1e-9) for plain in either)


def pressing(sizes: list[float], due: list[float]) -> float:
    """Of one group on a link of capacity 1."""
    case = Case([1.0], [(0,)] * len(sizes), [list(range(len(sizes)))], sizes)
    (found,) = pressing_s(*in_bytes(case).arguments, np.array(due)).tolist()
    return float(found)


def test_what_is_due_much_later_does_not_press() -> None:
    """Stages of 2 s, the first of which can end in time at best: at 4 s apart another one counts, and then no more."""
    assert pressing([2.0, 2.0, 2.0], [2.0, 4.0, 6.0]) == 6.0, "the link is theirs all the while"
    assert pressing([2.0, 2.0, 2.0], [2.0, 8.0, 14.0]) == 4.0, "4 of 8 s, but 6 of 14"
    assert pressing([2.0, 2.0, 2.0], [2.0, 9.0, 15.0]) == 2.0


def test_what_can_wait_presses_by_so_much_less() -> None:
    assert pressing([2.0], [2.0]) == pressing([2.0], [-5.0]) == 2.0, "how late it is already changes nothing"
    assert pressing([2.0], [3.0]) == 3.0, "it can wait a second"
    assert pressing([2.0], [6.0]) == 4.0, "and does not hold up others that long by what it must do then"
    assert pressing([0.0], [1.0]) == 0.0


def test_where_a_link_is_down_a_group_comes_last() -> None:
    case = Case([0.0, 1.0], [(0,), (1,)], [[0], [1]], [1.0, 1.0])
    assert pressing_s(*in_bytes(case).arguments, np.zeros(2)).tolist() == [math.inf, 1.0]


@given(cases_with_due())
def test_flows_can_be_put_in_order_of_due(given_case: tuple[Case, FloatArray]) -> None:
    case, due = given_case
    network, order, values = replace(in_bytes(case), tiers=[tier[::-1] for tier in case.tiers]).arguments
    sorted_order = in_order_of_due(order.rearranged(np.arange(len(order.starts))[::-1]), due)
    tiers = [
        sorted_order.flows[start:stop].tolist()
        for start, stop in zip(sorted_order.starts, sorted_order.stops, strict=True)
    ]
    assert [sorted(tier) for tier in tiers] == [sorted(tier) for tier in case.tiers[::-1]]
    assert all([due[flow] for flow in tier] == sorted(due[flow] for flow in tier) for tier in tiers)
    echelon_madd(network, sorted_order, values, due)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_due_time_that_is_no_number_names_the_flow(bad: float) -> None:
    case = Case([1.0], [(0,), (0,)], [[0, 1]], [1.0, 1.0])
    with pytest.raises(ValueError, match="flow 1: due_s must be finite"):
        rates(case, np.array([0.0, bad]))


def test_flows_out_of_order_and_missing_due_times_are_refused() -> None:
    case = Case([1.0], [(0,), (0,)], [[0, 1]], [1.0, 1.0])
    with pytest.raises(ValueError, match=r"flow 1: due_s, 1.0, is smaller than that of the flow before it"):
        rates(case, np.array([2.0, 1.0]))
    with pytest.raises(ValueError, match="expected due_s of 2 flows, got 1"):
        rates(case, np.array([2.0]))
    with pytest.raises(ValueError, match="flow 0: remaining_bytes"):
        further_tardiness_s(*replace(case, values=[-1.0, 1.0]).arguments, np.zeros(2))
