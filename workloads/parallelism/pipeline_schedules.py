"""Pipeline schedules: the order in which each host works through its micro-batches.

A host holds one or more *chunks* of the model's layers. The layers are cut into ``hosts x chunks`` stages. Stage s is
on host s modulo the number of hosts (a loop), or the second half of the stages runs back along the hosts (a V, two
chunks per host). If the backward pass is split, the gradient of a stage's input is sent before the gradient of its
weights is computed, for which no other stage waits.

Sources: GPipe (NeurIPS 2019); 1F1B of PipeDream (SOSP 2019); the interleaved order of Megatron-LM (SC 2021); zero
bubbles (ICLR 2024) and their V (*Pipeline Parallelism with Controllable Memory*, NeurIPS 2024); DualPipe of DeepSeek-V3
in its V form.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from workloads.pipeline_order import PipelineSchedule


class StepKind(StrEnum):
    """Kind of computation on a micro-batch; ``BACKWARD`` computes both gradients at once."""

    FORWARD = "forward"
    BACKWARD = "backward"
    INPUT_GRADIENT = "input gradient"
    WEIGHT_GRADIENT = "weight gradient"


@dataclass(frozen=True, slots=True)
class Step:
    """Computation of one micro-batch on one chunk."""

    kind: StepKind
    micro_batch: int
    chunk: int = 0


Slot = tuple[Step, ...]
"""Steps that a host computes as one: two where a forward and a backward step overlap."""

V_SHAPED = frozenset({PipelineSchedule.ZERO_BUBBLE_V, PipelineSchedule.DUAL_PIPE_V})
"""Schedules whose second chunks are in reverse order of hosts."""


def stage_of(kind: PipelineSchedule, host: int, chunk: int, num_hosts: int) -> int:
    """Return the stage that is a host's chunk, counted in order of layers."""
    if kind in V_SHAPED and chunk:
        return 2 * num_hosts - 1 - host
    return chunk * num_hosts + host


def schedule(
    kind: PipelineSchedule, host: int, num_hosts: int, num_micro_batches: int, num_chunks: int = 1
) -> tuple[Slot, ...]:
    """Return a host's slots in order.

    Some schedules need a multiple or a minimum of micro-batches; they are built for that many, and the surplus is left
    out.
    """
    slots = _ORDERS[kind](host, num_hosts, num_micro_batches, num_chunks)
    present = (tuple(step for step in slot if step.micro_batch < num_micro_batches) for slot in slots)
    return tuple(slot for slot in present if slot)


def _gpipe(_host: int, _num_hosts: int, num_micro_batches: int, _num_chunks: int) -> list[Slot]:
    """All forward, then all backward in reverse."""
    forward = [(Step(StepKind.FORWARD, number),) for number in range(num_micro_batches)]
    return [*forward, *((Step(StepKind.BACKWARD, number),) for number in reversed(range(num_micro_batches)))]


def _one_forward_one_backward(host: int, num_hosts: int, num_micro_batches: int, _num_chunks: int) -> list[Slot]:
    """One forward per host behind, then one forward and one backward in turn, then the rest."""
    forward = [Step(StepKind.FORWARD, number) for number in range(num_micro_batches)]
    backward = [Step(StepKind.BACKWARD, number) for number in range(num_micro_batches)]
    return _in_turn(forward, backward, num_hosts - 1 - host)


def _interleaved(host: int, num_hosts: int, num_micro_batches: int, num_chunks: int) -> list[Slot]:
    """1F1B of chunks: each round takes one micro-batch per host through all chunks."""
    forward, backward = _rounds(StepKind.BACKWARD, num_hosts, num_micro_batches, num_chunks)
    return _in_turn(forward, backward, 2 * (num_hosts - 1 - host) + (num_chunks - 1) * num_hosts)


def _interleaved_zero_bubble(host: int, num_hosts: int, num_micro_batches: int, num_chunks: int) -> list[Slot]:
    """Interleaved with a split backward pass; weight gradients lag by as many backward steps as hosts stand before.

    The late weight gradients fill bubbles at the end.
    """
    forward, backward = _rounds(StepKind.INPUT_GRADIENT, num_hosts, num_micro_batches, num_chunks)
    slots: list[Slot] = []
    waiting: list[Step] = []
    for slot in _in_turn(forward, backward, num_hosts - 1 - host + (num_chunks - 1) * num_hosts):
        slots.append(slot)
        if slot[0].kind is StepKind.INPUT_GRADIENT:
            waiting.append(_weight_gradient(slot[0]))
            if len(waiting) > host:
                slots.append((waiting.pop(0),))
    return [*slots, *((step,) for step in waiting)]


def _zero_bubble_v(host: int, num_hosts: int, num_micro_batches: int, _num_chunks: int) -> list[Slot]:
    """A V of two chunks with a split backward pass: warm-up, a steady alternation of chunks, weight gradients last."""
    builder = _SlotBuilder(max(num_micro_batches, 2 * num_hosts - 1))
    behind = num_hosts - 1 - host
    builder.forward(0, 2 * behind + 1)
    for _ in range(host):
        builder.forward(1)
        builder.forward(0)
    for _ in range(behind + 1):
        builder.forward(1)
        builder.input_gradient(1)
        builder.weight_gradient(1)
    while builder.left(1):
        if builder.left(0):
            builder.forward(0)
        builder.input_gradient(0)
        builder.weight_gradient(0)
        builder.forward(1)
        builder.input_gradient(1)
        builder.weight_gradient(1)
    for _ in range(host):
        builder.input_gradient(0)
        builder.input_gradient(1)
    for _ in range(behind + 1):
        builder.input_gradient(0)
        builder.weight_gradient(0)
    builder.rest_of_weights(1)
    builder.rest_of_weights(0)
    return builder.slots


