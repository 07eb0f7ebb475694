"""Quick lower bounds of iteration times, to leave out most ways to divide a job without a closer look.

A pipeline stage computes for all micro-batches, behind the first forward pass over the stages before it, and before the
last backward pass over these. What blocks take is what they take on the place where they are fastest.
"""

from collections.abc import Sequence
from itertools import accumulate, groupby, pairwise

import numpy as np
import numpy.typing as npt

from workloads.combined.expansion import Expansion, degrees_on
from workloads.combined.stages import cut
from workloads.combined.timeline import EdgeSwitches, Timeline
from workloads.combined_workload import CombinedWorkload
from workloads.described.description import ModelBlock
from workloads.described.timing import device_for
from workloads.parallelism.pipeline_schedules import stage_of
from workloads.pipeline_order import PipelineSchedule
from workloads.placement import Placement
from workloads.task_graph import FlowSpec

FloatArray = npt.NDArray[np.float64]

_SPLIT = (
    PipelineSchedule.INTERLEAVED_ZERO_BUBBLE,
    PipelineSchedule.ZERO_BUBBLE_V,
    PipelineSchedule.DUAL_PIPE_V,
)
"""Schedules in which a stage may end with gradients of weights, for which no other stage waits."""


class QuickBounds:
    """Bounds for a model on a placement. Workloads differ in what ``workloads.combined.alternatives`` varies."""

    def __init__(self, template: CombinedWorkload, placement: Placement, switches: EdgeSwitches) -> None:
        self._placement = placement
        self._switches = switches
        self._num_gpus = sum(map(len, placement.gpus.values()))
        self._model = template.description
        self._device = device_for(self._model, template.device)
        runs = groupby(self._model.blocks, lambda block: (block.parts, block.output))
        self._runs: list[tuple[ModelBlock, int]] = [(next(run), 1 + sum(1 for _ in run)) for _, run in runs]
        self._seconds: dict[tuple[object, ...], tuple[FloatArray, FloatArray]] = {}
        self._ends: dict[int, Sequence[int]] = {}

    def of_layout(self, layout: CombinedWorkload) -> float:
        """Return a bound for all ways with these degrees; the layout has the largest micro-batches."""
        forward_s, backward_s = self._block_seconds(layout)
        return float(forward_s.sum() + backward_s.sum()) * self._num_micro_batches(layout) / layout.pipeline

    def of_way(self, workload: CombinedWorkload) -> float:
        """Return a bound for one way."""
        pipeline, chunks = workload.pipeline, workload.chunks_per_stage
        ends = self._cut(pipeline * chunks)
        forward_s, backward_s = (
            np.array([of[first:end].sum() for first, end in pairwise(ends)]) for of in self._block_seconds(workload)
        )
        longest_s = 0.0
        for place in range(pipeline):
            stages = [stage_of(workload.schedule, place, chunk, pipeline) for chunk in range(chunks)]
            busy_s = (forward_s[stages] + backward_s[stages]).sum() * self._num_micro_batches(workload)
            before = min(stages)
            waits_s = forward_s[:before].sum()
            if workload.schedule not in _SPLIT:
                waits_s += backward_s[:before].sum()
            longest_s = max(longest_s, float(busy_s + waits_s))
        return longest_s

    def _num_micro_batches(self, workload: CombinedWorkload) -> int:
        return workload.batch // (workload.micro_batch * degrees_on(workload, self._num_gpus).data)

    def _block_seconds(self, workload: CombinedWorkload) -> tuple[FloatArray, FloatArray]:
        """Return by block the seconds of a micro-batch, forward and backward."""
        key = tuple(
            getattr(workload, name)
            for name in ("tensor", "context", "expert", "pipeline", "order", "micro_batch", "recompute")
        )
        if key not in self._seconds:
            expansion = Expansion(workload, self._placement, Timeline(self._switches), of_each_kind=True)
            known: dict[int, tuple[Sequence[FlowSpec], float]] = {}

            def least_s(flows: Sequence[FlowSpec]) -> float:
                if id(flows) not in known:
                    known[id(flows)] = flows, self._switches.least_s(self._switches.loads(flows), shared=False)
                return known[id(flows)][1]

            times = [expansion.block_seconds(block, least_s) for block, _ in self._runs]
            counts = [count for _, count in self._runs]
            forward_s, backward_s = (np.repeat(np.array(each), counts) for each in zip(*times, strict=True))
            self._seconds[key] = forward_s, backward_s
        return self._seconds[key]

    def _cut(self, num_stages: int) -> Sequence[int]:
        if num_stages not in self._ends:
            stages = cut(self._model, self._device, num_stages)
            self._ends[num_stages] = tuple(accumulate(map(len, stages), initial=0))
        return self._ends[num_stages]
