from dataclasses import replace

import pytest

from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.arrangement import Stage, ZeroCommunicationRun, arranged, split_by_stage
from workloads.isolated_run import run_isolated
from workloads.jobs import TrainingJob, training_jobs
from workloads.loading import SHIPPED_SCENARIOS, load_scenario
from workloads.task_graph import Computation, FlowGroupSpec, FlowSpec, GroupTransfer, TaskGraph

FLOW = FlowSpec("h0", 0, "h1", 0, 1.0)


def test_a_flow_is_due_when_its_consumer_would_start() -> None:
    graph = TaskGraph(
        (
            Computation("produce 0", ("h0",), 1.0),
            GroupTransfer("g", (0,), (1,)),
            Computation("produce 1", ("h0",), 1.0, (0,)),
            GroupTransfer("g", (2,), (0,)),
            Computation("consume 0", ("h1",), 4.0, (1,)),
            Computation("consume 1", ("h1",), 4.0, (4, 3)),
        ),
        (FlowGroupSpec("g", (FLOW, FLOW)),),
    )
    run = ZeroCommunicationRun.of(graph)
    assert run.start_s == (0.0, 1.0, 1.0, 2.0, 1.0, 5.0)
    assert run.duration_s == 9.0
    assert [flow.offset_s for flow in arranged(graph).flow_groups[0].flows] == [4.0, 0.0]


def test_a_transfer_that_only_transfers_wait_for_is_due_with_the_first_of_these() -> None:
    graph = TaskGraph(
        (
            GroupTransfer("a", (), (0,)),
            GroupTransfer("a", (0,), (1,)),
            Computation("before", ("h1",), 3.0),
            Computation("use", ("h1",), 1.0, (1, 2)),
            GroupTransfer("rest", (0,)),
        ),
        (FlowGroupSpec("a", (FLOW, FLOW)), FlowGroupSpec("rest", (FLOW,))),
    )
    assert ZeroCommunicationRun.of(graph).consumption_s == (3.0, 3.0, 3.0, 4.0, 4.0)
    assert [flow.offset_s for group in arranged(graph).flow_groups for flow in group.flows] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("comm_start", [0.0, 0.5])
def test_flows_that_only_the_end_of_the_iteration_waits_for_are_a_coflow(comm_start: float) -> None:
    graph = TaskGraph(
        (Computation("c", ("h0",), 1.0), GroupTransfer("g", (0,) if comm_start else ())),
        (FlowGroupSpec("g", (FLOW, FLOW)),),
    )
    assert [flow.offset_s for flow in arranged(graph).flow_groups[0].flows] == [0.0, 0.0]


@pytest.mark.parametrize("name", ["pipeline", "fsdp"])
def test_a_job_does_the_same_however_its_groups_are_told(name: str) -> None:
    scenario = load_scenario(SHIPPED_SCENARIOS / f"{name}.yaml")
    fabric = scenario.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, 1))
    for job in training_jobs(scenario, fabric):
        told, stages = split_by_stage(job.graph)
        assert ZeroCommunicationRun.of(told) == ZeroCommunicationRun.of(job.graph)
        assert [sent(task, told) for task in told.tasks] == [sent(task, job.graph) for task in job.graph.tasks]
        assert {flow.offset_s for group in told.flow_groups for flow in group.flows} == {0.0}
        for group in job.graph.flow_groups:
            offsets_s = sorted(stage.offset_s for stage in stages.values() if stage.group == group.name)
            assert offsets_s == sorted({flow.offset_s for flow in group.flows})
        alone, alone_told = (run_isolated(one, routing) for one in (job, with_graph(job, told)))
        assert alone.iteration_time_s == alone_told.iteration_time_s


def with_graph(job: TrainingJob, graph: TaskGraph) -> TrainingJob:
    return replace(job, graph=graph)


def sent(task: Computation | GroupTransfer, graph: TaskGraph) -> object:
    """Return a computation, or what a transfer waits for and sends, without the name of its group."""
    if isinstance(task, Computation):
        return task
    (group,) = (group for group in graph.flow_groups if group.name == task.group)
    flows = [replace(group.flows[number], offset_s=0.0) for number in graph.flows_of(task)]
    return task.after, flows


def flow(offset_s: float) -> FlowSpec:
    return FlowSpec("h0", 0, "h1", 0, 1.0, offset_s)


def test_releases_that_are_due_together_are_one_stage() -> None:
    group = FlowGroupSpec("g", (flow(1.0), flow(0.0), flow(1.0)))
    tasks = tuple(GroupTransfer("g", flows=(number,)) for number in range(3))
    told, stages = split_by_stage(TaskGraph(tasks, (group,)))
    assert stages == {"g #0": Stage("g", 0.0), "g #1": Stage("g", 1.0)}
    assert [(one.name, len(one.flows)) for one in told.flow_groups] == [("g #0", 1), ("g #1", 2)]
    assert [task.group for task in told.tasks if isinstance(task, GroupTransfer)] == ["g #1", "g #0", "g #1"]


def test_a_release_that_is_due_apart_is_refused_by_group() -> None:
    graph = TaskGraph((GroupTransfer("g"),), (FlowGroupSpec("g", (flow(0.0), flow(1.0))),))
    with pytest.raises(ValueError, match="flow group 'g': flows of one transfer have different ideal finishes"):
        split_by_stage(graph)
