"""Pipelines: schedules, makespans without communication, and arrangements compared with closed forms."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.arrangements import interleaved, one_forward_one_backward, staggered
from workloads.arrangement import ZeroCommunicationRun, arranged
from workloads.expansion import expand
from workloads.models import MODELS, ModelName
from workloads.parallelism.pipeline_schedules import StepKind, schedule
from workloads.pipeline_order import PipelineSchedule
from workloads.placement import Placement
from workloads.task_graph import Computation, TaskGraph
from workloads.workload import PipelineWorkload

MODEL = MODELS[ModelName.GPT]
ONE_CHUNK = (PipelineSchedule.GPIPE, PipelineSchedule.ONE_FORWARD_ONE_BACKWARD)
INTERLEAVED = (PipelineSchedule.INTERLEAVED, PipelineSchedule.INTERLEAVED_ZERO_BUBBLE)


def workload(kind: PipelineSchedule, micro_batches: int, chunks: int | None = None) -> PipelineWorkload:
    return PipelineWorkload(
        type="pp", model=ModelName.GPT, micro_batches=micro_batches, schedule=kind, flows_per_pair=1, chunks=chunks
    )


def pipeline(kind: PipelineSchedule, num_hosts: int, micro_batches: int, chunks: int | None = None) -> TaskGraph:
    hosts = [f"h{number}" for number in range(num_hosts)]
    return expand(
        workload(kind, micro_batches, chunks), Placement(dict.fromkeys(hosts, (0,)), dict.fromkeys(hosts, (0,)))
    )


def offsets(graph: TaskGraph) -> dict[tuple[str, int, int], list[float]]:
    """Offsets by direction, sending and receiving host."""
    found = {}
    for group in graph.flow_groups:
        direction, source, destination = re.split("[ >]", group.name)
        ends = int(source.removeprefix("h")), int(destination.removeprefix("h"))
        found[direction, *ends] = [flow.offset_s for flow in group.flows]
    return found


@given(
    kind=st.sampled_from(PipelineSchedule),
    num_hosts=st.integers(1, 6),
    micro_batches=st.integers(1, 13),
    chunks=st.integers(2, 3),
)
def test_every_host_computes_each_micro_batch_on_all_its_chunks_both_ways(
    kind: PipelineSchedule, num_hosts: int, micro_batches: int, chunks: int
) -> None:
    chunks = workload(kind, micro_batches, chunks if kind in INTERLEAVED else None).chunks_per_host
    for host in range(num_hosts):
        slots = schedule(kind, host, num_hosts, micro_batches, chunks)
        assert all(1 <= len(slot) <= 2 for slot in slots)
        steps = [step for slot in slots for step in slot]
        for number in range(micro_batches):
            for chunk in range(chunks):
                kinds = [step.kind for step in steps if (step.micro_batch, step.chunk) == (number, chunk)]
                whole = [StepKind.FORWARD, StepKind.BACKWARD]
                assert kinds in (whole, [StepKind.FORWARD, StepKind.INPUT_GRADIENT, StepKind.WEIGHT_GRADIENT])
        assert len({(step.micro_batch, step.chunk) for step in steps}) == micro_batches * chunks


@given(kind=st.sampled_from(PipelineSchedule), num_hosts=st.integers(1, 5), micro_batches=st.integers(1, 9))
def test_no_schedule_waits_for_itself_and_all_compute_the_model(
    kind: PipelineSchedule, num_hosts: int, micro_batches: int
) -> None:
    graph = pipeline(kind, num_hosts, micro_batches)
    assert graph.computing_host_seconds == pytest.approx(num_hosts * MODEL.compute_s)
    duration_s = ZeroCommunicationRun.of(graph).duration_s
    assert (
        MODEL.compute_s * (1 - 1e-9)
        <= duration_s
        <= MODEL.compute_s / micro_batches * (micro_batches + num_hosts - 1) * (1 + 1e-9)
    ), "none has more bubbles than GPipe"


@pytest.mark.parametrize(
    ("kind", "micro_batches", "units"),
    [
        (PipelineSchedule.GPIPE, 4, 21),
        (PipelineSchedule.ONE_FORWARD_ONE_BACKWARD, 8, 33),
        (PipelineSchedule.INTERLEAVED, 8, 57),
        (PipelineSchedule.INTERLEAVED_ZERO_BUBBLE, 8, 51),
        (PipelineSchedule.ZERO_BUBBLE_V, 8, 51),
        (PipelineSchedule.DUAL_PIPE_V, 8, 54),
    ],
)
def test_makespans_without_communication(kind: PipelineSchedule, micro_batches: int, units: int) -> None:
    """Four hosts; a chunk's forward takes one unit, its backward two."""
    graph = pipeline(kind, 4, micro_batches)
    unit_s = MODEL.compute_s / micro_batches / workload(kind, micro_batches).chunks_per_host / 3
    assert ZeroCommunicationRun.of(graph).duration_s / unit_s == pytest.approx(units)


