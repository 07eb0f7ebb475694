"""Data parallelism, plain and fully sharded: arrangements compared with closed forms, and dependences."""

import pytest

from topologies.routing import Routing
from workloads.arrangement import ZeroCommunicationRun
from workloads.expansion import expand
from workloads.isolated_run import run_isolated
from workloads.jobs import TrainingJob, training_jobs
from workloads.loading import SHIPPED_SCENARIOS, load_scenario
from workloads.models import MODELS, ModelName
from workloads.parallelism.data_parallel import ALL_GATHER, GRADIENTS, REDUCE_SCATTER
from workloads.placement import Placement
from workloads.scenario import Scenario
from workloads.task_graph import Computation, GroupTransfer, TaskGraph
from workloads.workload import DataParallelWorkload, FullyShardedWorkload


@pytest.mark.parametrize(("hosts", "share"), [(2, 1.0), (4, 1.5), (8, 1.75)])
def test_a_ring_reduces_twice_what_a_host_does_not_hold(hosts: int, share: float) -> None:
    names = [f"h{number}" for number in range(hosts)]
    workload = DataParallelWorkload(type="dp", model=ModelName.BERT)
    graph = expand(workload, Placement(dict.fromkeys(names, (0,)), dict.fromkeys(names, (0,))))
    (group,) = graph.flow_groups
    assert group.name == GRADIENTS
    assert {flow.size_bytes for flow in group.flows} == {share * MODELS[ModelName.BERT].gradient_bytes}
    assert [flow.destination_host for flow in group.flows] == [*names[1:], names[0]]


def alone(gpus: int, gpus_per_host: int, model: str) -> tuple[TrainingJob, float]:
    testbed = load_scenario(SHIPPED_SCENARIOS / "fig20.yaml").topology
    job = {"name": "a", "gpus": gpus, "gpus_per_host": gpus_per_host, "placement": "spread", "iterations": 1}
    job["workload"] = {"type": "dp", "model": model}
    scenario = Scenario.model_validate({"name": "a", "topology": testbed, "jobs": [job]})
    fabric = testbed.build()
    (one,) = training_jobs(scenario, fabric)
    return one, run_isolated(one, Routing(fabric, dict.fromkeys(fabric.switches, 1))).iteration_time_s


@pytest.mark.parametrize(
    ("gpus", "gpus_per_host", "model", "utilisation"),
    [(64, 8, "gpt", 1.0), (32, 8, "gpt", 1.0), (8, 4, "bert", 0.54), (8, 4, "resnet", 1.0)],
)
def test_alone_the_testbeds_models_behave_as_in_the_paper(
    gpus: int, gpus_per_host: int, model: str, utilisation: float
) -> None:
    job, iteration_s = alone(gpus, gpus_per_host, model)
    assert job.computing_gpu_seconds / job.gpus / iteration_s == pytest.approx(utilisation, abs=0.005)
    if model == "gpt":
        assert iteration_s == pytest.approx(1.53)


MODEL = MODELS[ModelName.GPT]
FORWARD_S, BACKWARD_S = MODEL.forward_s / 4, MODEL.backward_s / 4


def sharded(hosts: int = 2, prefetch: int = 1) -> TaskGraph:
    names = [f"h{number}" for number in range(hosts)]
    workload = FullyShardedWorkload(
        type="fsdp", model=ModelName.GPT, layer_groups=4, prefetch=prefetch, flows_per_pair=1
    )
    return expand(workload, Placement(dict.fromkeys(names, (0,)), dict.fromkeys(names, (0,))))


def offsets(graph: TaskGraph, group: str) -> list[float]:
    """Return the offset of each coflow, whose flows must agree."""
    flows = next(one.flows for one in graph.flow_groups if one.name == group)
    by_coflow = [{flow.offset_s for flow in flows[number : number + 2]} for number in range(0, len(flows), 2)]
    assert all(len(found) == 1 for found in by_coflow)
    return [found.pop() for found in by_coflow]


def test_gathers_are_due_when_their_layers_begin() -> None:
    begin = [number * FORWARD_S for number in range(4)]
    begin += [4 * FORWARD_S + number * BACKWARD_S for number in range(4)]
    assert offsets(sharded(), ALL_GATHER) == pytest.approx(begin)


def test_scatters_are_due_when_the_one_buffer_is_needed_again() -> None:
    """Scatters are due one after the other; the optimizer needs the last two."""
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
