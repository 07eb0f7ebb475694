"""Quick lower bounds of iteration times, to leave out most ways to divide a job without a closer look.

A pipeline stage computes for all micro-batches, behind the first forward pass over the stages before it, and before the
last backward pass over these. What blocks take is what they take on the place where they are fastest. Closer bounds
have what a stage sends among its replicas, too (``workloads.combined.exchange_bounds``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise

import numpy as np
import numpy.typing as npt

from workloads.combined.exchange_bounds import ExchangeBounds, stages_of_places
from workloads.combined.expansion import Expansion, degrees_on
from workloads.combined.stages import cut
from workloads.combined.timeline import EdgeSwitches, Timeline
from workloads.combined_workload import CombinedWorkload
from workloads.described.description import ModelBlock
from workloads.described.timing import device_for
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


@dataclass(frozen=True, slots=True)
class _Passes:
    """Seconds of a micro-batch by stage."""

    forward_s: FloatArray
    backward_s: FloatArray
    num_micro_batches: int
    is_split: bool

    def busy_s(self, stages: Sequence[int]) -> float:
        """Return how long a place computes that has these stages."""
        return float((self.forward_s[stages] + self.backward_s[stages]).sum()) * self.num_micro_batches

    def waits_s(self, stages: Sequence[int]) -> float:
        """Return how long it has nothing to do at least, before it begins and behind its end."""
        before = min(stages)
        waits_s = self.forward_s[:before].sum()
        if not self.is_split:
            waits_s += self.backward_s[:before].sum()
        return float(waits_s)


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
        self._exchanges = ExchangeBounds(self._model, placement, switches)

    def of_layout(self, layout: CombinedWorkload) -> float:
        """Return a bound for all ways with these degrees; the layout has the largest micro-batches."""
        forward_s, backward_s = self._block_seconds(layout)
        return float(forward_s.sum() + backward_s.sum()) * self._num_micro_batches(layout) / layout.pipeline

    def of_way(self, workload: CombinedWorkload) -> float:
        """Return a bound for one way."""
        passes = self._passes(workload, shared=False)
        return max(passes.busy_s(stages) + passes.waits_s(stages) for stages in stages_of_places(workload))

    def of_prediction(self, workload: CombinedWorkload) -> float:
        """Return a closer bound, below which no way is predicted. It takes longer to find, but less than a prediction.

        Transfers take their share of what leaves a switch, as in predictions, so that runs may be faster.
        """
        passes = self._passes(workload, shared=True)
        exchanges = self._exchanges.of(workload, self._cut(workload.pipeline * workload.chunks_per_stage))
        first = exchanges[0]
        longest_s = 0.0
        for stages, sent in zip(stages_of_places(workload), exchanges, strict=True):
            starts_s = float(passes.forward_s[: min(stages)].sum())
            computed_s = passes.busy_s(stages) + sent.inside_s
            backward_s = float(passes.backward_s[stages].max())
            longest_s = max(
                longest_s,
                starts_s + computed_s + sent.after_last_s + sent.optimized_s,
                # All exchanges of a stage follow one another, the last ones behind its last pass but one.
                starts_s + sent.exchanged_s + sent.optimized_s,
                starts_s + computed_s - backward_s - sent.inside_s + sent.least_exchanged_s + sent.optimized_s,
            )
            if min(stages) and workload.schedule not in _SPLIT:
                ends_s = passes.waits_s(stages) + first.after_last_s + first.optimized_s
                longest_s = max(longest_s, computed_s + ends_s)
        return longest_s

    def _passes(self, workload: CombinedWorkload, *, shared: bool) -> "_Passes":
        ends = self._cut(workload.pipeline * workload.chunks_per_stage)
        forward_s, backward_s = (
            np.array([of[first:end].sum() for first, end in pairwise(ends)])
            for of in self._block_seconds(workload, shared=shared)
        )
        is_split = workload.schedule in _SPLIT
        return _Passes(forward_s, backward_s, self._num_micro_batches(workload), is_split)

    def _num_micro_batches(self, workload: CombinedWorkload) -> int:
        return workload.batch // (workload.micro_batch * degrees_on(workload, self._num_gpus).data)

    def _block_seconds(self, workload: CombinedWorkload, *, shared: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return by block the seconds of a micro-batch, forward and backward."""
        names = ("tensor", "context", "expert", "pipeline", "order", "micro_batch", "recompute")
        key = (shared, *(getattr(workload, name) for name in names))
        if key not in self._seconds:
            expansion = Expansion(workload, self._placement, Timeline(self._switches), of_each_kind=True)
            known: dict[int, tuple[Sequence[FlowSpec], float]] = {}

            def least_s(flows: Sequence[FlowSpec]) -> float:
                if id(flows) not in known:
                    known[id(flows)] = flows, self._switches.least_s(self._switches.loads(flows), shared=shared)
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
