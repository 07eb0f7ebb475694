"""Every parallelism: bytes sent, dependences, and arrangements compared with closed forms."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from hostlib.arrangements import coflow, gathers, parameters, scatters, staggered
from topologies.routing import Routing
from topologies.specification import StarSpecification
from workloads.arrangement import ZeroCommunicationRun
from workloads.expansion import expand
from workloads.isolated_run import run_isolated
from workloads.jobs import TrainingJob
from workloads.models import MODELS, ModelName
from workloads.placement import Placement
from workloads.scenario import JobSpecification
from workloads.task_graph import TaskGraph
from workloads.workload import Workload

MODEL = MODELS[ModelName.BERT]
WORKLOAD: TypeAdapter[Any] = TypeAdapter(Workload)
OTHERS: dict[str, dict[str, object]] = {
    "dp": {"buckets": 4},
    "zero": {"buckets": 3},
    "ps": {"servers": 1},
    "tp": {"layers": 2},
    "moe": {"layers": 2, "chunks": 3},
    "cp": {"layers": 2},
    "fsdp": {"layer_groups": 3, "replicas": 2},
}
"""Keys of a small workload of each type."""
TYPES = pytest.mark.parametrize("kind", OTHERS)


def graph(kind: str, num_hosts: int = 4, **keys: object) -> TaskGraph:
    hosts = [f"h{number}" for number in range(num_hosts)]
    workload = WORKLOAD.validate_python({"type": kind, "model": "bert", **OTHERS[kind], **keys})
    return expand(workload, Placement(dict.fromkeys(hosts, (0,)), dict.fromkeys(hosts, (0,))))


def offsets(of: TaskGraph, group: str, coflow_size: int) -> list[float]:
    """Return the offset of each coflow of a group, whose flows must agree."""
    (flows,) = (one.flows for one in of.flow_groups if one.name == group)
    parts = [
        {flow.offset_s for flow in flows[number : number + coflow_size]} for number in range(0, len(flows), coflow_size)
    ]
    assert all(len(found) == 1 for found in parts)
    return [found.pop() for found in parts]


def sent_bytes(of: TaskGraph, source: str, group: str = "") -> float:
    return sum(
        flow.size_bytes
        for one in of.flow_groups
        for flow in one.flows
        if flow.source_host == source and group in one.name
    )


@TYPES
def test_without_communication_an_iteration_is_its_computation(kind: str) -> None:
    assert ZeroCommunicationRun.of(graph(kind)).duration_s == pytest.approx(MODEL.compute_s)


@TYPES
def test_communication_takes_time_and_ends(kind: str) -> None:
    fabric = StarSpecification(kind="star", hosts=4, host_link_gbps=100, delay_us=0).build()
    specification = {"name": kind, "hosts": list(fabric.hosts), "gpus_per_host": 1, "iterations": 1}
    specification["workload"] = {"type": kind, "model": "bert", **OTHERS[kind]}
    job = TrainingJob(JobSpecification.model_validate(specification), Placement({}, {}), graph(kind))
    alone = run_isolated(job, Routing(fabric, {"t0": 1}))
    assert alone.iteration_time_s > MODEL.compute_s
    assert alone.tardiness_s.keys() == {group.name for group in job.graph.flow_groups}
    assert all(late_s > 0 for late_s in alone.tardiness_s.values())


@pytest.mark.parametrize("kind", sorted(OTHERS.keys() - {"ps", "fsdp"}))
def test_one_host_sends_nothing(kind: str) -> None:
    assert graph(kind, num_hosts=1).flow_groups == ()


def test_buckets_are_coflows_released_as_the_backward_pass_goes_on() -> None:
    buckets = graph("dp")
    assert [group.name for group in buckets.flow_groups] == [f"gradients {number}" for number in range(4)]
    assert all(offsets(buckets, group.name, 4) == list(coflow(1)) for group in buckets.flow_groups)
    assert sent_bytes(buckets, "h0") == pytest.approx(1.5 * MODEL.gradient_bytes)


@pytest.mark.parametrize("overlap", [True, False])
def test_a_sharded_optimizer_gathers_as_the_forward_pass_needs(overlap: bool) -> None:
    zero = graph("zero", overlap=overlap)
    expected = parameters([MODEL.forward_s / 3] * 3) if overlap else coflow(3)
    assert offsets(zero, "parameters", 4) == pytest.approx(expected)
    assert all(offsets(zero, f"gradients {number}", 4) == [0.0] for number in range(3))
    assert sent_bytes(zero, "h0") == pytest.approx(2 * 3 / 4 * MODEL.gradient_bytes)


@given(layers=st.integers(1, 6), hosts=st.sampled_from([2, 4]), prefetch=st.integers(1, 3))
def test_sharded_models_have_their_closed_forms(layers: int, hosts: int, prefetch: int) -> None:
    fsdp = graph("fsdp", hosts, layer_groups=layers, replicas=1, prefetch=prefetch)
    forward_s, backward_s = [MODEL.forward_s / layers] * layers, [MODEL.backward_s / layers] * layers
    assert offsets(fsdp, "all-gather", hosts) == pytest.approx(gathers(forward_s, backward_s))
    assert offsets(fsdp, "reduce-scatter", hosts) == pytest.approx(scatters(backward_s))


def test_replicas_reduce_what_was_scattered() -> None:
    """In two replicas of two hosts, h0 shares parameters with h1 and reduces its share with h2."""
    hybrid = graph("fsdp")
    towards = {
        group.name: {flow.destination_host for flow in group.flows if flow.source_host == "h0"}
        for group in hybrid.flow_groups
    }
    assert towards == {"all-gather": {"h1"}, "reduce-scatter": {"h1"}, "all-reduce": {"h2"}}
    assert sent_bytes(hybrid, "h0", "all-gather") == pytest.approx(MODEL.gradient_bytes)
    assert sent_bytes(hybrid, "h0", "all-reduce") == pytest.approx(MODEL.gradient_bytes / 2)
    assert offsets(hybrid, "all-reduce", 4) == list(coflow(3))
    assert offsets(hybrid, "reduce-scatter", 4) == pytest.approx(scatters([MODEL.backward_s / 3] * 3))


@pytest.mark.parametrize("servers", [1, 2])
def test_workers_push_to_servers_and_pull_from_them(servers: int) -> None:
    served = graph("ps", servers=servers)
    workers = 4 - servers
    assert sent_bytes(served, "h3", "push") == sent_bytes(served, "h0", "pull") * servers / workers
    assert sent_bytes(served, "h3", "push") == pytest.approx(MODEL.gradient_bytes)
    assert [offsets(served, name, servers * workers) for name in ("push", "pull")] == [[0.0], [0.0]]
    assert served.computing_host_seconds == pytest.approx(workers * MODEL.compute_s)


def test_a_layer_of_tensor_parallelism_is_four_coflows() -> None:
    tensor = graph("tp")
    names = [group.name for group in tensor.flow_groups]
    assert names[:4] == ["forward attention 0", "forward mlp 0", "forward attention 1", "forward mlp 1"]
    assert names[4:] == ["backward mlp 1", "backward attention 1", "backward mlp 0", "backward attention 0"]
    assert all(offsets(tensor, name, 4) == [0.0] for name in names)
    assert sent_bytes(tensor, "h0", "mlp 1") == pytest.approx(2 * 1.5 * MODEL.activation_bytes)


@pytest.mark.parametrize("chunks", [1, 3])
def test_experts_take_chunks_one_after_the_other_and_give_them_back_together(chunks: int) -> None:
    moe = graph("moe", chunks=chunks)
    for direction, seconds in (("forward", MODEL.forward_s), ("backward", MODEL.backward_s)):
        for layer in range(2):
            dispatched = offsets(moe, f"dispatch {direction} {layer}", 12)
            assert dispatched == pytest.approx(staggered(chunks, seconds / 4 / chunks))
            assert offsets(moe, f"combine {direction} {layer}", 12) == list(coflow(chunks))
    assert sent_bytes(moe, "h0", "dispatch forward 1") == pytest.approx(3 / 4 * MODEL.activation_bytes)


@pytest.mark.parametrize("hosts", [2, 4])
def test_blocks_go_round_as_attention_goes_on(hosts: int) -> None:
    context = graph("cp", hosts)
    for direction, seconds, share in (("forward", MODEL.forward_s, 2), ("backward", MODEL.backward_s, 4)):
        blocks = offsets(context, f"{direction} 1", hosts)
        assert blocks == pytest.approx(staggered(hosts - 1, seconds / 2 / hosts))
        sent = share * (hosts - 1) / hosts * MODEL.activation_bytes
        assert sent_bytes(context, "h0", f"{direction} 1") == pytest.approx(sent)


def names_of_tasks(of: TaskGraph) -> Sequence[str]:
    return [getattr(task, "name", getattr(task, "group", "")) for task in of.tasks]


def test_a_block_is_passed_on_while_attention_is_paid_to_it() -> None:
    context = graph("cp", 3)
    names = names_of_tasks(context)
    first, passed, second = (
        names.index("forward 0 block 0"),
        names.index("forward 0"),
        names.index("forward 0 block 1"),
    )
    assert context.tasks[passed].after == context.tasks[first].after == ()
    assert set(context.tasks[second].after) == {first, passed}
