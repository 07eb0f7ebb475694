"""Costs from measured times: linear in elements and values, and those of the slowest rank."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.compression.calibration import linear, slowest
from hostlib.compression.control.cost import Linear, MeasuredCosts

SIZES = [(10_000, 100), (1_000_000, 10_000), (1_000_000, 100_000)]
SECONDS = st.floats(0, 1e-6)


@given(st.floats(0, 1e-3), SECONDS, SECONDS)
def test_costs_are_found_from_the_times_they_give(fixed_s: float, element_s: float, value_s: float) -> None:
    true = Linear(fixed_s, element_s, value_s)
    found = linear(SIZES, [true.seconds(elements, values) for elements, values in SIZES])
    for elements, values in [*SIZES, (500_000, 20_000)]:
        assert found.seconds(elements, values) == pytest.approx(true.seconds(elements, values), rel=1e-6, abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_no_cost_is_negative_whatever_was_measured(times_s: list[float]) -> None:
    found = linear(SIZES, times_s)
    assert min(found.fixed_s, found.element_s, found.value_s) >= 0


def test_two_times_tell_nothing_of_values() -> None:
    found = linear(SIZES[:2], [0.5 + 0.01, 0.5 + 1.0])
    assert (found.fixed_s, found.element_s, found.value_s) == pytest.approx((0.5, 1e-6, 0))


def test_the_slowest_rank_counts() -> None:
    costs = [
        MeasuredCosts(select=Linear(1, 5, 3), hop_s=2, factor=Linear(1)),
        MeasuredCosts(select=Linear(2, 4, 3), hop_s=1, factor=Linear(3)),
    ]
    assert slowest(costs) == MeasuredCosts(select=Linear(2, 5, 3), hop_s=2, factor=Linear(3))
