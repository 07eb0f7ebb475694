"""A start shift is applied once, and again where iterations have drifted by more than 5 %."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.start_shift import StartShift


def test_a_shift_is_applied_once_and_a_new_one_again() -> None:
    shift = StartShift(10.0)
    assert shift.delay_s(10.0, 0.25, 1.0) == 0.25
    assert shift.delay_s(11.25, 0.25, 1.0) == 0.0
    assert shift.delay_s(12.25, 0.5, 1.0) == 0.25
    assert shift.delay_s(13.5, 0.5, 1.0) == 0.0


def test_a_job_that_came_into_the_beat_of_others_waits_for_its_own() -> None:
    """The job ran three slow iterations before it got its shift; beats count from its arrival."""
    shift = StartShift(10.0)
    assert [shift.delay_s(now_s, None, 1.0) for now_s in (10.0, 11.5, 13.0)] == [0.0, 0.0, 0.0]
    assert shift.delay_s(14.5, 0.25, 1.0) == 0.75


def test_without_a_shift_nothing_waits() -> None:
    shift = StartShift(0.0)
    assert shift.delay_s(0.0, 0.25, 1.0) == 0.25
    assert shift.delay_s(1.75, None, 1.0) == 0.0
    assert shift.delay_s(2.75, 0.25, 1.0) == 0.5


@pytest.mark.parametrize(("late_s", "delay_s"), [(0.04, 0.0), (-0.04, 0.0), (0.2, 0.8), (-0.2, 0.2)])
def test_small_drift_is_left_alone_and_large_drift_waits_for_the_beat(late_s: float, delay_s: float) -> None:
    shift = StartShift(0.0)
    shift.delay_s(0.0, 0.0, 1.0)
    assert shift.delay_s(5.0 + late_s, 0.0, 1.0) == pytest.approx(delay_s)


@given(now_s=st.floats(0, 1e6), shift_s=st.floats(0, 10), iteration_s=st.floats(0.01, 100), later_s=st.floats(0, 1e4))
def test_after_its_wait_an_iteration_is_within_the_tolerance(
    now_s: float, shift_s: float, iteration_s: float, later_s: float
) -> None:
    shift = StartShift(now_s)
    shift.delay_s(now_s, shift_s, iteration_s)
    start_s = now_s + shift_s + later_s
    delay_s = shift.delay_s(start_s, shift_s, iteration_s)
    assert 0 <= delay_s <= iteration_s
    off = (start_s + delay_s - now_s - shift_s) / iteration_s % 1
    assert min(off, 1 - off) <= 0.05 + 1e-6


def test_an_iteration_without_length_is_refused() -> None:
    with pytest.raises(ValueError, match="iteration_s"):
        StartShift(0.0).delay_s(0.0, 0.0, 0.0)
