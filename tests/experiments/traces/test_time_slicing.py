"""Jobs that send nothing and take turns on GPUs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.traces.time_slicing import TimeSlicing
from tests.experiments.traces.jobs import simulated


def course(*jobs: tuple[float, float]) -> TimeSlicing:
    """Return the time slicing of jobs, given the length and the number of their iterations."""
    return TimeSlicing.of(
        [simulated(str(number), compute_s, 0.0, compute_s, todo) for number, (compute_s, todo) in enumerate(jobs)]
    )


def test_a_finished_job_leaves_the_gpus_to_the_others() -> None:
    """Rounds take 3 s until both jobs have done 4 iterations, then 2 s."""
    slicing = course((1.0, 4), (2.0, 10))
    assert [slicing.end_s(name) for name in "01"] == [12.0, 24.0]
    assert [slicing.completed("1", after_s) for after_s in (0.0, 6.0, 12.0, 14.0, 24.0)] == [0.0, 2.0, 4.0, 5.0, 10.0]
    assert slicing.completed("0", 20.0) == 4.0


def test_equal_jobs_end_together() -> None:
    slicing = course((1.0, 3), (1.0, 3), (0.5, 3))
    assert {slicing.end_s(name) for name in "012"} == {7.5}


@given(st.lists(st.tuples(st.floats(0.1, 9.0), st.floats(0.1, 50.0)), min_size=1, max_size=4))
def test_gpus_are_always_busy(jobs: list[tuple[float, float]]) -> None:
    slicing = course(*jobs)
    ends_s = [slicing.end_s(str(number)) for number in range(len(jobs))]
    assert max(ends_s) == pytest.approx(sum(compute_s * todo for compute_s, todo in jobs))
    for number, (_, todo) in enumerate(jobs):
        assert slicing.completed(str(number), ends_s[number]) == pytest.approx(todo)
        assert slicing.completed(str(number), ends_s[number] * 0.99) < todo
