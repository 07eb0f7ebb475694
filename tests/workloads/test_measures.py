from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.jobs import TrainingJob, training_jobs
from workloads.loading import SHIPPED_SCENARIOS, load_scenario
from workloads.measures import (
    Window,
    allocated_gpu_seconds,
    computing_gpu_seconds,
    gpu_utilisation,
    job_windows,
    mean_iteration_time_s,
    run_window,
    speed,
    stretches,
    utilisations_in,
)
from workloads.placement import Placement
from workloads.replay import Action, JobReplay, StartComputation
from workloads.scenario import JobSpecification, Scenario
from workloads.task_graph import FlowSpec, compute_and_send


def run_on_one_link(replays: list[JobReplay], alone_s: dict[str, float]) -> None:
    """Runs jobs whose groups take a single link in the order of the list, the first preempting the others."""
    remaining: dict[str, float] = {}
    computing: dict[tuple[str, int], float] = {}
    by_name = {replay.job.name: replay for replay in replays}

    def take(name: str, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, StartComputation):
                computing[name, action.task] = action.ends_at_s
            else:
                remaining[name] = alone_s[name]

    time_s = 0.0
    for name, replay in by_name.items():
        take(name, replay.start(0.0))
    while computing or remaining:
        sender = next((name for name in by_name if name in remaining), None)
        sent_s = time_s + remaining[sender] if sender else float("inf")
        until_s = min(sent_s, min(computing.values(), default=float("inf")))
        if sender:
            remaining[sender] -= until_s - time_s
        time_s = until_s
        for (name, task), ends_s in sorted(computing.items()):
            if ends_s == time_s:
                del computing[name, task]
                take(name, by_name[name].finish([task], time_s))
        if sender and sent_s == time_s:
            del remaining[sender]
            transfer = len(by_name[sender].job.graph.tasks) - 1
            take(sender, by_name[sender].finish([transfer], time_s))


@pytest.mark.parametrize(("order", "utilisation"), [(("job-2", "job-1"), 10 / 24), (("job-1", "job-2"), 9 / 24)])
def test_example_1_of_crux_has_the_papers_utilisation(order: tuple[str, ...], utilisation: float) -> None:
    scenario = load_scenario(Path(SHIPPED_SCENARIOS, "crux-example-1.yaml"))
    jobs = {job.name: job for job in training_jobs(scenario, scenario.topology.build())}
    replays = [JobReplay(jobs[name]) for name in order]
    run_on_one_link(replays, {"job-1": 2.0, "job-2": 1.0})
    windows = job_windows(scenario, replays, {"job-1": 4.0, "job-2": 2.0})
    assert gpu_utilisation(replays, windows) == pytest.approx(utilisation)


@pytest.fixture
def scenario(document: dict[str, Any]) -> Scenario:
    """Job a on two hosts of four GPUs from 0 s, job b on one GPU from 4 s."""
    document["jobs"].append(
        {
            "name": "b",
            "hosts": ["h1"],
            "gpus_per_host": 1,
            "arrival_s": 4.0,
            "iterations": 9,
            "workload": {"type": "phases", "compute_s": 5, "comm_start": 1, "bytes": 1, "pattern": "ring"},
        }
    )
    return Scenario.model_validate(document)


@pytest.fixture
def replays(scenario: Scenario) -> list[JobReplay]:
    """Job a: three iterations of 2 s computation, which its transfer makes 3, 4 and 3 s long. Job b cut at 12 s."""
    a, b = (JobReplay(job) for job in training_jobs(scenario, scenario.topology.build()))
    a.start(0.0)
    for start_s, end_s in [(0.0, 3.0), (3.0, 7.0), (7.0, 10.0)]:
        a.finish([0], start_s + 0.5)
        a.finish([1], start_s + 2.0)
        a.finish([2], end_s)
    b.start(4.0)
    b.finish([0], 9.0)
    b.withdraw(12.0)
    return [a, b]


IDEAL_S = {"a": 2.5, "b": 5.0}


