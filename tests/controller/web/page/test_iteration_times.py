"""Iteration times follow from the times at which instances begin."""

import pytest

from controller.registry.jobs import FlowGroupInstance
from controller.web.page.iteration_times import IterationTimes


def test_the_time_is_the_mean_over_the_last_instances_seen() -> None:
    times = IterationTimes()
    assert times.note("gpt", {}) is None
    assert times.note("gpt", {"ring": FlowGroupInstance(3, 10.0)}) is None
    assert times.note("gpt", {"ring": FlowGroupInstance(4, 11.0)}) == pytest.approx(1.0)
    # Instances that nobody saw count too.
    assert times.note("gpt", {"ring": FlowGroupInstance(7, 17.0)}) == pytest.approx(7 / 4)
    assert times.note("gpt", {"ring": FlowGroupInstance(7, 17.0, has_ended=True)}) == pytest.approx(7 / 4)


def test_a_job_that_begins_anew_is_measured_anew() -> None:
    times = IterationTimes()
    for iteration in range(5):
        times.note("gpt", {"ring": FlowGroupInstance(iteration, 2.0 * iteration)})
    assert times.note("gpt", {"ring": FlowGroupInstance(0, 100.0)}) is None
    assert times.note("gpt", {"ring": FlowGroupInstance(1, 103.0)}) == pytest.approx(3.0)


def test_old_iterations_and_other_jobs_are_forgotten() -> None:
    times = IterationTimes()
    for iteration in range(100):
        newest = times.note("gpt", {"ring": FlowGroupInstance(iteration, iteration * (1.0 if iteration < 50 else 2.0))})
    assert newest == pytest.approx(2.0)
    times.keep(set())
    assert times.note("gpt", {"ring": FlowGroupInstance(100, 300.0)}) is None
