"""Stages: where a pipeline is cut, and what one stage computes and communicates for a micro-batch.

A pass over a stage is a row of steps: seconds of computation, and collectives that the next computation waits for.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, pairwise

from workloads.combined.nccl import Collective
from workloads.combined_workload import CombinedWorkload, Recomputation
from workloads.described.description import ModelBlock, ModelDescription, Part
from workloads.described.devices import Device
from workloads.described.timing import PassTimes, Shares, device_for, scores_s, times_of, total_times


class Dimension(StrEnum):
    """A parallelism that communicates inside a pass."""

    TENSOR = "tensor"
    CONTEXT = "context"
    EXPERT = "expert"


@dataclass(frozen=True, slots=True)
class Communication:
    """A collective among the ranks of one dimension; ``size_bytes`` are gathered, reduced or sent in all."""

    dimension: Dimension
    collective: Collective
    size_bytes: float


ADAM_MOVED_BYTES = 30
"""What Adam reads and writes for each parameter, in mixed precision (Rajbhandari et al., SC 2020, section 3.1).

It reads the parameter, two moments and the gradient, and writes the first three, four bytes each, and a copy of two.
"""

PassStep = float | Communication
"""Seconds of computation, or a collective."""


def cut(model: ModelDescription, device: Device | None, num_stages: int) -> tuple[tuple[ModelBlock, ...], ...]:
    """Cut a model into stages at the block boundaries that are nearest to equal shares of its time.

    Each stage computes something; blocks without FLOPs and durations stay with the one before. Where one stage is left
    over, the first has only what comes before all computation, an embedding. Raises ValueError for more stages.
    """
    units: list[list[ModelBlock]] = []
    leading: list[ModelBlock] = []
    seconds: list[float] = []
    for block in model.blocks:
        if any(part.numbers.flops or part.measured_s for part in block.parts):
            units.append([*leading, block])
            leading = []
            seconds.append(total_times(block.parts, device).both_s)
        else:
            (units[-1] if units else leading).append(block)
    if len(units) == num_stages - 1 and len(units[0]) > 1:
        units[0:1] = [units[0][:-1], units[0][-1:]]
        seconds.insert(0, 0.0)
    if len(units) < num_stages:
        raise ValueError(f"expected at most the {len(units)} blocks of {model.name} that compute")
    ends = list(accumulate(seconds))
    cuts = [0]
    for number in range(1, num_stages):
        share_s = ends[-1] * number / num_stages
        after = bisect_left(ends, share_s)
        is_nearer_before = after and share_s - ends[after - 1] < ends[min(after, len(ends) - 1)] - share_s
        place = after if is_nearer_before else after + 1
        cuts.append(min(max(place, cuts[-1] + 1), len(units) - (num_stages - number)))
    cuts.append(len(units))
    return tuple(tuple(block for unit in units[first:last] for block in unit) for first, last in pairwise(cuts))


@dataclass(frozen=True, slots=True)
class StagePasses:
    """The passes of a micro-batch over blocks, on one rank."""

    workload: CombinedWorkload

    def forward(self, blocks: Sequence[ModelBlock]) -> Iterator[PassStep]:
        """Yield the steps of a forward pass."""
        for block in blocks:
            for part in block.parts:
                yield from self._forward(part)

    def backward(self, blocks: Sequence[ModelBlock], share: float = 1.0) -> Iterator[PassStep]:
        """Yield the steps of a backward pass, with a ``share`` of its gradients and all that is computed again."""
        for block in reversed(blocks):
            if self.workload.recompute is Recomputation.FULL:
                yield from self.forward([block])
            for part in reversed(block.parts):
                yield from self._backward(part, share)

    def weight_gradient(self, blocks: Sequence[ModelBlock]) -> float:
        """Return the seconds of the other half of a split backward pass; nothing is communicated in it."""
        return sum(self._times(part).backward_s for block in blocks for part in block.parts) / 2

    def gradient_bytes(self, num_parameters: int, num_expert_parameters: int) -> tuple[float, float]:
        """Return the bytes of a rank's gradients for so many parameters in all: of the dense ones, and of experts."""
        workload = self.workload
        dense = (num_parameters - num_expert_parameters) / workload.tensor * workload.description.gradient_bytes
        experts = num_expert_parameters / (workload.tensor * workload.expert) * workload.description.gradient_bytes
        return dense, experts

    def gradient_bytes_of(self, blocks: Sequence[ModelBlock]) -> tuple[float, float]:
        """Return the bytes of a rank's gradients of blocks: of the dense parameters, and of experts."""
        numbers = [part.numbers for block in blocks for part in block.parts]
        experts = sum(each.expert_parameters for each in numbers)
        return self.gradient_bytes(sum(each.parameters for each in numbers), experts)

    def optimizer_s(self, blocks: Sequence[ModelBlock], num_replicas: int) -> float:
        """Return how long the optimizer's step takes on a rank; ZeRO divides it among the replicas."""
        device = self._device
        if device is None or device.memory_bytes_per_s is None:
            return 0.0
        dense_sharers = num_replicas if self.workload.zero else 1
        expert_sharers = num_replicas // self.workload.expert if self.workload.zero else 1
        dense_bytes, expert_bytes = self.gradient_bytes_of(blocks)
        gradients = dense_bytes / dense_sharers + expert_bytes / expert_sharers
        parameters = gradients / self.workload.description.gradient_bytes
        return parameters * ADAM_MOVED_BYTES / device.memory_bytes_per_s

    def passed_bytes(self, blocks: Sequence[ModelBlock]) -> float:
        """Return what a rank passes on after these blocks: its part of the sequence, and of the width."""
        workload = self.workload
        return self._bytes(blocks[-1].output.elements) / (workload.context * workload.tensor)

    def _forward(self, part: Part) -> Iterator[PassStep]:
        yield from self._gathers(part)
        yield from self._routes(part)
        yield self._times(part).forward_s
        yield from self._routes(part)
        yield from self._reductions(part)

    def _backward(self, part: Part, share: float) -> Iterator[PassStep]:
        backward_s = self._times(part).backward_s
        if self.workload.recompute is Recomputation.SELECTIVE:
            yield scores_s(part, self._device, self._shares)
        yield from self._gathers(part)
        yield from self._routes(part)
        yield backward_s * share
        yield from self._routes(part)
        for gather in self._gathers(part):
            yield Communication(gather.dimension, Collective.REDUCE_SCATTER, gather.size_bytes)
        yield from self._reductions(part)

    def _gathers(self, part: Part) -> Iterator[Communication]:
        """Yield the gather of keys and values; their gradients are scattered in the backward pass."""
        if part.numbers.key_value_elements and self.workload.context > 1:
            size_bytes = self._bytes(part.numbers.key_value_elements) / self.workload.tensor
            yield Communication(Dimension.CONTEXT, Collective.ALL_GATHER, size_bytes)

    def _routes(self, part: Part) -> Iterator[Communication]:
        if part.numbers.routed_elements and self.workload.expert > 1:
            shares = self.workload.context * self.workload.tensor
            size_bytes = self._bytes(part.numbers.routed_elements) / shares
            yield Communication(Dimension.EXPERT, Collective.ALL_TO_ALL, size_bytes)

    def _reductions(self, part: Part) -> Iterator[Communication]:
        if part.numbers.reduced_elements and self.workload.tensor > 1:
            size_bytes = self._bytes(part.numbers.reduced_elements) / self.workload.context
            yield Communication(Dimension.TENSOR, Collective.ALL_REDUCE, size_bytes)

    def _bytes(self, elements: int) -> float:
        return float(elements * self.workload.micro_batch * self.workload.description.element_bytes)

    def _times(self, part: Part) -> PassTimes:
        return times_of(part, self._device, self._shares)

    @property
    def _device(self) -> Device | None:
        return device_for(self.workload.description, self.workload.device)

    @property
    def _shares(self) -> Shares:
        workload = self.workload
        of_sequence = workload.micro_batch / workload.context
        divided = of_sequence / workload.tensor
        return Shares(divided, divided if workload.sequence else of_sequence)
