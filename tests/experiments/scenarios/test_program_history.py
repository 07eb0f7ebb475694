"""A program's reports become the history of its job."""

import pytest

from experiments.scenarios.program_history import ProgramHistory
from experiments.scenarios.timeline import Collective, ProfiledRange, Timeline
from tests.experiments.scenarios.real_hosts.jobs import jobs_of
from workloads.replay import ProfiledInterval


def test_an_iteration_computes_first_and_communicates_in_the_rest() -> None:
    _, (job,) = jobs_of({"arrival_s": 2.0})
    history = ProgramHistory(job)
    history.iteration_ended(3.0, 0.8)
    history.iteration_ended(4.0, 1.5)
    spans = [(iteration.start_s, iteration.end_s) for iteration in history.iterations]
    assert spans == [(pytest.approx(2.2), 3.0), (3.0, 4.0)], "an iteration begins after the one before"
    assert [(one.start_s, one.end_s) for one in history.computing] == [
        (pytest.approx(2.2), pytest.approx(2.7)),
        (3.0, 3.5),
    ]
    assert [(one.start_s, one.end_s) for one in history.communicating] == [(pytest.approx(2.7), 3.0), (3.5, 4.0)]


def test_the_first_iteration_begins_with_the_job() -> None:
    _, (job,) = jobs_of({"arrival_s": 2.0})
    history = ProgramHistory(job)
    history.iteration_ended(3.0, 10.0)
    assert history.iterations[0].start_s == 2.0


def test_an_iteration_shorter_than_its_description_computes_all_the_time() -> None:
    _, (job,) = jobs_of({})
    history = ProgramHistory(job)
    history.iteration_ended(1.0, 0.25)
    assert (history.computing[0].start_s, history.computing[0].end_s) == (0.75, 1.0)


def test_what_a_program_reports_of_an_iteration_counts() -> None:
    _, (job,) = jobs_of({})
    history = ProgramHistory(job)
    timeline = Timeline(
        [(0.0, 0.25), (0.5, 1.5)],
        [Collective("all-reduce 0", 0.25, 0.75, 2e6)],
        [ProfiledRange("Optimizer.step", 0.75, 1.0)],
    )
    history.iteration_ended(2.0, 1.0, timeline)
    assert [(one.start_s, one.end_s) for one in history.computing] == [(1.0, 1.25), (1.5, 2.0)]
    (sent,) = history.communicating
    assert (sent.group, sent.start_s, sent.end_s, sent.size_bytes) == ("all-reduce 0", 1.25, 1.75, 2e6)
    assert history.profiled == [ProfiledInterval("Optimizer.step", 0, 1.75, 2.0)]


def test_a_timeline_survives_its_way_as_text() -> None:
    profiled = (ProfiledRange("Optimizer.step", 0.75, 1.0),)
    timeline = Timeline(((0.0, 0.25),), (Collective("all-reduce 0", 0.25, 0.75, 2e6),), profiled)
    assert Timeline.from_json(timeline.to_json().encode()) == timeline
    assert timeline.before_scaling(500).collectives == (Collective("all-reduce 0", 0.25, 0.75, 1e9),)
