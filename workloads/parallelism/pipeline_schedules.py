"""In which order the hosts of a pipeline work through their micro-batches.

A host holds one or more *chunks* of the model's layers. The layers in order are cut into ``hosts x chunks`` stages:
either stage s lies on host s modulo the number of hosts (a loop), or the second half runs back along the hosts (a V,
two chunks a host). Where the backward pass is split, the gradient of a stage's input leaves before that of its weights
is computed, which nobody waits for.

Sources: GPipe (NeurIPS 2019); 1F1B of PipeDream (SOSP 2019); the interleaved order of Megatron-LM (SC 2021); zero
bubbles (ICLR 2024) and their V (*Pipeline Parallelism with Controllable Memory*, NeurIPS 2024); DualPipe of DeepSeek-V3
in its V form.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from workloads.workload import PipelineSchedule


class Kind(StrEnum):
    """What a step does with a micro-batch: ``BACKWARD`` is both gradients at once."""

    FORWARD = "forward"
    BACKWARD = "backward"
    INPUT_GRADIENT = "input gradient"
    WEIGHT_GRADIENT = "weight gradient"


@dataclass(frozen=True, slots=True)
class Step:
    """A host computes one micro-batch on one of its chunks."""

    kind: Kind
    micro_batch: int
    chunk: int = 0


Slot = tuple[Step, ...]
"""Steps that a host computes together, as one: two where a forward and a backward overlap."""

V_SHAPED = frozenset({PipelineSchedule.ZERO_BUBBLE_V, PipelineSchedule.DUAL_PIPE_V})
"""Schedules whose second chunks lie in reverse order of hosts."""


def stage_of(kind: PipelineSchedule, host: int, chunk: int, num_hosts: int) -> int:
    """Number of the stage that is a host's chunk, in order of layers."""
    if kind in V_SHAPED and chunk:
        return 2 * num_hosts - 1 - host
    return chunk * num_hosts + host


def schedule(
    kind: PipelineSchedule, host: int, num_hosts: int, num_micro_batches: int, num_chunks: int = 1
) -> tuple[Slot, ...]:
    """What a host computes, in order.

    Schedules that need a multiple or a least number of micro-batches are those of so many, less what is not there.
    """
    slots = _ORDERS[kind](host, num_hosts, num_micro_batches, num_chunks)
    present = (tuple(step for step in slot if step.micro_batch < num_micro_batches) for slot in slots)
    return tuple(slot for slot in present if slot)


def _gpipe(_host: int, _num_hosts: int, num_micro_batches: int, _num_chunks: int) -> list[Slot]:
    """All forward, then all backward in reverse."""
    forward = [(Step(Kind.FORWARD, number),) for number in range(num_micro_batches)]
    return [*forward, *((Step(Kind.BACKWARD, number),) for number in reversed(range(num_micro_batches)))]


def _one_forward_one_backward(host: int, num_hosts: int, num_micro_batches: int, _num_chunks: int) -> list[Slot]:
    """As many forward as there are hosts behind, then in turn one forward and one backward, then what is left."""
    forward = [Step(Kind.FORWARD, number) for number in range(num_micro_batches)]
    backward = [Step(Kind.BACKWARD, number) for number in range(num_micro_batches)]
    return _in_turn(forward, backward, num_hosts - 1 - host)


def _interleaved(host: int, num_hosts: int, num_micro_batches: int, num_chunks: int) -> list[Slot]:
    """1F1B of chunks: each round takes as many micro-batches as there are hosts through all chunks."""
    forward, backward = _rounds(Kind.BACKWARD, num_hosts, num_micro_batches, num_chunks)
    return _in_turn(forward, backward, 2 * (num_hosts - 1 - host) + (num_chunks - 1) * num_hosts)


def _interleaved_zero_bubble(host: int, num_hosts: int, num_micro_batches: int, num_chunks: int) -> list[Slot]:
    """Interleaved, the backward split; weight gradients follow as many backward steps later as hosts stand before.

    So the last fill what would be bubbles at the end.
    """
    forward, backward = _rounds(Kind.INPUT_GRADIENT, num_hosts, num_micro_batches, num_chunks)
    slots: list[Slot] = []
    waiting: list[Step] = []
    for slot in _in_turn(forward, backward, num_hosts - 1 - host + (num_chunks - 1) * num_hosts):
        slots.append(slot)
        if slot[0].kind is Kind.INPUT_GRADIENT:
            waiting.append(_weight_gradient(slot[0]))
            if len(waiting) > host:
                slots.append((waiting.pop(0),))
    return [*slots, *((step,) for step in waiting)]


def _zero_bubble_v(host: int, num_hosts: int, num_micro_batches: int, _num_chunks: int) -> list[Slot]:
    """A V of two chunks, backward split: warm-up, a steady turn of both chunks, and gradients of weights last."""
    line = _Line(max(num_micro_batches, 2 * num_hosts - 1))
    behind = num_hosts - 1 - host
    line.forward(0, 2 * behind + 1)
    for _ in range(host):
        line.forward(1)
        line.forward(0)
    for _ in range(behind + 1):
        line.forward(1)
        line.input_gradient(1)
        line.weight_gradient(1)
    while line.left(1):
        if line.left(0):
            line.forward(0)
        line.input_gradient(0)
        line.weight_gradient(0)
        line.forward(1)
        line.input_gradient(1)
        line.weight_gradient(1)
    for _ in range(host):
        line.input_gradient(0)
        line.input_gradient(1)
    for _ in range(behind + 1):
        line.input_gradient(0)
        line.weight_gradient(0)
    line.rest_of_weights(1)
    line.rest_of_weights(0)
    return line.slots


