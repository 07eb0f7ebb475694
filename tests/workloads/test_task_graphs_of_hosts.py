"""The task graphs that the host library makes from durations are those that the jobs of scenarios play."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib import task_graphs
from hostlib.task_graph import Computation, TaskGraph, Transfer
from workloads.expansion import expand
from workloads.models import MODELS, ModelName
from workloads.parallelism.data_parallel import ALL_GATHER, GRADIENTS, PARAMETERS, PULL, PUSH, REDUCE_SCATTER
from workloads.placement import Placement
from workloads.task_graph import GroupTransfer
from workloads.workload import (
    DataParallelWorkload,
    FullyShardedWorkload,
    ParameterServerWorkload,
    PipelineSchedule,
    PipelineWorkload,
    ShardedOptimizerWorkload,
    Workload,
)

GPT = MODELS[ModelName.GPT]
COUNTS = st.integers(1, 5)


def played(workload: Workload, num_hosts: int) -> TaskGraph:
    """The task graph of a job on so many hosts."""
    hosts = [f"h{number}" for number in range(num_hosts)]
    graph = expand(workload, Placement(dict.fromkeys(hosts, (0,)), dict.fromkeys(hosts, (0,))))
    sizes = {group.name: len(group.flows) for group in graph.flow_groups}

    def told(task: GroupTransfer) -> Transfer:
        is_whole = task.flows is None or len(task.flows) == sizes[task.group]
        return Transfer(task.group, () if is_whole else task.flows or (), task.after)

    return TaskGraph(
        tuple(
            told(task) if isinstance(task, GroupTransfer) else Computation(task.duration_s, task.after)
            for task in graph.tasks
        )
    )


def whole(graph: TaskGraph, sizes: dict[str, int]) -> TaskGraph:
    """The same graph, whose transfers of whole groups name no flows."""
    return TaskGraph(
        tuple(
            Transfer(task.flow_group, (), task.after)
            if isinstance(task, Transfer) and len(task.flows) == sizes.get(task.flow_group)
            else task
            for task in graph.tasks
        )
    )


@given(buckets=COUNTS, hosts=st.integers(2, 4))
def test_data_parallel(buckets: int, hosts: int) -> None:
    workload = DataParallelWorkload(type="dp", model=ModelName.GPT, buckets=buckets)
    names = [f"{GRADIENTS} {bucket}" for bucket in range(buckets)]
    told = task_graphs.data_parallel(GPT.forward_s, [GPT.backward_s / buckets] * buckets, names)
    assert told == played(workload, hosts)


@given(buckets=COUNTS, hosts=st.integers(2, 4), flows=st.integers(1, 2))
def test_sharded_optimizer(buckets: int, hosts: int, flows: int) -> None:
    workload = ShardedOptimizerWorkload(type="zero", model=ModelName.GPT, buckets=buckets, flows_per_pair=flows)
    told = task_graphs.sharded_optimizer(
        [GPT.forward_s / buckets] * buckets,
        [GPT.backward_s / buckets] * buckets,
        PARAMETERS,
        [f"{GRADIENTS} {bucket}" for bucket in reversed(range(buckets))],
        hosts * flows,
    )
    assert whole(told, {PARAMETERS: buckets * hosts * flows}) == played(workload, hosts)


@given(layers=COUNTS, hosts=st.integers(2, 4), prefetch=st.integers(1, 3))
def test_fully_sharded(layers: int, hosts: int, prefetch: int) -> None:
    workload = FullyShardedWorkload(
        type="fsdp", model=ModelName.GPT, layer_groups=layers, prefetch=prefetch, flows_per_pair=1
    )
    seconds = [GPT.forward_s / layers] * layers, [GPT.backward_s / layers] * layers
    told = task_graphs.fully_sharded(*seconds, ALL_GATHER, REDUCE_SCATTER, hosts, prefetch)
    sizes = {ALL_GATHER: 2 * layers * hosts, REDUCE_SCATTER: layers * hosts}
    assert whole(told, sizes) == played(workload, hosts)


def test_parameter_server() -> None:
    workload = ParameterServerWorkload(type="ps", model=ModelName.GPT, servers=1)
    before_s = GPT.compute_s * GPT.comm_start
    during_s = GPT.compute_s * (1 - GPT.comm_start)
    assert task_graphs.parameter_server(before_s, during_s, PUSH, PULL) == played(workload, 3)


@given(micro_batches=st.integers(1, 9), hosts=st.integers(2, 5), flows=st.integers(1, 2))
def test_one_forward_one_backward(micro_batches: int, hosts: int, flows: int) -> None:
    workload = PipelineWorkload(
        type="pp",
        model=ModelName.GPT,
        micro_batches=micro_batches,
        schedule=PipelineSchedule.ONE_FORWARD_ONE_BACKWARD,
        flows_per_pair=flows,
    )
    pairs = [(f"h{host}", f"h{host + 1}") for host in range(hosts - 1)]
    told = task_graphs.one_forward_one_backward(
        micro_batches,
        GPT.forward_s / micro_batches,
        GPT.backward_s / micro_batches,
        [f"forward {here}>{there}" for here, there in pairs],
        [f"backward {there}>{here}" for here, there in pairs],
        flows,
    )
    groups = {task.flow_group for task in told.tasks if isinstance(task, Transfer)}
    assert whole(told, dict.fromkeys(groups, micro_batches * flows)) == played(workload, hosts)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: task_graphs.data_parallel(0.0, [1.0], ["a"]), "forward_s must be above 0 and finite, not 0.0"),
        (lambda: task_graphs.data_parallel(1.0, [], []), "backward_s must have at least one duration"),
        (lambda: task_graphs.data_parallel(1.0, [1.0], []), "gradients must have 1 items as backward_s has, not 0"),
        (lambda: task_graphs.sharded_optimizer([1.0], [1.0, 2.0], "p", ["a"]), "backward_s must have 1 items"),
        (lambda: task_graphs.sharded_optimizer([1.0], [1.0], "p", ["a"], 0), "flows_per_transfer must be at least 1"),
        (lambda: task_graphs.fully_sharded([1.0], [1.0], "g", "s", prefetch=0), "prefetch must be at least 1, not 0"),
        (lambda: task_graphs.parameter_server(1.0, float("nan"), "a", "b"), "during_push_s must be above 0"),
        (lambda: task_graphs.one_forward_one_backward(0, 1.0, 1.0, ["f"], ["b"]), "num_micro_batches must be"),
        (lambda: task_graphs.one_forward_one_backward(2, 1.0, 1.0, ["f"], []), "backward must have 1 items"),
    ],
)
def test_what_cannot_be_meant_names_the_argument(call, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        call()
