"""Memory of a GPU: parameters, gradients, the optimizer's states and activations, by ZeRO and recomputation.

Adam in mixed precision keeps 12 bytes for each parameter (Rajbhandari et al., *ZeRO*, SC 2020, section 3.1). A layer
keeps what it gets, and what it makes inside, of which tensor parallelism divides the latter alone (Korthikanti et al.,
*Reducing Activation Recomputation in Large Transformer Models*, MLSys 2023, equation 2, without its dropout). Buffers
of NCCL and of the framework, and fragmentation, are not counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from workloads.combined.expansion import degrees_on
from workloads.combined.stages import cut
from workloads.combined_workload import CombinedWorkload, Recomputation
from workloads.described.description import ModelDescription
from workloads.described.timing import device_for
from workloads.parallelism.pipeline_schedules import StepKind, schedule, stage_of
from workloads.pipeline_order import PipelineSchedule

FloatArray = npt.NDArray[np.float64]

OPTIMIZER_BYTES = 12
"""Bytes of the optimizer's states for each parameter: a copy, momentum and variance, four bytes each."""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes of the GPU that needs most."""

    parameters_bytes: float
    gradients_bytes: float
    optimizer_bytes: float
    activations_bytes: float

    @property
    def total_bytes(self) -> float:
        """All of them."""
        return self.parameters_bytes + self.gradients_bytes + self.optimizer_bytes + self.activations_bytes


class _Numbers(NamedTuple):
    """What blocks have and keep of one sample: parameters, and elements of activations."""

    dense: float
    experts: float
    block_inputs: float
    inputs: float
    inner: float
    scores: float


class _Places(NamedTuple):
    """Such numbers of each place of a pipeline."""

    dense: FloatArray
    experts: FloatArray
    block_inputs: FloatArray
    inputs: FloatArray
    inner: FloatArray
    scores: FloatArray


class ModelMemory:
    """The memory that a model takes, divided in one way or another.

    Args:
        template: A workload of the model; the device decides where a pipeline is cut.
    """

    def __init__(self, template: CombinedWorkload) -> None:
        self._model = template.description
        self._device = device_for(self._model, template.device)
        self._stages: dict[int, FloatArray] = {}
        self._known: dict[tuple[object, ...], _Places] = {}
        self._blocks = list(_blocks_of(self._model))
        self._largest = max(self._blocks, key=lambda block: block.inputs + block.inner)

    def use(self, workload: CombinedWorkload, num_gpus: int) -> MemoryUse:
        """Return the memory of the GPU that needs most."""
        tensor, model = workload.tensor, self._model
        data = degrees_on(workload, num_gpus).data
        places = self._places(workload, workload.batch // (workload.micro_batch * data))
        replicas = data * workload.context
        dense, experts = places.dense / tensor, places.experts / (tensor * workload.expert)
        sharded = dense / replicas + experts * workload.expert / replicas
        whole = dense + experts
        working = 2 * (self._largest.dense / tensor + self._largest.experts / (tensor * workload.expert))
        parameters = sharded + np.minimum(working, whole) if workload.zero >= 3 else whole
        gradients = sharded if workload.zero >= 2 else whole
        of_inputs = tensor if workload.sequence else 1
        match workload.recompute:
            case Recomputation.FULL:
                kept = (places.block_inputs + self._largest.inputs) / of_inputs + self._largest.inner / tensor
            case Recomputation.SELECTIVE:
                kept = places.inputs / of_inputs + places.inner / tensor
            case Recomputation.NONE:
                kept = places.inputs / of_inputs + (places.inner + places.scores) / tensor
        uses = np.array(
            [
                parameters * model.element_bytes,
                gradients * model.gradient_bytes,
                (sharded if workload.zero else whole) * OPTIMIZER_BYTES,
                kept * workload.micro_batch / workload.context * model.element_bytes,
            ]
        )
        return MemoryUse(*uses[:, uses.sum(axis=0).argmax()].tolist())

    def _places(self, workload: CombinedWorkload, num_micro_batches: int) -> _Places:
        """Return what each place of a pipeline has, and keeps of all micro-batches in flight."""
        kind, pipeline, chunks = workload.schedule, workload.pipeline, workload.chunks_per_stage
        if kind is not PipelineSchedule.GPIPE:
            # From some number on, more micro-batches only repeat the middle of the schedule.
            num_micro_batches = min(num_micro_batches, 4 * pipeline)
        key = kind, pipeline, chunks, num_micro_batches
        if key not in self._known:
            stages = self._cut(pipeline * chunks)
            has, keeps = [], []
            for place in range(pipeline):
                of_place = [stages[stage_of(kind, place, chunk, pipeline)] for chunk in range(chunks)]
                in_flight = most_in_flight(kind, place, pipeline, num_micro_batches, chunks)
                has.append(np.sum(of_place, axis=0)[:2])
                keeps.append(np.max(of_place, axis=0)[2:] * in_flight)
            self._known[key] = _Places(*np.array(has).T, *np.array(keeps).T)
        return self._known[key]

    def _cut(self, num_stages: int) -> FloatArray:
        """Return the numbers of each stage."""
        if num_stages not in self._stages:
            lengths = map(len, cut(self._model, self._device, num_stages))
            ends = accumulate(lengths, initial=0)
            stages = [np.sum(self._blocks[first:end], axis=0) for first, end in pairwise(ends)]
            self._stages[num_stages] = np.array(stages, dtype=np.float64)
        return self._stages[num_stages]


def _blocks_of(model: ModelDescription) -> Iterator[_Numbers]:
    """Yield the numbers of each block."""
    gets = model.input.elements
    for block in model.blocks:
        numbers = [part.numbers for part in block.parts]
        experts = sum(each.expert_parameters for each in numbers)
        inputs = [gets, *(each.output.elements for each in numbers[:-1])]
        yield _Numbers(
            dense=sum(each.parameters for each in numbers) - experts,
            experts=experts,
            block_inputs=gets,
            inputs=sum(inputs),
            inner=sum(each.inner_elements for each in numbers),
            scores=sum(each.score_elements for each in numbers),
        )
        gets = block.output.elements


@lru_cache(maxsize=4096)
def most_in_flight(kind: PipelineSchedule, place: int, num_places: int, num_micro_batches: int, num_chunks: int) -> int:
    """Return of how many passes over its chunks a place keeps activations at most.

    A pass is kept from its forward step to the step that computes the last of its gradients.
    """
    kept = most = 0
    for slot in schedule(kind, place, num_places, num_micro_batches, num_chunks):
        for step in slot:
            kept += step.kind is StepKind.FORWARD
            most = max(most, kept)
            kept -= step.kind in (StepKind.BACKWARD, StepKind.WEIGHT_GRADIENT)
    return most
