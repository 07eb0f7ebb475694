"""A Snapshot has the task graphs of jobs, as long as their profiles say."""

from dataclasses import replace

import pytest

from controller.planning.scaled_graph import scaled_graph
from controller.planning.snapshots import Snapshots
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, JobRequest, TaskGraphRequest, TransferRequest
from policies.job import MAX_COMPUTE_S
from policies.registry import find_policy
from policies.task_graph import Computation, TaskGraph, Transfer
from policies.validation import check_plan
from topologies.routing import Routing

# Two computations beside each other, and one behind them.
GRAPH = TaskGraph((Computation(1.0), Computation(0.5), Transfer((0,), (1,)), Computation(2.0, (0, 2))), is_guessed=True)


def test_a_graph_is_as_long_as_the_profile_says() -> None:
    assert scaled_graph(GRAPH, 1.5) == replace(
        GRAPH, tasks=(Computation(0.5), Computation(0.25), GRAPH.tasks[2], Computation(1.0, (0, 2)))
    )
    assert scaled_graph(GRAPH, 3.0) is GRAPH
    assert scaled_graph(GRAPH, 3.0 + 1e-12) is GRAPH
    assert scaled_graph(GRAPH, 0.0) is None
    assert scaled_graph(None, 1.0) is None


@pytest.mark.parametrize("duration_s", [5e-324, 1e-300, MAX_COMPUTE_S])
@pytest.mark.parametrize("compute_s", [5e-324, 1.0, MAX_COMPUTE_S])
def test_no_job_can_tell_a_graph_that_cannot_be_scaled(duration_s: float, compute_s: float) -> None:
    graph = scaled_graph(TaskGraph((Computation(duration_s), Computation(5e-324))), compute_s)
    assert graph is not None
    assert all(0 < task.duration_s <= MAX_COMPUTE_S for task in graph.tasks)


def test_a_snapshot_has_the_graph_that_its_job_has_now(
    registry: Registry, routing: Routing, job: JobRequest, ring: FlowGroupRequest
) -> None:
    assert job.profile is not None
    registry.register_job(job, 0.0)
    half = job.profile.compute_s / 2
    told = TaskGraphRequest((Computation(half), TransferRequest("ring", (1,), (0,)), TransferRequest("ring", (0,))))
    registry.register_flow_groups("gpt", [ring], told)
    snapshots = Snapshots(registry, routing, num_levels=4, seed=7)
    (first,) = snapshots.take(0.0, previous=None).jobs
    assert first.task_graph == TaskGraph((Computation(2 * half), Transfer((1,), (0,)), Transfer((0,))))
    assert snapshots.take(1.0, previous=None).jobs[0] is first
    registry.report_profile("gpt", replace(job.profile, compute_s=6 * half))
    (slower,) = snapshots.take(2.0, previous=None).jobs
    assert slower.task_graph == TaskGraph((Computation(6 * half), *first.task_graph.tasks[1:]))
    admission = registry.admitting("gpt", TaskGraphRequest((Computation(1.0), TransferRequest("ring"))))
    admission.admit()
    registry.report_profile("gpt", job.profile, admission)
    (amended,) = snapshots.take(3.0, previous=None).jobs
    assert amended.task_graph == TaskGraph((Computation(job.profile.compute_s), Transfer((0, 1))))


def test_a_profile_that_says_less_than_the_graph_holds_up_no_policy(
    registry: Registry, routing: Routing, job: JobRequest, ring: FlowGroupRequest
) -> None:
    """Policies look for the times of transfers between 0 and the length of the profile."""
    assert job.profile is not None
    late = TaskGraphRequest((Computation(100.0), TransferRequest("ring", after=(0,)), Computation(1.0, (1,))))
    for name, compute_s in (("gpt", 0.001), ("bert", 1.0)):
        registry.register_job(replace(job, name=name, profile=replace(job.profile, compute_s=compute_s)), 0.0)
        registry.register_flow_groups(name, [ring], late)
    snapshot = Snapshots(registry, routing, num_levels=4, seed=7).take(0.0, previous=None)
    for name in ("trainyard", "echelonflow", "crux", "cassini"):
        check_plan(find_policy(name).decide(snapshot), snapshot)
