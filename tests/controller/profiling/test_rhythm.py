"""Periods from counters, measured against made-up jobs whose truth is known, and against traffic without any rhythm."""

import numpy as np
import pytest

from controller.profiling.rhythm import MIN_ITERATIONS, Rhythm, find_rhythm
from tests.controller.profiling.series import RATE_BYTES_PER_S, Series, Stretch, series

PATTERNS: dict[str, list[Stretch]] = {
    "gpt": [(1.12, 0.41)],
    "bert, which hardly pauses": [(0.1, 0.364)],
    "bursts of two samples": [(0.25, 0.03)],
    "bursts of less than a sample": [(0.1, 0.012)],
    "buckets behind a long gap": [(0.3, 0.05), *[(0.02, 0.05)] * 6],
    "micro-batches, then gradients": [(0.2, 0.03), *[(0.05, 0.03)] * 7, (0.1, 0.3)],
    "micro-batches alone": [(0.1, 0.03), *[(0.05, 0.03)] * 7],
    "micro-batches, the first only half as late again": [(0.075, 0.03), *[(0.05, 0.03)] * 7],
    "layers there and back": [*[(0.03, 0.02)] * 24, *[(0.06, 0.04)] * 24],
    "two equal bursts, unevenly": [(0.5, 0.1), (0.4, 0.1)],
    "long gaps": [(8.0, 0.5)],
}


def rhythm_of(read: Series) -> Rhythm | None:
    return find_rhythm(read.times_s, read.counted_bytes)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_period_and_bytes_of_iterations_whose_lengths_differ_by_a_fifth(pattern: str) -> None:
    iteration = PATTERNS[pattern]
    for seed in range(12):
        read = series(iteration, seed)
        rhythm = rhythm_of(read)
        assert rhythm is not None
        assert rhythm.period_s == pytest.approx(read.period_s, rel=0.02)
        assert rhythm.iteration_bytes == pytest.approx(sum(busy_s for _, busy_s in iteration) * RATE_BYTES_PER_S, 0.02)
        assert 28 <= rhythm.iterations <= 31


def test_gaps_that_only_every_other_iteration_has_are_still_an_iteration_apart() -> None:
    """A parameter server's: lengths differ by more than the gap is long, so that iterations run into each other."""
    for seed in range(40):
        read = series([(0.09, 2.17)], seed)
        rhythm = rhythm_of(read)
        assert rhythm is not None
        assert rhythm.period_s == pytest.approx(read.period_s, rel=0.02)


def test_period_and_gap_of_hundreds_of_jobs_with_one_burst() -> None:
    random = np.random.default_rng(7)
    wrong = 0
    for seed in range(300):
        gap_s, share, spread = random.uniform(0.1, 3.0), random.uniform(0.1, 0.75), random.uniform(0.0, 0.2)
        busy_s = gap_s * share / (1 - share)
        read = series([(gap_s, busy_s)], seed, spread=spread, sample_s=min(0.02, busy_s / 3))
        rhythm = rhythm_of(read)
        assert rhythm is not None
        is_right = rhythm.period_s == pytest.approx(read.period_s, rel=0.02)
        wrong += not is_right or rhythm.gap_s != pytest.approx(gap_s, rel=0.1, abs=0.1 * read.period_s)
    assert wrong <= 1


def test_a_pause_for_a_checkpoint_is_no_iteration() -> None:
    read = series(PATTERNS["gpt"], seed=3, pause=(12, 20.0))
    rhythm = rhythm_of(read)
    assert rhythm is not None
    assert rhythm.period_s == pytest.approx(read.period_s, rel=0.02)


def test_the_clock_and_the_unit_of_counting_do_not_matter() -> None:
    read = series(PATTERNS["gpt"], seed=5)
    here, there = rhythm_of(read), find_rhythm(read.times_s + 1e6, read.counted_bytes / 64 + 1e12)
    assert here is not None
    assert there is not None
    assert there.period_s == pytest.approx(here.period_s, rel=1e-3)
    assert there.iteration_bytes == pytest.approx(here.iteration_bytes / 64, rel=1e-3)


@pytest.mark.parametrize("iterations", range(2, MIN_ITERATIONS - 1))
def test_few_iterations_are_no_rhythm_yet(iterations: int) -> None:
    assert rhythm_of(series(PATTERNS["gpt"], seed=1, iterations=iterations)) is None


def test_traffic_without_rhythm_has_none() -> None:
    times_s = np.arange(0.0, 30.0, 0.02)
    assert find_rhythm(times_s, np.zeros_like(times_s)) is None
    assert find_rhythm(times_s, times_s * RATE_BYTES_PER_S) is None
    random = np.random.default_rng(1)
    assert find_rhythm(times_s, np.cumsum(random.uniform(0.9, 1.1, len(times_s)))) is None
    found = 0
    for _ in range(60):
        bursts = random.integers(9, 60)
        steps_s = np.column_stack([random.exponential(0.5, bursts), random.exponential(0.3, bursts)])
        sent_s = np.column_stack([np.zeros(bursts), steps_s[:, 1]])
        read_s = np.arange(0.0, steps_s.sum(), 0.02)
        found += find_rhythm(read_s, np.interp(read_s, np.cumsum(steps_s), np.cumsum(sent_s))) is not None
    assert found <= 1


def test_counts_that_fall_and_times_that_do_not_ascend_are_refused() -> None:
    with pytest.raises(ValueError, match="ascend"):
        find_rhythm(np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 2.0]))
    with pytest.raises(ValueError, match="fall"):
        find_rhythm(np.array([0.0, 1.0, 2.0]), np.array([0.0, 2.0, 1.0]))
