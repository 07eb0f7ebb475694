"""Isolated runs, compared with numbers computed by hand."""

from typing import Any

import pytest

from topologies.routing import Routing
from topologies.specification import StarSpecification
from workloads.isolated_run import run_isolated
from workloads.jobs import TrainingJob
from workloads.placement import Placement
from workloads.scenario import JobSpecification
from workloads.task_graph import Computation, FlowGroupSpec, FlowSpec, GroupTransfer, TaskGraph


def job(graph: TaskGraph) -> TrainingJob:
    specification: dict[str, Any] = {"name": "job", "hosts": ["h0", "h1"], "gpus_per_host": 1, "iterations": 1}
    specification["workload"] = {"type": "phases", "compute_s": 1, "comm_start": 1, "flows": []}
    return TrainingJob(JobSpecification.model_validate(specification), Placement({}, {}), graph)


@pytest.fixture
def routing() -> Routing:
    fabric = StarSpecification(kind="star", hosts=2, host_link_gbps=8, delay_us=0).build()
    return Routing(fabric, {"t0": 1})


def flow(seconds: float, offset_s: float = 0.0) -> FlowSpec:
    return FlowSpec("h0", 0, "h1", 0, seconds * 1e9, offset_s)


def test_of_a_jobs_own_transfers_the_one_needed_first_goes_first(routing: Routing) -> None:
    """Both start at 1 s and take 2 s; the second in the graph is needed at 1 s, the first at the end."""
    graph = TaskGraph(
        (
            Computation("produce", ("h0",), 1.0),
            GroupTransfer("late", (0,)),
            GroupTransfer("early", (0,)),
            Computation("consume", ("h1",), 3.0, (2,)),
        ),
        (FlowGroupSpec("late", (flow(2.0),)), FlowGroupSpec("early", (flow(2.0),))),
    )
    alone = run_isolated(job(graph), routing)
    assert alone.iteration_time_s == pytest.approx(1 + 2 + 3)
    assert alone.tardiness_s == pytest.approx({"late": 4.0, "early": 2.0})


def test_tardiness_counts_from_the_head_and_the_offsets(routing: Routing) -> None:
    """Two flows of 1 s each start at 1 s and 2 s; their ideal finishes are 0 s and 1.5 s after the first start."""
    graph = TaskGraph(
        (
            Computation("first", ("h0",), 1.0),
            GroupTransfer("g", (0,), (0,)),
            Computation("second", ("h0",), 1.0, (0,)),
            GroupTransfer("g", (2,), (1,)),
        ),
        (FlowGroupSpec("g", (flow(1.0), flow(1.0, 1.5))),),
    )
    alone = run_isolated(job(graph), routing)
    assert alone.iteration_time_s == pytest.approx(3.0)
    assert alone.tardiness_s == pytest.approx({"g": 1.0})


def test_opposite_directions_do_not_meet(routing: Routing) -> None:
    back = FlowSpec("h1", 0, "h0", 0, 2e9)
    graph = TaskGraph((GroupTransfer("g"),), (FlowGroupSpec("g", (flow(2.0), back)),))
    assert run_isolated(job(graph), routing).iteration_time_s == pytest.approx(2.0)
