"""Task graphs of combined parallelism: durations against closed forms, and bytes between hosts."""

from typing import Any

import pytest

from tests.workloads.combined.builders import EXPERTS, LAYERS, TOKENS, WIDTH, computed_s, graph, sent_bytes, workload
from topologies.routing import Routing
from workloads.arrangement import ZeroCommunicationRun
from workloads.isolated_run import run_isolated
from workloads.jobs import training_jobs
from workloads.scenario import Scenario
from workloads.task_graph import TaskGraph

ACTIVATIONS = TOKENS * WIDTH * 2
"""Bytes of a sample between two blocks."""


def duration_s(of: TaskGraph) -> float:
    return ZeroCommunicationRun.of(of).duration_s


@pytest.mark.parametrize("micro_batches", [4, 8, 13])
def test_1f1b_has_the_bubble_of_its_closed_form(micro_batches: int) -> None:
    """(m + p - 1) micro-batches of a stage (Narayanan et al., SC 2021, section 2.2.1)."""
    of = graph(4, tensor=8, pipeline=4, batch=micro_batches)
    stage_s = LAYERS / 4 * 3 / 8
    assert duration_s(of) == pytest.approx((micro_batches + 3) * stage_s, rel=1e-3)


def test_interleaving_divides_the_bubble_by_the_chunks() -> None:
    """The bubble is (p - 1) / v micro-batches of a stage (the same, section 2.2.2)."""
    of = graph(4, tensor=8, pipeline=4, batch=8, schedule="interleaved", chunks=2)
    assert duration_s(of) == pytest.approx((8 + 3 / 2) * LAYERS / 4 * 3 / 8, rel=1e-3)


@pytest.mark.parametrize("schedule", ["interleaved_zero_bubble", "zero_bubble_v"])
def test_zero_bubbles_are_shorter_and_compute_the_same(schedule: str) -> None:
    plain = graph(4, tensor=8, pipeline=4, batch=8)
    of = graph(4, tensor=8, pipeline=4, batch=8, schedule=schedule)
    assert duration_s(of) < duration_s(plain)
    assert computed_s(of, "h2") == pytest.approx(computed_s(plain, "h2"), rel=1e-3)


@pytest.mark.parametrize("keys", [{}, {"pipeline": 2}, {"micro_batch": 2}, {"context": 2}, {"order": "tp-cp-pp-dp"}])
def test_gpus_share_the_computation_of_a_batch(keys: dict[str, Any]) -> None:
    of = graph(4, tensor=8, batch=16, **keys)
    assert sum(computed_s(of, f"h{number}") for number in range(4)) * 8 == pytest.approx(16 * LAYERS * 3, rel=1e-3)


def test_tensor_parallelism_inside_hosts_takes_time_and_no_fabric() -> None:
    fast, slow = (graph(1, tensor=8, batch=1, nvlink_gbps=gbps) for gbps in (1e18, 1e-3))
    assert fast.flow_groups == slow.flow_groups == ()
    per_pass_s = 2 * LAYERS * 2 * 7 / 8 * ACTIVATIONS / (1e-3 * 1e9 / 8)
    assert duration_s(slow) - duration_s(fast) == pytest.approx(2 * per_pass_s, rel=1e-3)


def test_tensor_parallelism_over_two_hosts_goes_round_a_ring_of_all_ranks() -> None:
    of = graph(2, tensor=16, batch=1, all_reduce="ring", model=_with_heads(16))
    assert sent_bytes(of, "tensor", "h0") == pytest.approx(2 * 15 / 16 * ACTIVATIONS * 2 * 2 * LAYERS)


def test_hierarchical_rings_are_of_one_rank_a_host() -> None:
    of = graph(2, tensor=16, batch=1, all_reduce="hierarchical", model=_with_heads(16))
    assert sent_bytes(of, "tensor", "h0") == pytest.approx(2 * 1 / 2 * ACTIVATIONS * 2 * 2 * LAYERS)


def test_trees_send_half_to_every_neighbour() -> None:
    of = graph(4, tensor=32, batch=1, all_reduce="tree", model=_with_heads(32))
    assert sent_bytes(of, "tensor") == pytest.approx(2 * 3 * 2 * ACTIVATIONS / 2 * 2 * 2 * LAYERS)


@pytest.mark.parametrize(
    ("zero", "passes", "gathered"), [(0, 2, 0), (1, 1, 1), (2, 4, 1), (3, 4, 8)], ids=["0", "1", "2", "3"]
)
def test_zero_scatters_gradients_and_gathers_parameters(zero: int, passes: int, gathered: int) -> None:
    """Four micro-batches: ZeRO-2 and 3 scatter after each, ZeRO-3 gathers before each pass."""
    of = graph(4, tensor=8, batch=16, zero=zero, all_reduce="ring")
    share = workload(batch=1).description.parameters * 2 / 8 * 3 / 4
    assert sent_bytes(of, "gradients", "h0") == pytest.approx(passes * 8 * share)
    assert sent_bytes(of, "parameters", "h0") == pytest.approx(gathered * 8 * share)


