import re

import pytest

from workloads.task_graph import Computation, FlowGroupSpec, FlowSpec, GroupTransfer, Task, TaskGraph

GROUP = FlowGroupSpec("g", (FlowSpec("h0", 0, "h1", 0, 1.0),))
COMPUTE = Computation("c", ("h0",), 1.0)


@pytest.mark.parametrize(
    ("tasks", "groups", "message"),
    [
        ((), (), "at least one task"),
        ((Computation("c", ("h0",), 1.0, after=(0,)),), (), "task 0 can only wait for earlier ones"),
        ((Computation("c", ("h0",), 1.0, after=(-1,)),), (), "task 0 can only wait for earlier ones"),
        ((Computation("c", ("h0",), 0.0),), (), "computation 'c' must take time"),
        ((COMPUTE, GroupTransfer("g")), (), "a transfer sends flow group 'g', which is not there"),
        ((COMPUTE,), (GROUP,), "flow group 'g': no transfer sends its flows [0]"),
        ((GroupTransfer("g"), GroupTransfer("g")), (GROUP,), "flow group 'g' cannot send its flows [0] once, or again"),
        ((GroupTransfer("g", flows=(0, 0)),), (GROUP,), "flow group 'g' cannot send its flows [0, 0] once"),
        ((GroupTransfer("g", flows=(1,)),), (GROUP,), "flow group 'g' cannot send its flows [1] once"),
        ((GroupTransfer("g"),), (GROUP, GROUP), "must have different names"),
        ((GroupTransfer("g"),), (FlowGroupSpec("g", ()),), "flow group 'g' has no flows"),
    ],
)
def test_graphs_that_could_not_be_replayed_are_refused(
    tasks: tuple[Task, ...], groups: tuple[FlowGroupSpec, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        TaskGraph(tasks, groups)


def test_computation_adds_up_over_hosts() -> None:
    graph = TaskGraph((Computation("c", ("h0", "h1"), 1.5), Computation("d", ("h0",), 0.25, after=(0,))))
    assert graph.computing_host_seconds == 3.25
