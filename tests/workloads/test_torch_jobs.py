"""PyTorch jobs are described by few keys, and played as the task graphs of their parallelisms."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.problems import Problem
from workloads.arrangement import ZeroCommunicationRun
from workloads.expansion import expand
from workloads.models import Model
from workloads.parallelism.data_parallel import expand_data_parallel, expand_fully_sharded
from workloads.parallelism.intra_layer import expand_expert_parallel
from workloads.parallelism.pipeline import expand_pipeline
from workloads.parallelism.torch_jobs import BUCKET_BYTES, ddp_buckets, expand_torch, one_direction_at_a_time
from workloads.pipeline_order import PipelineSchedule
from workloads.placement import Placement
from workloads.task_graph import Computation, FlowSpec, GroupTransfer, TaskGraph
from workloads.validation import find_problems
from workloads.workload import TorchComputation, TorchWorkload

_HOSTS = ("h0", "h1", "h2", "h3")
_PLACEMENT = Placement(dict.fromkeys(_HOSTS, (0,)), dict.fromkeys(_HOSTS, (0,)))
_TWO = Placement({"h0": (0,), "h1": (0,)}, {"h0": (0,), "h1": (0,)})
_KEYS: dict[str, dict[str, Any]] = {
    "ddp": {"parameter_bytes": 8e9, "layers": 4},
    "fsdp": {"parameter_bytes": 8e9, "layers": 4},
    "pipeline": {"activation_bytes": 2e9, "micro_batches": 4},
    "moe": {"activation_bytes": 2e9, "layers": 2},
}
"""What each parallelism needs."""
_FSDP = ("all-gather", "reduce-scatter")
_MODEL = Model(0.6, 1 / 3, gradient_bytes=8e9, activation_bytes=2e9, flows_per_pair=1)


def _flows(graph: TaskGraph, transfer: GroupTransfer) -> list[FlowSpec]:
    (group,) = [group for group in graph.flow_groups if group.name == transfer.group]
    return [group.flows[number] for number in graph.flows_of(transfer)]


def _workload(parallelism: str, **changes: Any) -> dict[str, Any]:
    return {"type": "torch", "parallelism": parallelism, "compute_s": 0.6} | _KEYS[parallelism] | changes


def _parsed(parallelism: str, **changes: Any) -> TorchWorkload:
    return TorchWorkload.model_validate(_workload(parallelism, **changes))


def _problems(document: dict[str, Any], workload: dict[str, Any], hosts: tuple[str, ...] = ("h0", "h2")) -> list[str]:
    (job,) = document["jobs"]
    problems: list[Problem] = find_problems(
        document | {"jobs": [job | {"workload": workload, "hosts": list(hosts)}]}, None
    )
    return [str(problem) for problem in problems]


@pytest.mark.parametrize("parallelism", _KEYS)
def test_each_parallelism_takes_its_keys(parallelism: str, document: dict[str, Any]) -> None:
    assert _problems(document, _workload(parallelism)) == []
    assert _parsed(parallelism).computation is TorchComputation.STAND_IN
    assert _parsed(parallelism, computation="real").computation is TorchComputation.REAL


@pytest.mark.parametrize(
    ("parallelism", "key"), [(parallelism, key) for parallelism, keys in _KEYS.items() for key in keys]
)
def test_a_missing_key_is_named(parallelism: str, key: str, document: dict[str, Any]) -> None:
    workload = _workload(parallelism)
    del workload[key]
    assert _problems(document, workload) == [
        f"jobs[0].workload.{key}: missing; parallelism {parallelism} needs this key"
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"micro_batches": 4},
            "micro_batches: expected no such key with parallelism ddp, which takes parameter_bytes, layers, got 4",
        ),
        ({"activation_bytes": 1e9}, "activation_bytes: expected no such key with parallelism ddp, which takes"),
        ({"parallelism": "tp"}, "parallelism: expected 'ddp', 'fsdp', 'pipeline' or 'moe', got 'tp'"),
        ({"computation": "gpu"}, "computation: expected 'stand_in' or 'real', got 'gpu'"),
        ({"buckets": 4}, "buckets: unknown key; expected one of activation_bytes, computation, compute_s, "),
        ({"parameter_bytes": 0}, "parameter_bytes: expected greater than 0, got 0"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], message: str, document: dict[str, Any]) -> None:
    problems = _problems(document, _workload("ddp") | changes)
    assert any(problem.startswith(f"jobs[0].workload.{message}") for problem in problems), problems


def test_a_pipeline_has_no_more_stages_than_micro_batches(document: dict[str, Any]) -> None:
    (problem,) = _problems(document, _workload("pipeline", micro_batches=3), ("h0", "h1", "h2", "h3"))
    assert problem == "jobs[0].hosts: expected at most 3 hosts, one for each of micro_batches, got 4"


def test_ddp_is_one_transfer_that_begins_with_the_first_of_four_buckets() -> None:
    model = replace(_MODEL, comm_start=1 / 3 + 2 / 3 / 4)
    assert expand_torch(_parsed("ddp"), _PLACEMENT) == expand_data_parallel(model, _PLACEMENT, buckets=None)


def test_fsdp_waits_for_each_collective_and_scatters_by_all_reduces() -> None:
    expected = expand_fully_sharded(_MODEL, _PLACEMENT, 4, prefetch=0, scatter_buffers=0, scatter_factor=2)
    assert expand_torch(_parsed("fsdp"), _PLACEMENT) == expected


def test_fsdp_gathers_one_direction_after_the_other_between_two_hosts() -> None:
    graph = expand_torch(_parsed("fsdp"), _TWO)
    transfers = [task for task in graph.tasks if isinstance(task, GroupTransfer)]
    directions = [(task.group, [flow.source_host for flow in _flows(graph, task)]) for task in transfers]
    gathers, scatters = ([hosts for group, hosts in directions if group == name] for name in _FSDP)
    assert scatters == [["h0", "h1"]] * 4, "many small messages, which pass each other"
    pairs = [gathers[at : at + 2] for at in range(0, len(gathers), 2)]
    assert len(pairs) == 8
    assert all(sorted(pair) == [["h0"], ["h1"]] for pair in pairs)
    assert graph.tasks.index(transfers[0]) in transfers[1].after


def test_a_pipeline_is_1f1b() -> None:
    schedule = PipelineSchedule.ONE_FORWARD_ONE_BACKWARD
    expected = expand_pipeline(_MODEL, _PLACEMENT, schedule, micro_batches=4, chunks=1, rendezvous=True)
    assert expand_torch(_parsed("pipeline"), _PLACEMENT) == expected


def test_a_stage_gets_its_input_when_it_asks_for_it() -> None:
    graph = expand_torch(_parsed("pipeline", micro_batches=2), _TWO)
    forward, backward = 0.6 / 3 / 2, pytest.approx(0.6 * 2 / 3 / 2)
    there, back = "forward h0>h1", "backward h1>h0"
    assert graph.tasks == (
        Computation("forward 0", ("h0",), forward),
        GroupTransfer(there, (0,), (0,)),
        Computation("forward 0", ("h1",), forward, (1,)),
        Computation("forward 1", ("h0",), forward, (0,)),
        Computation("backward 0", ("h1",), backward, (2,)),
        GroupTransfer(back, (4, 3, 1), (0,)),
        Computation("backward 0", ("h0",), backward, (3, 5)),
        GroupTransfer(there, (3, 4, 5), (1,)),  # the gradients go first
        Computation("forward 1", ("h1",), forward, (4, 7)),
        Computation("backward 1", ("h1",), backward, (8,)),
        GroupTransfer(back, (9, 6, 7), (1,)),
        Computation("backward 1", ("h0",), backward, (6, 10)),
    )


def test_experts_are_reached_all_to_all() -> None:
    graph, plain = expand_torch(_parsed("moe"), _PLACEMENT), expand_expert_parallel(_MODEL, _PLACEMENT, 2)
    assert {group.name: set(group.flows) for group in graph.flow_groups} == {
        group.name: set(group.flows) for group in plain.flow_groups
    }
    assert [task for task in graph.tasks if isinstance(task, Computation)] != []


@given(hosts=st.integers(2, 9))
def test_two_hosts_exchange_one_direction_after_the_other(hosts: int) -> None:
    names = [f"h{number}" for number in range(hosts)]
    placement = Placement(dict.fromkeys(names, (0,)), dict.fromkeys(names, (0,)))
    plain = expand_expert_parallel(_MODEL, placement, 1)
    graph = one_direction_at_a_time(plain, lambda _group: True)
    transfers = [_flows(graph, task) for task in graph.tasks if isinstance(task, GroupTransfer)]
    assert len(transfers) == 2 * sum(isinstance(task, GroupTransfer) for task in plain.tasks)
    for flows in transfers:
        pairs = {(flow.source_host, flow.destination_host) for flow in flows}
        assert all((destination, source) not in pairs for source, destination in pairs)
    assert ZeroCommunicationRun.of(graph).duration_s == pytest.approx(ZeroCommunicationRun.of(plain).duration_s)


def test_what_fsdp_scatters_is_twice_what_it_has_to() -> None:
    graph = expand(_parsed("fsdp"), _PLACEMENT)
    sent = {group.name: sum(flow.size_bytes for flow in group.flows) for group in graph.flow_groups}
    assert sent["all-gather"] == pytest.approx(2 * 3 * 8e9), "by all hosts, forward and backward"
    assert sent["reduce-scatter"] == pytest.approx(2 * 3 * 8e9)


@pytest.mark.parametrize(
    ("layers", "layer_bytes", "buckets"),
    [(4, 2e9, 4), (1, 1e3, 1), (8, BUCKET_BYTES / 2, 4), (8, BUCKET_BYTES, 8), (8, BUCKET_BYTES / 3, 3), (4, 10, 1)],
)
def test_a_bucket_has_whole_layers(layers: int, layer_bytes: float, buckets: int) -> None:
    assert ddp_buckets(_parsed("ddp", layers=layers, parameter_bytes=layers * layer_bytes)) == buckets


def test_every_parallelism_computes_what_it_says() -> None:
    graphs: list[TaskGraph] = [expand(_parsed(parallelism), _PLACEMENT) for parallelism in _KEYS]
    assert [graph.computing_host_seconds for graph in graphs] == [pytest.approx(4 * 0.6)] * len(_KEYS)
