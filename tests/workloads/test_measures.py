from pathlib import Path
from typing import Any

import pytest

from workloads.jobs import training_jobs
from workloads.loading import SHIPPED_SCENARIOS, load_scenario
from workloads.measures import (
    Window,
    allocated_gpu_seconds,
    computing_gpu_seconds,
    gpu_utilisation,
    job_windows,
    mean_iteration_time_s,
    run_window,
    stretches,
    utilisation_in,
)
from workloads.replay import Action, JobReplay, StartComputation
from workloads.scenario import Scenario


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
                take(name, by_name[name].computation_finished(task, time_s))
        if sender and sent_s == time_s:
            del remaining[sender]
            transfer = len(by_name[sender].job.graph.tasks) - 1
            take(sender, by_name[sender].transfer_finished(transfer, time_s))


@pytest.mark.parametrize(("order", "utilisation"), [(("job-2", "job-1"), 10 / 24), (("job-1", "job-2"), 9 / 24)])
def test_example_1_of_crux_has_the_papers_utilisation(order: tuple[str, ...], utilisation: float) -> None:
    scenario = load_scenario(Path(SHIPPED_SCENARIOS, "crux-example-1.yaml"))
    jobs = {job.name: job for job in training_jobs(scenario, scenario.topology.build())}
    replays = [JobReplay(jobs[name]) for name in order]
    run_on_one_link(replays, {"job-1": 2.0, "job-2": 1.0})
    assert gpu_utilisation(replays, job_windows(scenario, replays)) == pytest.approx(utilisation)


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
        a.computation_finished(0, start_s + 0.5)
        a.computation_finished(1, start_s + 2.0)
        a.transfer_finished(2, end_s)
    b.start(4.0)
    b.computation_finished(0, 9.0)
    b.withdraw(12.0)
    return [a, b]


def test_the_window_is_first_arrival_to_first_departure(scenario: Scenario, replays: list[JobReplay]) -> None:
    windows = job_windows(scenario, replays)
    assert windows == {"a": Window(0.0, 10.0), "b": Window(4.0, 10.0)}
    assert allocated_gpu_seconds(replays, windows) == {"a": 80.0, "b": 6.0}
    assert computing_gpu_seconds(replays, windows) == {"a": 48.0, "b": 6.0}
    assert gpu_utilisation(replays, windows) == pytest.approx(54 / 86)
    assert mean_iteration_time_s(replays[0], windows["a"]) == pytest.approx(10 / 3)
    assert mean_iteration_time_s(replays[1], windows["b"]) == 5.0


def test_warm_up_iterations_of_each_job_do_not_count(scenario: Scenario, replays: list[JobReplay]) -> None:
    windows = job_windows(scenario.model_copy(update={"warm_up_iterations": 1}), replays)
    assert windows == {"a": Window(3.0, 10.0), "b": Window(9.0, 10.0)}
    assert gpu_utilisation(replays, windows) == pytest.approx((4 * 8 + 1) / (7 * 8 + 1))
    assert mean_iteration_time_s(replays[0], windows["a"]) == 3.5
    assert mean_iteration_time_s(replays[1], windows["b"]) is None


def test_a_job_that_never_warms_up_is_not_measured(scenario: Scenario, replays: list[JobReplay]) -> None:
    windows = job_windows(scenario.model_copy(update={"warm_up_iterations": 2}), replays)
    assert windows["b"].length_s == 0
    assert gpu_utilisation(replays, windows) == pytest.approx(2 / 3)


def test_measure_sets_the_window_outright(scenario: Scenario, replays: list[JobReplay]) -> None:
    measured = Scenario.model_validate(scenario.model_dump() | {"measure": {"from_s": 1.0, "to_s": 11.0}})
    windows = job_windows(measured, replays)
    assert windows == {"a": Window(1.0, 10.0), "b": Window(4.0, 11.0)}
    assert computing_gpu_seconds(replays, windows) == {"a": 40.0, "b": 7.0}
    assert mean_iteration_time_s(replays[0], windows["a"]) == 3.5


def test_a_window_without_end_or_gpus_is_refused(scenario: Scenario, replays: list[JobReplay]) -> None:
    running = [JobReplay(replay.job) for replay in replays]
    with pytest.raises(ValueError, match="no job has departed"):
        run_window(scenario, running)
    late = Scenario.model_validate(scenario.model_dump() | {"measure": {"from_s": 50.0, "to_s": 60.0}})
    with pytest.raises(ValueError, match="no job holds a GPU"):
        gpu_utilisation(replays, job_windows(late, replays))


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
    windows = job_windows(scenario, replays)
    assert utilisation_in(Window(0.0, 4.0), replays, windows) == pytest.approx((2 + 1) / 4)
    assert utilisation_in(Window(4.0, 10.0), replays, windows) == pytest.approx((8 * 3 + 6) / (8 * 6 + 6))
    assert utilisation_in(Window(10.0, 12.0), replays, windows) is None
