"""The ways in which a job could be divided: degrees, micro-batches, schedules, ZeRO, recomputation and order of ranks.

A way needs as little ZeRO and as little recomputation as fits into the memory of its device: for each stage of ZeRO the
least recomputation, up to the first stage that needs none.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from math import gcd
from typing import TypeVar

from workloads.combined.expansion import degrees_on
from workloads.combined.fitting import MOST_STEPS, combined_problems
from workloads.combined.memory import MemoryUse, ModelMemory
from workloads.combined.ranks import RankOrder
from workloads.combined_workload import CombinedWorkload, Recomputation
from workloads.described.timing import device_for
from workloads.pipeline_order import CHUNKS, PipelineSchedule

_ValueT = TypeVar("_ValueT")

VARIED = (
    *("tensor", "context", "expert", "pipeline", "order"),
    *("micro_batch", "schedule", "chunks", "zero", "recompute"),
)
"""Keys of a workload that alternatives have values of their own for."""

_CHUNKS = (2, 4, 8)
_SCHEDULES = (
    PipelineSchedule.ONE_FORWARD_ONE_BACKWARD,
    PipelineSchedule.INTERLEAVED,
    PipelineSchedule.INTERLEAVED_ZERO_BUBBLE,
    PipelineSchedule.ZERO_BUBBLE_V,
    PipelineSchedule.DUAL_PIPE_V,
)
"""Not GPipe: it takes as long as 1F1B, and more memory."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to divide a job, and the memory that it takes; ``fits`` says whether a GPU has so much."""

    workload: CombinedWorkload
    memory: MemoryUse
    fits: bool


class Ways:
    """All ways to divide a job on so many hosts.

    Args:
        template: What all of them have in common, and the values of the keys that are ``kept``.
        num_hosts: Hosts of the job.
        gpus_per_host: Its GPUs on each of them.
        kept: Keys of ``VARIED`` that are the template's in all of them.
    """

    def __init__(
        self, template: CombinedWorkload, num_hosts: int, gpus_per_host: int, kept: Collection[str] = ()
    ) -> None:
        self.num_gpus = num_hosts * gpus_per_host
        self._template = template
        self._hosts = num_hosts, gpus_per_host
        self._kept = frozenset(kept)
        self._memory = ModelMemory(template)
        device = device_for(template.description, template.device)
        blocks = template.description.blocks
        self._num_blocks = sum(any(part.numbers.flops or part.measured_s for part in each.parts) for each in blocks)
        self.memory_bytes = None if device is None else device.memory_bytes

    def way(self, workload: CombinedWorkload) -> Way:
        """Return a workload with the memory that it takes."""
        use = self._memory.use(workload, self.num_gpus)
        return Way(workload, use, self.memory_bytes is None or use.total_bytes <= self.memory_bytes)

    def layouts(self) -> Iterator[CombinedWorkload]:
        """Yield workloads with all degrees and orders that divide, with the largest micro-batches."""
        for tensor in self._values("tensor", divisors(self.num_gpus)):
            for context in self._values("context", divisors(self.num_gpus // gcd(self.num_gpus, tensor))):
                for pipeline in self._values(
                    "pipeline", divisors(self.num_gpus // gcd(self.num_gpus, tensor * context))
                ):
                    yield from self._layouts(tensor, context, pipeline)

    def _layouts(self, tensor: int, context: int, pipeline: int) -> Iterator[CombinedWorkload]:
        data, rest = divmod(self.num_gpus, tensor * context * pipeline)
        if rest or self._template.batch % data:
            return
        has_experts = any(part.numbers.num_experts for part in self._template.description.parts)
        experts = divisors(context * data) if has_experts else [1]
        orders = list(RankOrder) if pipeline > 1 and data > 1 else [RankOrder.DATA_BEFORE_PIPELINE]
        for expert in self._values("expert", experts):
            for order in self._values("order", orders):
                layout = self._template.model_copy(
                    update={
                        **{"tensor": tensor, "context": context, "pipeline": pipeline, "expert": expert},
                        **{"order": order, "micro_batch": self._template.batch // data, "zero": 0},
                        **{"schedule": PipelineSchedule.ONE_FORWARD_ONE_BACKWARD, "chunks": None},
                        "recompute": Recomputation.NONE,
                    }
                )
                if not any(combined_problems(layout, *self._hosts)):
                    yield layout

    def of_layout(self, layout: CombinedWorkload) -> Iterator[Way]:
        """Yield the ways with a layout's degrees. Where none fits with some schedule, the one with the least memory."""
        data = degrees_on(layout, self.num_gpus).data
        for micro_batch in self._values("micro_batch", divisors(layout.batch // data)):
            for schedule, chunks in self._schedules(layout.pipeline):
                update = {"micro_batch": micro_batch, "schedule": schedule, "chunks": chunks}
                scheduled = layout.model_copy(update=update)
                steps = layout.batch // micro_batch * layout.pipeline * scheduled.chunks_per_stage
                if layout.pipeline * scheduled.chunks_per_stage > self._num_blocks or steps > MOST_STEPS:
                    continue
                yield from self._of_schedule(scheduled)

    def _of_schedule(self, scheduled: CombinedWorkload) -> Iterator[Way]:
        has_fitting = False
        way = None
        for zero in self._values("zero", range(4)):
            for recompute in self._values("recompute", list(Recomputation)):
                way = self.way(scheduled.model_copy(update={"zero": zero, "recompute": recompute}))
                if way.fits:
                    has_fitting = True
                    yield way
                    if recompute is Recomputation.NONE:
                        return
                    break
        if way is not None and not has_fitting:
            yield way

    def _schedules(self, pipeline: int) -> Iterator[tuple[PipelineSchedule, int | None]]:
        if pipeline == 1:
            yield PipelineSchedule.ONE_FORWARD_ONE_BACKWARD, None
            return
        for schedule in self._values("schedule", _SCHEDULES):
            possible: list[int | None] = [chunks for chunks in _CHUNKS if chunks in CHUNKS[schedule]] or [None]
            for chunks in self._values("chunks", possible):
                if (chunks or CHUNKS[schedule][0]) in CHUNKS[schedule]:
                    yield schedule, chunks

    def _values(self, key: str, possible: Iterable[_ValueT]) -> Iterable[_ValueT]:
        return (getattr(self._template, key),) if key in self._kept else possible


def divisors(number: int) -> list[int]:
    """Return all divisors in order."""
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]