def test_the_window_is_first_arrival_to_first_departure(scenario: Scenario, replays: list[JobReplay]) -> None:
    windows = job_windows(scenario, replays, IDEAL_S)
    assert windows == {"a": Window(0.0, 10.0), "b": Window(4.0, 10.0)}
    assert allocated_gpu_seconds(replays, windows) == {"a": 80.0, "b": 6.0}
    # One iteration of b, of five GPU-seconds in 5 s, and a fifth of one that computed 3 s and was then withdrawn.
    assert computing_gpu_seconds(replays, windows) == {"a": 48.0, "b": 6.0}
    assert gpu_utilisation(replays, windows) == pytest.approx(54 / 86)
    assert mean_iteration_time_s(replays[0], windows["a"]) == pytest.approx(10 / 3)
    assert mean_iteration_time_s(replays[1], windows["b"]) == 5.0


def test_warm_up_lasts_as_long_as_its_iterations_take_in_the_ideal(
    scenario: Scenario, replays: list[JobReplay]
) -> None:
    windows = job_windows(scenario.model_copy(update={"warm_up_iterations": 1}), replays, IDEAL_S)
    assert windows == {"a": Window(2.5, 10.0), "b": Window(9.0, 10.0)}
    # A sixth of a's first iteration counts, and the next two.
    assert computing_gpu_seconds(replays, windows) == pytest.approx({"a": 8 * (2 / 6 + 2 + 2), "b": 1.0})
    assert mean_iteration_time_s(replays[0], windows["a"]) == 3.5
    assert mean_iteration_time_s(replays[1], windows["b"]) is None


def test_a_warm_up_never_drops_a_job(scenario: Scenario, replays: list[JobReplay]) -> None:
    """Two iterations of b would take until 14 s in the ideal; its part of the window ends at 10 s."""
    windows = job_windows(scenario.model_copy(update={"warm_up_iterations": 2}), replays, IDEAL_S)
    assert windows == {"a": Window(5.0, 10.0), "b": Window(4.0, 10.0)}


def test_a_job_that_completes_nothing_counts_whatever_the_warm_up(scenario: Scenario) -> None:
    """Job a computes for 2 s, then waits for its transfer until it is withdrawn at 12 s; b departs at 6 s."""
    a, b = (JobReplay(job) for job in training_jobs(scenario, scenario.topology.build()))
    a.start(0.0)
    a.finish([0], 0.5)
    a.finish([1], 2.0)
    a.withdraw(12.0)
    b.start(4.0)
    b.withdraw(10.0)
    for warm_up in range(4):
        windows = job_windows(scenario.model_copy(update={"warm_up_iterations": warm_up}), [a, b], IDEAL_S)
        assert windows["a"] == Window(2.5 * warm_up, 10.0)
        assert computing_gpu_seconds([a], windows)["a"] == pytest.approx(8 * 2 * (10 - 2.5 * warm_up) / 12)
        assert speed(a, windows["a"], 2.5) == 0


def test_speed_is_the_share_of_the_ideals_iterations(scenario: Scenario, replays: list[JobReplay]) -> None:
    windows = job_windows(scenario, replays, IDEAL_S)
    assert speed(replays[0], windows["a"], 2.5) == pytest.approx(3 * 2.5 / 10)
    assert speed(replays[0], Window(0.0, 2.5), 2.5) == 0  # no iteration has ended by then
    assert speed(replays[0], Window(4.0, 6.0), 2.5) == pytest.approx(2.5 / 4)  # too short for one: not starved
    assert speed(replays[0], Window(3.0, 3.0), 2.5) is None