def _dual_pipe_v(host: int, num_hosts: int, num_micro_batches: int, _num_chunks: int) -> list[Slot]:
    """A V in which the forward pass of one chunk overlaps the backward pass of the other."""
    builder = _SlotBuilder(max(num_micro_batches, 2 * num_hosts))
    behind = num_hosts - 1 - host
    builder.forward(0, 2 * behind)
    for _ in range(host + 1):
        builder.forward(0)
        builder.forward(1)
    for _ in range(behind):
        builder.input_gradient(1)
        builder.weight_gradient(1)
        builder.forward(1)
    for number in range(builder.num_micro_batches - 2 * num_hosts + host + 1):
        if number == 0 and behind == 0:
            builder.forward(0)
            builder.backward(1)
        else:
            builder.overlapped(0, 1)
        builder.overlapped(1, 0)
    for _ in range(behind):
        builder.backward(1)
        builder.overlapped(1, 0)
    is_split = False
    for number in range(host + 1):
        is_split |= number == (host + 1) // 2 and host % 2 == 1
        builder.backward(1, is_split)
        is_split |= number == (host + 1) // 2 and host % 2 == 0
        builder.backward(0, is_split)
    for _ in range(behind):
        builder.oldest_weights()
        builder.input_gradient(0)
    while builder.waiting:
        builder.oldest_weights()
    return builder.slots


_ORDERS: Mapping[PipelineSchedule, Callable[[int, int, int, int], list[Slot]]] = {
    PipelineSchedule.GPIPE: _gpipe,
    PipelineSchedule.ONE_FORWARD_ONE_BACKWARD: _one_forward_one_backward,
    PipelineSchedule.INTERLEAVED: _interleaved,
    PipelineSchedule.INTERLEAVED_ZERO_BUBBLE: _interleaved_zero_bubble,
    PipelineSchedule.ZERO_BUBBLE_V: _zero_bubble_v,
    PipelineSchedule.DUAL_PIPE_V: _dual_pipe_v,
}


class _SlotBuilder:
    """Builds the slots of one host on two chunks; micro-batches of each chunk and kind are in order."""

    def __init__(self, num_micro_batches: int) -> None:
        self.num_micro_batches = num_micro_batches
        self.slots: list[Slot] = []
        self.waiting: list[Step] = []
        self._next: dict[tuple[StepKind, int], int] = {}

    def left(self, chunk: int) -> bool:
        """Tell whether forward steps on a chunk remain."""
        return self._next.get((StepKind.FORWARD, chunk), 0) < self.num_micro_batches

    def forward(self, chunk: int, times: int = 1) -> None:
        for _ in range(times):
            self.slots.append((self._step(StepKind.FORWARD, chunk),))

    def input_gradient(self, chunk: int) -> None:
        step = self._backward(StepKind.INPUT_GRADIENT, chunk)
        self.waiting.append(_weight_gradient(step))
        self.slots.append((step,))

    def backward(self, chunk: int, is_split: bool = False) -> None:
        if is_split:
            self.input_gradient(chunk)
        else:
            self.slots.append((self._backward(StepKind.BACKWARD, chunk),))

    def overlapped(self, forward: int, backward: int) -> None:
        self.slots.append((self._step(StepKind.FORWARD, forward), self._backward(StepKind.BACKWARD, backward)))

    def weight_gradient(self, chunk: int) -> None:
        """Add the oldest waiting weight gradient of a chunk."""
        step = next(step for step in self.waiting if step.chunk == chunk)
        self.waiting.remove(step)
        self.slots.append((step,))

    def oldest_weights(self) -> None:
        self.slots.append((self.waiting.pop(0),))

    def rest_of_weights(self, chunk: int) -> None:
        while any(step.chunk == chunk for step in self.waiting):
            self.weight_gradient(chunk)

    def _backward(self, kind: StepKind, chunk: int) -> Step:
        return Step(kind, self._count(StepKind.BACKWARD, chunk), chunk)

    def _step(self, kind: StepKind, chunk: int) -> Step:
        return Step(kind, self._count(kind, chunk), chunk)

    def _count(self, kind: StepKind, chunk: int) -> int:
        number = self._next.get((kind, chunk), 0)
        self._next[kind, chunk] = number + 1
        return number


def _weight_gradient(step: Step) -> Step:
    return Step(StepKind.WEIGHT_GRADIENT, step.micro_batch, step.chunk)


def _rounds(
    backward: StepKind, num_hosts: int, num_micro_batches: int, num_chunks: int
) -> tuple[list[Step], list[Step]]:
    """Return the forward and backward steps of interleaved chunks, in whole rounds."""
    num_rounds = -(-num_micro_batches // num_hosts)
    places = [
        (number * num_hosts + place, chunk)
        for number in range(num_rounds)
        for chunk in range(num_chunks)
        for place in range(num_hosts)
    ]
    forward = [Step(StepKind.FORWARD, micro_batch, chunk) for micro_batch, chunk in places]
    return forward, [Step(backward, micro_batch, num_chunks - 1 - chunk) for micro_batch, chunk in places]


def _in_turn(forward: Sequence[Step], backward: Sequence[Step], ahead: int) -> list[Slot]:
    """Return ``ahead`` forward steps, then forward and backward steps in turn, then the remaining backward steps."""
    ahead = min(ahead, len(forward))
    steady = [step for pair in zip(forward[ahead:], backward, strict=False) for step in pair]
    return [(step,) for step in (*forward[:ahead], *steady, *backward[len(forward) - ahead :])]
