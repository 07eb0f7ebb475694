"""FSDP against the closed forms of its two arrangements, and what waits for what."""

import pytest

from workloads.arrangement import ZeroCommunicationRun
from workloads.expansion import expand
from workloads.models import MODELS, ModelName
from workloads.parallelism.fully_sharded import ALL_GATHER, REDUCE_SCATTER
from workloads.placement import Placement
from workloads.task_graph import Computation, GroupTransfer, TaskGraph
from workloads.workload import FullyShardedWorkload

MODEL = MODELS[ModelName.GPT]
FORWARD_S, BACKWARD_S = MODEL.forward_s / 4, MODEL.backward_s / 4


def sharded(hosts: int = 2, prefetch: int = 1) -> TaskGraph:
    names = [f"h{number}" for number in range(hosts)]
    workload = FullyShardedWorkload(
        type="fsdp", model=ModelName.GPT, layer_groups=4, prefetch=prefetch, flows_per_pair=1
    )
    return expand(workload, Placement(dict.fromkeys(names, (0,)), dict.fromkeys(names, (0,))))


def offsets(graph: TaskGraph, group: str) -> list[float]:
    """Of each coflow, whose flows must agree."""
    flows = next(one.flows for one in graph.flow_groups if one.name == group)
    by_coflow = [{flow.offset_s for flow in flows[number : number + 2]} for number in range(0, len(flows), 2)]
    assert all(len(found) == 1 for found in by_coflow)
    return [found.pop() for found in by_coflow]


def test_gathers_are_due_when_their_layers_begin() -> None:
    begin = [number * FORWARD_S for number in range(4)]
    begin += [4 * FORWARD_S + number * BACKWARD_S for number in range(4)]
    assert offsets(sharded(), ALL_GATHER) == pytest.approx(begin)


def test_scatters_are_due_when_the_one_buffer_is_needed_again() -> None:
    """One after the other, the last with the optimizer, as the one before it."""
    assert offsets(sharded(), REDUCE_SCATTER) == pytest.approx([0.0, BACKWARD_S, 2 * BACKWARD_S, 2 * BACKWARD_S])


def test_sharding_without_communication_takes_the_computation_alone() -> None:
    assert ZeroCommunicationRun.of(sharded()).duration_s == pytest.approx(MODEL.compute_s)


@pytest.mark.parametrize("prefetch", [1, 2, 9])
def test_a_gather_is_released_when_the_step_so_far_ahead_begins(prefetch: int) -> None:
    graph = sharded(prefetch=prefetch)
    steps = [number for number, task in enumerate(graph.tasks) if isinstance(task, Computation)]
    gathers = [
        number
        for number, task in enumerate(graph.tasks)
        if isinstance(task, GroupTransfer) and task.group == ALL_GATHER
    ]
    for step, gather in enumerate(gathers):
        after = set(graph.tasks[gather].after)
        assert after.issuperset(gathers[step - 1 : step] if step else [])
        ahead = step - prefetch
        assert after.intersection(steps) == ({steps[ahead - 1]} if ahead > 0 else set())


def test_volumes_are_those_of_two_gathers_and_a_scatter() -> None:
    graph = sharded(hosts=4)
    from_h0 = [flow for group in graph.flow_groups for flow in group.flows if flow.source_host == "h0"]
    assert sum(flow.size_bytes for flow in from_h0) == pytest.approx(3 * 3 / 4 * MODEL.gradient_bytes)


def test_one_host_sends_nothing() -> None:
    assert sharded(hosts=1).flow_groups == ()