@given(st.lists(st.floats(2.0, 9.0), min_size=1, max_size=6), st.floats(0, 20), st.floats(0.01, 30))
def test_no_job_exceeds_its_ideal_wherever_a_window_cuts_its_iterations(
    times_s: list[float], from_s: float, length_s: float
) -> None:
    """Iterations of 2 s of computation, the transfers of which take the rest; alone they would take 2 s."""
    graph = compute_and_send("g", 2.0, 1.0, ("h0",), (FlowSpec("h0", 0, "h1", 0, 1.0),))
    specification: dict[str, Any] = {"name": "a", "hosts": ["h0"], "gpus_per_host": 1, "iterations": len(times_s)}
    specification["workload"] = {"type": "phases", "compute_s": 2, "comm_start": 1, "flows": []}
    job = TrainingJob(JobSpecification.model_validate(specification), Placement({"h0": ()}, {}), graph)
    replay = JobReplay(job)
    replay.start(0.0)
    now_s = 0.0
    for time_s in times_s:
        replay.finish([0], now_s + 2.0)
        replay.finish([1], now_s + time_s)
        now_s += time_s
    windows = {"a": Window(from_s, from_s + length_s)}
    computed = computing_gpu_seconds([replay], windows)["a"]
    assert computed <= length_s * 2.0 / min(times_s) * (1 + 1e-9)
    inside = sum(windows["a"].overlap_s(each.start_s, each.end_s) for each in replay.iterations)
    assert computed >= inside * 2.0 / max(times_s) * (1 - 1e-9)


def test_measure_sets_the_window_outright(scenario: Scenario, replays: list[JobReplay]) -> None:
    measured = Scenario.model_validate(scenario.model_dump() | {"measure": {"from_s": 1.0, "to_s": 11.0}})
    windows = job_windows(measured, replays, IDEAL_S)
    assert windows == {"a": Window(1.0, 10.0), "b": Window(4.0, 11.0)}
    assert computing_gpu_seconds(replays, windows) == pytest.approx({"a": 16 * (2 / 3 + 1 + 1), "b": 5 + 3 * 2 / 3})
    assert mean_iteration_time_s(replays[0], windows["a"]) == 3.5


def test_a_window_without_end_or_gpus_is_refused(scenario: Scenario, replays: list[JobReplay]) -> None:
    running = [JobReplay(replay.job) for replay in replays]
    with pytest.raises(ValueError, match="no job has departed"):
        run_window(scenario, running)
    late = Scenario.model_validate(scenario.model_dump() | {"measure": {"from_s": 50.0, "to_s": 60.0}})
    with pytest.raises(ValueError, match="no job holds a GPU"):
        gpu_utilisation(replays, job_windows(late, replays, IDEAL_S))


def test_a_window_is_cut_at_what_lies_inside_it() -> None:
    assert stretches(Window(1.0, 9.0), [9.0, 4.0, 0.5, 4.0, 6.0]) == [
        Window(1.0, 4.0),
        Window(4.0, 6.0),
        Window(6.0, 9.0),
    ]
    assert stretches(Window(1.0, 1.0), [1.0]) == []


def test_utilisation_of_a_part_counts_what_is_allocated_and_computes_there(
    scenario: Scenario, replays: list[JobReplay]
) -> None:
    windows = job_windows(scenario, replays, IDEAL_S)
    parts = [Window(0.0, 4.0), Window(4.0, 10.0), Window(10.0, 12.0)]
    first, second, last = utilisations_in(parts, replays, windows)
    assert first == pytest.approx((2 + 1) / 4)
    assert second == pytest.approx((8 * 3 + 6) / (8 * 6 + 6))
    assert last is None


def test_a_job_that_fails_does_not_end_the_window() -> None:
    scenario, replays = departed_at(5.0, 9.0, 7.0)
    replays[0].failure = "its program has ended with status 1"
    assert run_window(scenario, replays) == Window(0.0, 7.0)


def test_the_last_departure_ends_the_window_where_all_jobs_fail() -> None:
    scenario, replays = departed_at(5.0, 9.0)
    for replay in replays:
        replay.failure = "killed"
    assert run_window(scenario, replays) == Window(0.0, 9.0)


def departed_at(*times_s: float) -> tuple[Scenario, list[JobReplay]]:
    """Return jobs that have departed at these times, and their scenario."""
    scenario = load_scenario(SHIPPED_SCENARIOS / "three-jobs.yaml")
    jobs = training_jobs(scenario, scenario.topology.build())
    replays = [JobReplay(job) for job, _ in zip(jobs, times_s, strict=False)]
    for replay, time_s in zip(replays, times_s, strict=True):
        replay.departed_s = time_s
    return scenario, replays
