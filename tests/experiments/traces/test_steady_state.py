"""Detection of cycles and steady means."""

import numpy as np
import pytest

from experiments.traces.steady_state import CycleSearch, RunningMeans, SkipOptions


def test_a_repeated_state_closes_a_cycle() -> None:
    search = CycleSearch()
    assert search.find(b"a", 10, np.array([1, 2])) is None
    assert search.find(b"b", 20, np.array([2, 3])) is None
    cycle = search.find(b"a", 40, np.array([4, 9]))
    assert cycle is not None
    assert (cycle.period_ps, cycle.iterations.tolist()) == (30, [3, 7])


def test_means_skip_the_first_window_and_are_steady_after_two() -> None:
    """Iterations take 1 s, except for 9 s in the first window."""
    means = RunningMeans(SkipOptions(tolerance=0.01))
    ends = [means.end_window(np.array([10 * n]), np.array([(80 + 10 * n) * 10**12])) for n in range(1, 5)]
    assert ends[:3] == [None, None, None]
    assert ends[3] is not None
    assert ends[3].tolist() == [1.0]


def test_a_job_without_iterations_is_not_steady() -> None:
    means = RunningMeans(SkipOptions(tolerance=0.5))
    for number in range(1, 9):
        assert means.end_window(np.array([10 * number, 1]), np.array([10**13 * number, 10**12])) is None


@pytest.mark.parametrize("options", [{"tolerance": 0.0}, {"tolerance": 1.0}, {"window_iterations": 0}])
def test_invalid_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must"):
        SkipOptions(**options)  # type: ignore[arg-type]
