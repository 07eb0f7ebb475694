import pytest

from workloads.arrangement import ZeroCommunicationRun, arranged
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
