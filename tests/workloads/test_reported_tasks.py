"""A job with a wrong profile tells a task graph that agrees with it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.flows import FlowGroup
from policies.task_graph import Computation, Transfer
from policies.transfers import Transfers
from topologies.specification import ClosSpecification
from workloads.arrangement import ZeroCommunicationRun
from workloads.jobs import TrainingJob, training_jobs
from workloads.perturbations import ReportingError
from workloads.scenario import Scenario
from workloads.task_graph import TaskGraph

_WORKLOADS = {
    "phases": {"type": "phases", "compute_s": 0.4, "comm_start": 0.5, "pattern": "ring", "bytes": 10**6},
    "from the start": {"type": "phases", "compute_s": 0.4, "comm_start": 0.0, "pattern": "ring", "bytes": 10**6},
    "at the end": {"type": "phases", "compute_s": 0.4, "comm_start": 1.0, "pattern": "ring", "bytes": 10**6},
    "buckets": {"type": "dp", "model": "bert", "buckets": 3},
    "gathers first": {"type": "fsdp", "model": "bert", "layer_groups": 3},
    "pipeline": {"type": "pp", "model": "bert", "micro_batches": 4, "schedule": "1f1b"},
}
_CLOS = ClosSpecification(
    kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=2
)


def job_with(workload: str, error: ReportingError) -> TrainingJob:
    """A job that makes this error."""
    job = {"name": "a", "gpus": 16, "gpus_per_host": 8, "iterations": 1, "workload": _WORKLOADS[workload]}
    scenario = Scenario.model_validate({"name": "a", "topology": _CLOS, "jobs": [job]})
    (placed,) = training_jobs(scenario, _CLOS.build())
    return replace(placed, reporting_error=error)


@pytest.mark.parametrize("workload", _WORKLOADS)
def test_a_job_without_an_error_tells_the_truth(workload: str) -> None:
    job = job_with(workload, ReportingError())
    assert job.reported_tasks is job.graph.tasks
    assert job.reported_graph == job.played_graph


@pytest.mark.parametrize("workload", _WORKLOADS)
@given(overlap=st.floats(0.05, 1.95))
def test_the_first_transfer_starts_when_the_profile_says_and_an_iteration_is_as_long_as_before(
    workload: str, overlap: float
) -> None:
    job = job_with(workload, ReportingError(overlap=overlap))
    truth, told = job.profile, job.reported_profile
    run = ZeroCommunicationRun.of(TaskGraph(job.reported_tasks, job.graph.flow_groups))
    assert run.duration_s == pytest.approx(truth.compute_s)
    tasks = job.reported_graph.tasks
    starts_s = [start for task, start in zip(tasks, run.start_s, strict=True) if isinstance(task, Transfer)]
    assert min(starts_s) == pytest.approx(told.comm_start * truth.compute_s, abs=2e-6 * truth.compute_s)
    assert job.reported_graph.num_flows == job.played_graph.num_flows


def test_what_is_computed_before_and_after_the_first_transfer_is_scaled() -> None:
    job = job_with("phases", ReportingError(overlap=0.5))
    assert job.reported_graph.tasks == (
        Computation(pytest.approx(0.3)),
        Computation(pytest.approx(0.1), (0,)),
        Transfer(tuple(range(job.played_graph.num_flows)), (0,)),
    )


def test_a_job_that_sends_from_the_start_and_does_not_know_it_tells_a_computation_before() -> None:
    job = job_with("gathers first", ReportingError(overlap=0.75))
    first, gather, *_ = job.reported_graph.tasks
    assert first == Computation(pytest.approx(job.profile.compute_s / 4))
    assert gather.after == (0,)
    groups = [FlowGroup(group.name, group.flows) for group in job.graph.flow_groups]
    told = Transfers.of_graph(groups, job.reported_graph)
    assert told.release_s.min() == pytest.approx(job.profile.compute_s / 4)
