from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.baselines.unified_circle import UnifiedCircle, Use

PERIODS_S = st.sampled_from([1.0, 1.5, 2.0, 3.0])
USES = st.builds(
    lambda period_s, start, busy, share: Use(period_s, start * period_s, busy * period_s, share),
    PERIODS_S,
    st.integers(0, 11).map(lambda twelfths: twelfths / 12),
    st.integers(1, 12).map(lambda twelfths: twelfths / 12),
    st.sampled_from([0.25, 0.5, 1.0]),
)


def plain_score(uses: list[Use], shifts_s: list[float], until_s: float, step_s: float) -> float:
    """The definition, looked at in the middle of every step."""
    times_s = np.arange(0.0, until_s - step_s / 4, step_s) + step_s / 2
    demand = np.zeros(len(times_s))
    for use, shift_s in zip(uses, shifts_s, strict=True):
        demand += use.share * ((times_s - use.start_s - shift_s) % use.period_s < use.busy_s)
    return 1.0 - float(np.maximum(demand - 1.0, 0.0).mean())


def test_halves_fit_and_do_not_fit() -> None:
    circle = UnifiedCircle([[Use(2.0, 0.0, 1.0, 1.0)], [Use(2.0, 0.0, 1.0, 1.0)]])
    assert circle.score([0, 0]) == pytest.approx(0.5)
    assert circle.score(circle.best_turns()) == pytest.approx(1.0)
    assert circle.best_turns()[1] * circle.step_s == pytest.approx(1.0)


def test_the_circle_of_two_and_three() -> None:
    circle = UnifiedCircle([[Use(2.0, 0.0, 1.0, 1.0)], [Use(3.0, 0.0, 1.0, 1.0)]])
    assert circle.size * circle.step_s == pytest.approx(6.0)
    # The shorter is busy for half of every residue of the longer: they meet for 1 s of 6 s whatever the turn.
    assert circle.score(circle.best_turns()) == pytest.approx(1 - 1 / 6)


def test_asking_for_more_than_twice_the_rate_scores_below_nought() -> None:
    assert UnifiedCircle([[Use(1.0, 0.0, 1.0, 1.0)] * 4]).score([0]) == pytest.approx(-2.0)


@given(st.lists(USES, min_size=1, max_size=3))
def test_score_is_that_of_the_definition(uses: list[Use]) -> None:
    circle = UnifiedCircle([[use] for use in uses])
    turns = list(range(0, 12 * len(uses), 12))
    # A twelfth of any of these periods is a whole number of steps, so that every step is busy or not.
    expected = plain_score(uses, [turn * circle.step_s for turn in turns], circle.size * circle.step_s, circle.step_s)
    assert circle.score(turns) == pytest.approx(expected, abs=1e-6)


@given(st.lists(USES, min_size=2, max_size=2))
def test_two_jobs_get_the_best_of_all_turns(uses: list[Use]) -> None:
    circle = UnifiedCircle([[use] for use in uses])
    best = max(circle.score([0, turn]) for turn in range(round(uses[1].period_s / circle.step_s)))
    assert circle.score(circle.best_turns()) == pytest.approx(best, abs=1e-6)


def test_three_jobs_come_close_to_the_best_of_all_turns() -> None:
    random = np.random.default_rng(1)
    gaps = []
    for _ in range(20):
        uses = [Use(1.0, 0.0, busy_s, 1.0) for busy_s in random.uniform(0.2, 0.6, 3)]
        circle = UnifiedCircle([[use] for use in uses])
        best = max(circle.score([0, *turns]) for turns in product(range(0, 72, 4), repeat=2))
        gaps.append(best - circle.score(circle.best_turns()))
    assert max(gaps) < 0.05
    assert np.mean(gaps) < 0.01


def test_periods_without_a_short_common_multiple_are_cut_off() -> None:
    circle = UnifiedCircle([[Use(1.0, 0.0, 0.5, 1.0)], [Use(1.0314159, 0.0, 0.5, 1.0)], [Use(37.7, 1.0, 20.0, 1.0)]])
    assert circle.size == 1440
    assert len(circle.best_turns()) == 3


@given(st.lists(st.lists(USES, min_size=1, max_size=2), min_size=1, max_size=3))
def test_turned_parts_keep_their_jobs_together(parts: list[list[Use]]) -> None:
    circle = UnifiedCircle(parts)
    assert circle.best_turns()[0] == 0
    assert circle.score(circle.best_turns()) >= circle.score([0] * len(parts)) - 1e-9