@given(kind=st.sampled_from(ONE_CHUNK), num_hosts=st.integers(1, 6), micro_batches=st.integers(1, 9))
def test_gpipe_and_1f1b_have_the_same_bubbles(kind: PipelineSchedule, num_hosts: int, micro_batches: int) -> None:
    slots = micro_batches + num_hosts - 1
    duration_s = ZeroCommunicationRun.of(pipeline(kind, num_hosts, micro_batches)).duration_s
    assert duration_s == pytest.approx(MODEL.compute_s / micro_batches * slots)


@given(num_hosts=st.integers(2, 6), micro_batches=st.integers(1, 12))
def test_gpipe_has_its_closed_form(num_hosts: int, micro_batches: int) -> None:
    found = offsets(pipeline(PipelineSchedule.GPIPE, num_hosts, micro_batches))
    assert len(found) == 2 * (num_hosts - 1)
    for (direction, *_), offsets_s in found.items():
        step_s = (MODEL.forward_s if direction == "forward" else MODEL.backward_s) / micro_batches
        assert offsets_s == pytest.approx(staggered(micro_batches, step_s))


@given(num_hosts=st.integers(2, 6), micro_batches=st.integers(1, 12))
def test_1f1b_has_its_closed_form(num_hosts: int, micro_batches: int) -> None:
    seconds = MODEL.forward_s / micro_batches, MODEL.backward_s / micro_batches
    found = offsets(pipeline(PipelineSchedule.ONE_FORWARD_ONE_BACKWARD, num_hosts, micro_batches))
    for (direction, _, consumer), offsets_s in found.items():
        if direction == "forward":
            expected = one_forward_one_backward(micro_batches, num_hosts, consumer, *seconds)
        elif micro_batches >= num_hosts:
            expected = staggered(micro_batches, sum(seconds))
        else:
            continue
        assert offsets_s == pytest.approx(expected), (direction, consumer)


def with_durations(graph: TaskGraph, forward_s: float, backward_s: float) -> TaskGraph:
    """The graph with other durations of its steps, and the offsets that follow from them."""
    tasks = [
        replace(task, duration_s=forward_s if task.name.startswith(StepKind.FORWARD) else backward_s)
        if isinstance(task, Computation)
        else task
        for task in graph.tasks
    ]
    return arranged(replace(graph, tasks=tuple(tasks)))


def check_interleaved(num_hosts: int, rounds: int, chunks: int, forward_s: float, backward_s: float) -> None:
    """Compare the closed form with the task graph on every link but the one that closes the loop."""
    micro_batches = rounds * num_hosts
    graph = pipeline(PipelineSchedule.INTERLEAVED, num_hosts, micro_batches, chunks)
    found = offsets(with_durations(graph, forward_s, backward_s))
    for consumer in range(1, num_hosts):
        expected = interleaved(micro_batches, num_hosts, chunks, consumer, forward_s, backward_s)
        assert found["forward", consumer - 1, consumer] == list(expected), consumer


@given(
    num_hosts=st.integers(2, 11),
    rounds=st.integers(1, 3),
    chunks=st.integers(2, 3),
    forward_s=st.integers(1, 8),
    longer_s=st.integers(0, 12),
)
def test_interleaved_has_its_closed_form(
    num_hosts: int, rounds: int, chunks: int, forward_s: int, longer_s: int
) -> None:
    """Durations are whole numbers, so that floats are exact."""
    check_interleaved(num_hosts, rounds, chunks, forward_s, forward_s + longer_s)


@pytest.mark.parametrize(("num_hosts", "backward_s"), [(5, 1), (6, 1), (7, 2), (8, 2), (10, 3), (16, 2)])
def test_interleaved_has_its_closed_form_where_the_second_round_waits_for_the_last_host(
    num_hosts: int, backward_s: int
) -> None:
    check_interleaved(num_hosts, 2, 2, 1, backward_s)


def test_a_micro_batch_is_sent_when_computed_and_computed_when_arrived() -> None:
    graph = pipeline(PipelineSchedule.ONE_FORWARD_ONE_BACKWARD, 3, 4)
    for number, task in enumerate(graph.tasks):
        if isinstance(task, Computation):
            continue
        (producer,) = task.after
        consumers = [later for later in graph.tasks if number in later.after]
        assert [type(consumer) for consumer in consumers] == [Computation]
        produced = graph.tasks[producer]
        assert isinstance(produced, Computation)
        assert isinstance(consumers[0], Computation)
        assert consumers[0].name == produced.name
        assert re.match(r"(forward|backward) (h\d)>(h\d)", task.group).groups()[1:] == (  # type: ignore[union-attr]
            produced.hosts[0],
            consumers[0].hosts[0],
        )
    for one, other in pairwise(task for task in graph.tasks if isinstance(task, Computation) and task.hosts == ("h1",)):
        assert graph.tasks.index(one) in other.after
