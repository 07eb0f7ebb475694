"""Pipelines against the closed forms: makespans and arrangements of GPipe and 1F1B without communication time."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.arrangement import ZeroCommunicationRun
from workloads.expansion import expand
from workloads.models import MODELS, ModelName
from workloads.pipeline import Direction, schedule
from workloads.placement import Placement
from workloads.scenario import PipelineSchedule, PipelineWorkload
from workloads.task_graph import Computation, TaskGraph

MODEL = MODELS[ModelName.GPT]


def pipeline(kind: PipelineSchedule, stages: int, micro_batches: int) -> TaskGraph:
    hosts = [f"h{number}" for number in range(stages)]
    workload = PipelineWorkload(
        type="pp", model=ModelName.GPT, micro_batches=micro_batches, schedule=kind, flows_per_pair=1
    )
    return expand(workload, Placement(dict.fromkeys(hosts, (0,)), dict.fromkeys(hosts, (0,))))


@given(kind=st.sampled_from(PipelineSchedule), stages=st.integers(1, 6), micro_batches=st.integers(1, 9))
def test_every_stage_computes_each_micro_batch_both_ways(
    kind: PipelineSchedule, stages: int, micro_batches: int
) -> None:
    for stage in range(stages):
        steps = schedule(kind, stage, stages, micro_batches)
        assert len(steps) == len(set(steps)) == 2 * micro_batches
        for number in range(micro_batches):
            both = [step.direction for step in steps if step.micro_batch == number]
            assert both == [Direction.FORWARD, Direction.BACKWARD]


@given(kind=st.sampled_from(PipelineSchedule), stages=st.integers(1, 6), micro_batches=st.integers(1, 9))
def test_a_pipeline_without_communication_takes_its_bubbles(
    kind: PipelineSchedule, stages: int, micro_batches: int
) -> None:
    graph = pipeline(kind, stages, micro_batches)
    slots = micro_batches + stages - 1
    assert ZeroCommunicationRun.of(graph).duration_s == pytest.approx(MODEL.compute_s / micro_batches * slots)
    assert graph.computing_host_seconds == pytest.approx(stages * MODEL.compute_s)


@pytest.mark.parametrize("kind", PipelineSchedule)
@pytest.mark.parametrize(("stages", "micro_batches"), [(4, 8), (3, 5), (2, 3)])
def test_arrangements_have_their_closed_forms(kind: PipelineSchedule, stages: int, micro_batches: int) -> None:
    """GPipe: steps of t_f and t_b. 1F1B to stage k of p: t_f up to flow p - k, then t_f + t_b; backward always that."""
    forward_s, backward_s = MODEL.forward_s / micro_batches, MODEL.backward_s / micro_batches
    groups = {group.name: group for group in pipeline(kind, stages, micro_batches).flow_groups}
    assert len(groups) == 2 * (stages - 1)
    for name, group in groups.items():
        offsets = [flow.offset_s for flow in group.flows]
        direction, _, destination = re.split("[ >]", name)
        consumer = int(destination.removeprefix("h"))
        if kind is PipelineSchedule.GPIPE:
            expected = [
                number * (forward_s if direction == "forward" else backward_s) for number in range(micro_batches)
            ]
            if direction == "backward":
                expected.reverse()
        elif direction == "forward":
            warm = stages - consumer
            expected = [
                number * (forward_s if number < warm else forward_s + backward_s) for number in range(micro_batches)
            ]
        else:
            expected = [number * (forward_s + backward_s) for number in range(micro_batches)]
        assert offsets == pytest.approx(expected), name


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