def test_a_pipeline_passes_activations_on_once_whatever_the_ranks() -> None:
    of = graph(4, tensor=8, pipeline=2, batch=6)
    assert sent_bytes(of, "forward") == sent_bytes(of, "backward") == 6 * ACTIVATIONS


def test_experts_on_other_hosts_get_their_part() -> None:
    of = graph(2, model=EXPERTS, tensor=4, expert=4, batch=4)
    # Two experts for each token; half of the four ranks with experts are on the other host; two ways in two passes.
    assert sent_bytes(of, "expert") == pytest.approx(4 * 2 * ACTIVATIONS * 2 / 4 * 4 * LAYERS)


def test_experts_are_reduced_among_those_who_have_them() -> None:
    of = graph(2, model=EXPERTS, tensor=4, expert=2, batch=4, all_reduce="ring")
    model = workload(model=EXPERTS, batch=1).description
    experts = sum(part.numbers.expert_parameters for part in model.parts)
    # Rings of four ranks have the dense parameters, of two ranks each half of the experts; both span two hosts.
    expected = 2 * 3 / 4 * (model.parameters - experts) * 2 + 2 * 1 / 2 * experts * 2
    assert sent_bytes(of, "gradients", "h0") == pytest.approx(expected)


def test_buckets_are_exchanged_while_the_rest_is_computed() -> None:
    one, four = (graph(2, tensor=8, batch=2, buckets=buckets) for buckets in (1, 4))
    assert sent_bytes(one, "gradients") == pytest.approx(sent_bytes(four, "gradients"))
    first = [ZeroCommunicationRun.of(of).start_s[_first_transfer(of)] for of in (one, four)]
    assert first[0] == pytest.approx(duration_s(one))
    assert first[1] == pytest.approx(duration_s(four) * (1 / 3 + 2 / 3 * 3 / 8), rel=0.2)


def test_data_parallelism_inside_a_host_takes_time_and_no_fabric() -> None:
    of = graph(1, batch=8, nvlink_gbps=1e-3)
    size_bytes = workload(batch=1).description.parameters * 2
    assert of.flow_groups == ()
    assert duration_s(of) == pytest.approx(3 * LAYERS + 2 * 7 / 8 * size_bytes / (1e-3 * 1e9 / 8), rel=1e-3)


def _first_transfer(of: TaskGraph) -> int:
    return next(number for number, task in enumerate(of.tasks) if hasattr(task, "group"))


def _with_heads(heads: int) -> dict[str, Any]:
    from tests.workloads.combined.builders import MEASURED

    embedding, block = MEASURED["layers"]
    attention = {"type": "attention", "heads": heads}
    return MEASURED | {"layers": [embedding, block | {"layers": [attention, block["layers"][1]]}]}


def test_a_job_runs_on_a_fabric_and_takes_longer_than_without_communication() -> None:
    keys = {"name": "j", "gpus": 32, "gpus_per_host": 8, "iterations": 1}
    keys["workload"] = workload(tensor=8, pipeline=2, batch=4, zero=3, buckets=2).model_dump(mode="json")
    topology = {"kind": "star", "hosts": 4, "host_link_gbps": 1e-3}
    scenario = Scenario.model_validate({"name": "s", "topology": topology, "jobs": [keys]})
    fabric = scenario.topology.build()
    (job,) = training_jobs(scenario, fabric)
    alone = run_isolated(job, Routing(fabric, {"t0": 1}))
    assert alone.iteration_time_s > duration_s(job.graph)


@pytest.mark.parametrize("zero", [0, 1])
def test_the_optimizer_waits_for_gradients_and_new_parameters_for_it(zero: int) -> None:
    device = {"name": "h100", "efficiency": 0.5, "memory_bytes_per_s": 1e12}
    of = graph(2, tensor=8, batch=2, zero=zero, device=device)
    steps = [number for number, task in enumerate(of.tasks) if getattr(task, "name", None) == "optimizer"]
    assert len(steps) == 2  # one for each replica
    for number in steps:
        groups = {getattr(of.tasks[earlier], "group", None) for earlier in of.tasks[number].after}
        assert "gradients 0" in groups
    behind = [task for task in of.tasks if getattr(task, "group", None) == "parameters 0"]
    assert [set(steps) <= set(task.after) for task in behind] == [True] * zero
