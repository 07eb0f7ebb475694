"""Pipeline parallelism: every host holds stages, micro-batches pass forward through all and backward again.

What one host sends another in one direction is a flow group, an EchelonFlow (EchelonFlow, section 3.2, equation 6): its
flows are released one micro-batch after the other and needed so too. ``pipeline_schedules`` has the orders.
"""

from collections.abc import Iterator, Mapping, Sequence

from workloads.flows import flows_between
from workloads.graph_builder import Done, GraphBuilder
from workloads.models import MODELS
from workloads.parallelism.pipeline_schedules import Kind, Slot, Step, schedule, stage_of
from workloads.placement import Placement
from workloads.task_graph import TaskGraph
from workloads.workload import PipelineSchedule, PipelineWorkload

Passage = tuple[bool, int, int]
"""Whether a micro-batch goes forward, the stage, and its number."""


def expand_pipeline(workload: PipelineWorkload, placement: Placement) -> TaskGraph:
    """One iteration: every host works through its schedule, each slot waiting for the one before and for its inputs.

    A stage has an equal share of the layers and of the model's computation; a host's GPUs together pass one
    micro-batch's activations on to the next stage, and the next their gradients back. Of a backward pass that is split,
    either gradient takes half.
    """
    model = MODELS[workload.model]
    hosts = tuple(placement.gpus)
    kind, number, chunks = workload.schedule, workload.micro_batches, workload.chunks_per_host
    forward_s, backward_s = model.forward_s / number / chunks, model.backward_s / number / chunks
    seconds = {
        Kind.FORWARD: forward_s,
        Kind.BACKWARD: backward_s,
        Kind.INPUT_GRADIENT: backward_s / 2,
        Kind.WEIGHT_GRADIENT: backward_s / 2,
    }
    stages = {stage_of(kind, host, chunk, len(hosts)): host for host in range(len(hosts)) for chunk in range(chunks)}
    schedules = [schedule(kind, host, len(hosts), number, chunks) for host in range(len(hosts))]
    count = workload.flows_per_pair or model.flows_per_pair
    builder = GraphBuilder()
    last_of: dict[int, Done] = dict.fromkeys(range(len(hosts)), ())
    arrived: dict[Passage, Done] = {}
    for host, slot in _in_order_of_dependence(kind, schedules, stages):
        after = last_of[host]
        for step in slot:
            if step.kind is not Kind.WEIGHT_GRADIENT:
                after += arrived.get(_input(kind, host, step, len(hosts)), ())
        name = " and ".join(_name(step) for step in slot)
        last_of[host] = builder.compute(name, (hosts[host],), sum(seconds[step.kind] for step in slot), after)
        for step in slot:
            output = _output(kind, host, step, len(hosts))
            towards = None if output is None else stages.get(output[1])
            if output is None or towards is None:
                continue
            if towards == host:
                arrived[output] = last_of[host]
                continue
            flows = flows_between(hosts[host], hosts[towards], model.activation_bytes / number, count, placement)
            group = f"{'forward' if output[0] else 'backward'} {hosts[host]}>{hosts[towards]}"
            arrived[output] = builder.send(group, flows, last_of[host])
    return builder.graph()


def _name(step: Step) -> str:
    return f"{step.kind} {step.micro_batch}" + (f" of chunk {step.chunk}" if step.chunk else "")


def _input(kind: PipelineSchedule, host: int, step: Step, num_hosts: int) -> Passage:
    """What a step takes over: a stage's activations, or the gradients of its output."""
    return step.kind is Kind.FORWARD, stage_of(kind, host, step.chunk, num_hosts), step.micro_batch


def _output(kind: PipelineSchedule, host: int, step: Step, num_hosts: int) -> Passage | None:
    """What the next stage takes over from a step; None of the gradients of weights."""
    if step.kind is Kind.WEIGHT_GRADIENT:
        return None
    is_forward, stage, micro_batch = _input(kind, host, step, num_hosts)
    return is_forward, stage + (1 if is_forward else -1), micro_batch


def _in_order_of_dependence(
    kind: PipelineSchedule, schedules: Sequence[Sequence[Slot]], stages: Mapping[int, int]
) -> Iterator[tuple[int, Slot]]:
    """All slots of all hosts, each behind its host's slot before and the steps that it takes over from.

    Backward on the last stage takes over from its own forward, which stands before it. Raises ValueError for schedules
    that wait for each other.
    """
    given: set[Passage] = set()
    positions = [0] * len(schedules)
    first, last = 0, len(stages) - 1

    def is_ready(host: int, step: Step) -> bool:
        needed = _input(kind, host, step, len(schedules))
        at_the_end = first if needed[0] else last
        return step.kind is Kind.WEIGHT_GRADIENT or needed[1] == at_the_end or needed in given

    while any(position < len(slots) for position, slots in zip(positions, schedules, strict=True)):
        before = list(positions)
        for host, slots in enumerate(schedules):
            if positions[host] < len(slots) and all(is_ready(host, step) for step in slots[positions[host]]):
                slot = slots[positions[host]]
                positions[host] += 1
                given |= {output for step in slot if (output := _output(kind, host, step, len(schedules))) is not None}
                yield host, slot
        if positions == before:
            raise ValueError(f"schedule {kind!r}: hosts wait for each other")
