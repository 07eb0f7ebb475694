"""Pipeline parallelism: hosts hold stages; micro-batches pass forward through all stages and back again.

The flows from one host to another in one direction are a flow group, an EchelonFlow (EchelonFlow, section 3.2, equation
6): they start, and are needed, one micro-batch after the other. ``pipeline_schedules`` has the orders.
"""

from collections.abc import Iterator, Mapping, Sequence

from workloads.models import Model
from workloads.parallelism.pipeline_schedules import Slot, Step, StepKind, schedule, stage_of
from workloads.pipeline_order import PipelineSchedule
from workloads.placement import Placement
from workloads.task_graph import Done, GraphBuilder, TaskGraph
from workloads.traffic_patterns import flows_between

Passage = tuple[bool, int, int]
"""A micro-batch that enters a stage: whether it goes forward, the stage, and the micro-batch."""


def expand_pipeline(
    model: Model,
    placement: Placement,
    kind: PipelineSchedule,
    *,
    micro_batches: int,
    chunks: int,
    rendezvous: bool = False,
) -> TaskGraph:
    """Let every host work through its schedule; each slot waits for the previous slot and for its inputs.

    A stage has an equal share of the layers and of the computation. A host passes a micro-batch's activations on to the
    next stage and gets their gradients back. In a split backward pass each of the two gradients takes half the time.

    By default a host sends as soon as it can. With ``rendezvous`` it sends when the receiver has computed all that
    stands before the slot which needs the input, and what the receiver has to send to it comes first.
    """
    hosts = tuple(placement.gpus)
    forward_s, backward_s = model.forward_s / micro_batches / chunks, model.backward_s / micro_batches / chunks
    seconds = {
        StepKind.FORWARD: forward_s,
        StepKind.BACKWARD: backward_s,
        StepKind.INPUT_GRADIENT: backward_s / 2,
        StepKind.WEIGHT_GRADIENT: backward_s / 2,
    }
    stages = {stage_of(kind, host, chunk, len(hosts)): host for host in range(len(hosts)) for chunk in range(chunks)}
    schedules = [schedule(kind, host, len(hosts), micro_batches, chunks) for host in range(len(hosts))]
    builder = GraphBuilder()
    last_of: dict[int, Done] = dict.fromkeys(range(len(hosts)), ())
    arrived: dict[Passage, Done] = {}
    computed: dict[Passage, tuple[int, Done]] = {}
    last_sent: dict[tuple[int, int], Done] = {}

    def send(passage: Passage, receiver: int) -> None:
        sender, after = computed.pop(passage)
        if rendezvous:
            after += last_of[receiver] + last_sent.get((receiver, sender), ())
        passed_bytes = model.activation_bytes / micro_batches
        flows = flows_between(hosts[sender], hosts[receiver], passed_bytes, model.flows_per_pair, placement)
        group = f"{'forward' if passage[0] else 'backward'} {hosts[sender]}>{hosts[receiver]}"
        arrived[passage] = last_sent[sender, receiver] = builder.send(group, flows, after)

    for host, slot in in_order_of_dependence(kind, schedules, stages):
        after = last_of[host]
        for step in slot:
            if step.kind is not StepKind.WEIGHT_GRADIENT:
                needed = input_of(kind, host, step, len(hosts))
                if needed in computed:
                    send(needed, host)
                after += arrived.get(needed, ())
        name = " and ".join(name_of(step) for step in slot)
        last_of[host] = builder.compute(name, (hosts[host],), sum(seconds[step.kind] for step in slot), after)
        for step in slot:
            output = output_of(kind, host, step, len(hosts))
            towards = None if output is None else stages.get(output[1])
            if output is None or towards is None:
                continue
            if towards == host:
                arrived[output] = last_of[host]
                continue
            computed[output] = host, last_of[host]
            if not rendezvous:
                send(output, towards)
    return builder.graph()


def name_of(step: Step) -> str:
    """Return the name of a step's computation."""
    return f"{step.kind} {step.micro_batch}" + (f" of chunk {step.chunk}" if step.chunk else "")


def input_of(kind: PipelineSchedule, host: int, step: Step, num_hosts: int) -> Passage:
    """Return the input of a step: a stage's activations, or the gradients of its output."""
    return step.kind is StepKind.FORWARD, stage_of(kind, host, step.chunk, num_hosts), step.micro_batch


def output_of(kind: PipelineSchedule, host: int, step: Step, num_hosts: int) -> Passage | None:
    """Return what a step passes on; None for the gradients of weights."""
    if step.kind is StepKind.WEIGHT_GRADIENT:
        return None
    is_forward, stage, micro_batch = input_of(kind, host, step, num_hosts)
    return is_forward, stage + (1 if is_forward else -1), micro_batch


def in_order_of_dependence(
    kind: PipelineSchedule, schedules: Sequence[Sequence[Slot]], stages: Mapping[int, int]
) -> Iterator[tuple[int, Slot]]:
    """Yield the slots of all hosts, each behind its host's previous slot and the steps it depends on.

    The backward step of the last stage depends on its own forward step, which stands before it. Raises ValueError for
    schedules that wait for each other.
    """
    given: set[Passage] = set()
    positions = [0] * len(schedules)
    first, last = 0, len(stages) - 1

    def is_ready(host: int, step: Step) -> bool:
        needed = input_of(kind, host, step, len(schedules))
        at_the_end = first if needed[0] else last
        return step.kind is StepKind.WEIGHT_GRADIENT or needed[1] == at_the_end or needed in given

    while any(position < len(slots) for position, slots in zip(positions, schedules, strict=True)):
        before = list(positions)
        for host, slots in enumerate(schedules):
            if positions[host] < len(slots) and all(is_ready(host, step) for step in slots[positions[host]]):
                slot = slots[positions[host]]
                positions[host] += 1
                given |= {
                    output for step in slot if (output := output_of(kind, host, step, len(schedules))) is not None
                }
                yield host, slot
        if positions == before:
            raise ValueError(f"schedule {kind!r}: hosts wait for each other")
