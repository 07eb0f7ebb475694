"""Cables that flap are held, longer the more they do, never too long; those that fail once are not."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from controller.links.damping import Damping, FlapHistory

DAMPING = Damping(half_life_s=10.0, cutoff=1.5, reuse=0.5, longest_hold_s=40.0)

gaps_s = st.lists(st.floats(0.0, 100.0), min_size=1, max_size=30)
dampings = st.builds(
    Damping,
    half_life_s=st.floats(0.1, 1000.0),
    cutoff=st.floats(1.0, 5.0),
    reuse=st.floats(0.1, 0.9),
    longest_hold_s=st.floats(0.1, 1000.0),
)


def after(times_s: list[float], damping: Damping | None) -> FlapHistory:
    found = FlapHistory()
    for time_s in times_s:
        found = found.fall(time_s, damping)
    return found


def times_of(gaps_s: list[float]) -> list[float]:
    return [sum(gaps_s[: number + 1]) for number in range(len(gaps_s))]


def test_a_cable_that_falls_once_is_used_as_soon_as_it_is_up() -> None:
    assert not after([5.0], DAMPING).is_held(5.0)
    assert not after([5.0, 105.0], DAMPING).is_held(105.0)


def test_one_that_falls_twice_in_a_short_time_is_held_until_its_penalty_has_decayed() -> None:
    # 1, halved in ten seconds, and 1 more: 1.5 is not above the cutoff, in nine seconds it is.
    assert not after([0.0, 10.0], DAMPING).is_held(10.0)
    penalty = 1 + 2**-0.9
    until_s = 9.0 + 10.0 * math.log2(penalty / 0.5)
    found = after([0.0, 9.0], DAMPING)
    assert found.held_until_s == pytest.approx(until_s)
    assert found.is_held(until_s - 0.001)
    assert not found.is_held(until_s + 0.001)


def test_without_damping_nothing_is_held() -> None:
    found = after([0.0, 0.1, 0.2, 0.3], None)
    assert (found.is_held(0.3), found.falls) == (False, 4)


@given(gaps_s, dampings)
def test_a_hold_ends_within_its_longest_after_the_last_fall(gaps_s: list[float], damping: Damping) -> None:
    times_s = times_of(gaps_s)
    found = after(times_s, damping)
    assert found.falls == len(times_s)
    assert not found.is_held(times_s[-1] + damping.longest_hold_s + 0.001)


@given(gaps_s, dampings)
def test_a_hold_ends_when_a_penalty_that_is_followed_step_by_step_has_decayed(
    gaps_s: list[float], damping: Damping
) -> None:
    """RFC 2439's state: suppressed above the cutoff, no longer below the reuse threshold."""
    penalty, is_suppressed = 0.0, False
    found = FlapHistory()
    for gap_s, time_s in zip(gaps_s, times_of(gaps_s), strict=True):
        penalty *= 2 ** (-gap_s / damping.half_life_s)
        is_suppressed = is_suppressed and penalty > damping.reuse
        penalty = min(penalty + 1, damping.ceiling)
        is_suppressed = is_suppressed or penalty > damping.cutoff
        found = found.fall(time_s, damping)
        reuse_s = time_s + damping.half_life_s * math.log2(penalty / damping.reuse)
        # Around the thresholds themselves either is right.
        if abs(penalty - damping.cutoff) > 1e-6 and is_suppressed:
            assert found.held_until_s == pytest.approx(reuse_s, abs=1e-5, rel=1e-9)


@given(gaps_s, dampings)
def test_falling_more_often_never_shortens_a_hold(gaps_s: list[float], damping: Damping) -> None:
    times_s = times_of(gaps_s)
    held_until_s = [after(times_s[: count + 1], damping).held_until_s for count in range(len(times_s))]
    assert held_until_s == sorted(held_until_s)


def test_thresholds_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(ValidationError, match="reuse must be less than cutoff"):
        Damping(cutoff=0.5, reuse=0.75)