def _dual_pipe_v(host: int, num_hosts: int, num_micro_batches: int, _num_chunks: int) -> list[Slot]:
    """A V in which the forward of one chunk and the backward of the other overlap."""
    line = _Line(max(num_micro_batches, 2 * num_hosts))
    behind = num_hosts - 1 - host
    line.forward(0, 2 * behind)
    for _ in range(host + 1):
        line.forward(0)
        line.forward(1)
    for _ in range(behind):
        line.input_gradient(1)
        line.weight_gradient(1)
        line.forward(1)
    for number in range(line.num_micro_batches - 2 * num_hosts + host + 1):
        if number == 0 and behind == 0:
            line.forward(0)
            line.backward(1)
        else:
            line.overlapped(0, 1)
        line.overlapped(1, 0)
    for _ in range(behind):
        line.backward(1)
        line.overlapped(1, 0)
    is_split = False
    for number in range(host + 1):
        is_split |= number == (host + 1) // 2 and host % 2 == 1
        line.backward(1, is_split)
        is_split |= number == (host + 1) // 2 and host % 2 == 0
        line.backward(0, is_split)
    for _ in range(behind):
        line.oldest_weights()
        line.input_gradient(0)
    while line.waiting:
        line.oldest_weights()
    return line.slots


_ORDERS: Mapping[PipelineSchedule, Callable[[int, int, int, int], list[Slot]]] = {
    PipelineSchedule.GPIPE: _gpipe,
    PipelineSchedule.ONE_FORWARD_ONE_BACKWARD: _one_forward_one_backward,
    PipelineSchedule.INTERLEAVED: _interleaved,
    PipelineSchedule.INTERLEAVED_ZERO_BUBBLE: _interleaved_zero_bubble,
    PipelineSchedule.ZERO_BUBBLE_V: _zero_bubble_v,
    PipelineSchedule.DUAL_PIPE_V: _dual_pipe_v,
}


class _Line:
    """One host's steps on two chunks as they are put down, micro-batches of each chunk and kind in order."""

    def __init__(self, num_micro_batches: int) -> None:
        self.num_micro_batches = num_micro_batches
        self.slots: list[Slot] = []
        self.waiting: list[Step] = []
        self._next: dict[tuple[Kind, int], int] = {}

    def left(self, chunk: int) -> bool:
        """Whether there are micro-batches whose forward step on a chunk is still to come."""
        return self._next.get((Kind.FORWARD, chunk), 0) < self.num_micro_batches

    def forward(self, chunk: int, times: int = 1) -> None:
        for _ in range(times):
            self.slots.append((self._step(Kind.FORWARD, chunk),))

    def input_gradient(self, chunk: int) -> None:
        step = self._backward(Kind.INPUT_GRADIENT, chunk)
        self.waiting.append(_weight_gradient(step))
        self.slots.append((step,))

    def backward(self, chunk: int, is_split: bool = False) -> None:
        if is_split:
            self.input_gradient(chunk)
        else:
            self.slots.append((self._backward(Kind.BACKWARD, chunk),))

    def overlapped(self, forward: int, backward: int) -> None:
        self.slots.append((self._step(Kind.FORWARD, forward), self._backward(Kind.BACKWARD, backward)))

    def weight_gradient(self, chunk: int) -> None:
        """The oldest of a chunk that is waiting."""
        step = next(step for step in self.waiting if step.chunk == chunk)
        self.waiting.remove(step)
        self.slots.append((step,))

    def oldest_weights(self) -> None:
        self.slots.append((self.waiting.pop(0),))

    def rest_of_weights(self, chunk: int) -> None:
        while any(step.chunk == chunk for step in self.waiting):
            self.weight_gradient(chunk)

    def _backward(self, kind: Kind, chunk: int) -> Step:
        return Step(kind, self._count(Kind.BACKWARD, chunk), chunk)

    def _step(self, kind: Kind, chunk: int) -> Step:
        return Step(kind, self._count(kind, chunk), chunk)

    def _count(self, kind: Kind, chunk: int) -> int:
        number = self._next.get((kind, chunk), 0)
        self._next[kind, chunk] = number + 1
        return number


def _weight_gradient(step: Step) -> Step:
    return Step(Kind.WEIGHT_GRADIENT, step.micro_batch, step.chunk)


def _rounds(backward: Kind, num_hosts: int, num_micro_batches: int, num_chunks: int) -> tuple[list[Step], list[Step]]:
    """Forward and backward steps of interleaved chunks, in whole rounds."""
    num_rounds = -(-num_micro_batches // num_hosts)
    places = [
        (number * num_hosts + place, chunk)
        for number in range(num_rounds)
        for chunk in range(num_chunks)
        for place in range(num_hosts)
    ]
    forward = [Step(Kind.FORWARD, micro_batch, chunk) for micro_batch, chunk in places]
    return forward, [Step(backward, micro_batch, num_chunks - 1 - chunk) for micro_batch, chunk in places]


def _in_turn(forward: Sequence[Step], backward: Sequence[Step], ahead: int) -> list[Slot]:
    """``ahead`` steps forward, then one forward and one backward in turn, then the backward steps that are left."""
    ahead = min(ahead, len(forward))
    steady = [step for pair in zip(forward[ahead:], backward, strict=False) for step in pair]
    return [(step,) for step in (*forward[:ahead], *steady, *backward[len(forward) - ahead :])]
