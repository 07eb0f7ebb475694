"""Pipeline parallelism: every host is a stage, micro-batches pass forward through all and backward again.

What one stage sends to its neighbour is a flow group, an EchelonFlow (EchelonFlow, section 3.2, equation 6): its flows
are released one micro-batch after the other and needed so too. The order of micro-batches on a stage is GPipe's or that
of one forward, one backward (1F1B).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from workloads.flows import flows_between
from workloads.models import MODELS
from workloads.placement import Placement
from workloads.scenario import PipelineSchedule, PipelineWorkload
from workloads.task_graph import Computation, FlowGroupSpec, FlowSpec, GroupTransfer, Task, TaskGraph


class Direction(StrEnum):
    """Which way a micro-batch passes a stage."""

    FORWARD = "forward"
    BACKWARD = "backward"


@dataclass(frozen=True, slots=True)
class Step:
    """A stage computes one micro-batch."""

    direction: Direction
    micro_batch: int


def schedule(kind: PipelineSchedule, stage: int, num_stages: int, num_micro_batches: int) -> tuple[Step, ...]:
    """What a stage computes, in order.

    GPipe: all forward, then all backward in reverse. 1F1B: as many forward as there are stages behind, then one
    forward and one backward in turn, then the backward that are left.
    """
    forward = [Step(Direction.FORWARD, number) for number in range(num_micro_batches)]
    backward = [Step(Direction.BACKWARD, number) for number in range(num_micro_batches)]
    if kind is PipelineSchedule.GPIPE:
        return (*forward, *reversed(backward))
    ahead = min(num_stages - 1 - stage, num_micro_batches)
    steady = [step for pair in zip(forward[ahead:], backward, strict=False) for step in pair]
    return (*forward[:ahead], *steady, *backward[num_micro_batches - ahead :])


def expand_pipeline(workload: PipelineWorkload, placement: Placement) -> TaskGraph:
    """One iteration: every stage works through its schedule, each step waiting for the step before and for its input.

    A stage has an equal share of the layers and of the model's computation; its GPUs together pass one micro-batch's
    activations on to the next host, and the next their gradients back.
    """
    model = MODELS[workload.model]
    hosts = tuple(placement.gpus)
    number = workload.micro_batches
    schedules = [schedule(workload.schedule, stage, len(hosts), number) for stage in range(len(hosts))]
    seconds = {Direction.FORWARD: model.forward_s / number, Direction.BACKWARD: model.backward_s / number}
    links = {
        (stage, direction): _between(hosts[stage], hosts[towards], model.activation_bytes / number, workload, placement)
        for stage in range(len(hosts))
        for direction, towards in ((Direction.FORWARD, stage + 1), (Direction.BACKWARD, stage - 1))
        if 0 <= towards < len(hosts)
    }
    tasks: list[Task] = []
    computed: dict[tuple[int, Step], int] = {}
    arrived: dict[tuple[int, Step], int] = {}
    for stage, step in _in_order_of_dependence(schedules):
        position = schedules[stage].index(step)
        after = [computed[stage, schedules[stage][position - 1]]] if position else []
        if (stage, step) in arrived:
            after.append(arrived[stage, step])
        name = f"{step.direction} {step.micro_batch}"
        tasks.append(Computation(name, (hosts[stage],), seconds[step.direction], tuple(after)))
        computed[stage, step] = len(tasks) - 1
        flows = links.get((stage, step.direction))
        if flows is not None:
            first = step.micro_batch * len(flows)
            sent = tuple(range(first, first + len(flows)))
            towards = stage + 1 if step.direction is Direction.FORWARD else stage - 1
            group = _group_name(step.direction, hosts[stage], hosts[towards])
            tasks.append(GroupTransfer(group, (len(tasks) - 1,), sent))
            arrived[towards, step] = len(tasks) - 1
    groups = tuple(
        FlowGroupSpec(_group_name(direction, flows[0].source_host, flows[0].destination_host), flows * number)
        for (_, direction), flows in links.items()
    )
    return TaskGraph(tuple(tasks), groups)


def _group_name(direction: Direction, source: str, destination: str) -> str:
    return f"{direction} {source}>{destination}"


def _between(
    source: str, destination: str, size_bytes: float, workload: PipelineWorkload, placement: Placement
) -> tuple[FlowSpec, ...]:
    count = workload.flows_per_pair or MODELS[workload.model].flows_per_pair
    return tuple(flows_between(source, destination, size_bytes, count, placement))


def _in_order_of_dependence(schedules: Sequence[Sequence[Step]]) -> list[tuple[int, Step]]:
    """All steps of all stages, each behind its stage's step before and the neighbour's step that it takes over from.

    Backward on the last stage takes over from its own forward.
    """
    last = len(schedules) - 1
    ordered: list[tuple[int, Step]] = []
    done: set[tuple[int, Step]] = set()
    positions = [0] * len(schedules)
    while len(ordered) < sum(map(len, schedules)):
        for stage, steps in enumerate(schedules):
            if positions[stage] == len(steps):
                continue
            step = steps[positions[stage]]
            neighbour = stage - 1 if step.direction is Direction.FORWARD else stage + 1
            if 0 <= neighbour <= last and (neighbour, step) not in done:
                continue
            positions[stage] += 1
            done.add((stage, step))
            ordered.append((stage, step))
    return ordered
