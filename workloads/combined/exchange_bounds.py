"""Lower bounds of what stages send among their replicas: gradients, and the parameters of ZeRO.

They count in whole stages and buckets what ``workloads.combined.expansion`` adds to a task graph one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from workloads.combined.expansion import Expansion, buckets_of, degrees_on
from workloads.combined.nccl import Collective
from workloads.combined.stages import StagePasses
from workloads.combined.timeline import EdgeSwitches, Timeline
from workloads.combined_workload import CombinedWorkload
from workloads.described.description import ModelDescription
from workloads.parallelism.pipeline_schedules import stage_of
from workloads.placement import Placement


def stages_of_places(workload: CombinedWorkload) -> list[list[int]]:
    """Return the stages of every place in the pipeline."""
    chunks, pipeline = range(workload.chunks_per_stage), workload.pipeline
    return [[stage_of(workload.schedule, place, chunk, pipeline) for chunk in chunks] for place in range(pipeline)]


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What a place in the pipeline sends among its replicas in an iteration.

    Attributes:
        inside_s: Collectives inside hosts, for which its computation waits.
        exchanged_s: Transfers of gradients, one after the other.
        least_exchanged_s: Those of one of its stages for one micro-batch, the least.
        after_last_s: The least transfer behind its last pass.
        optimized_s: The optimizer's step, and gathering parameters behind it.
    """

    inside_s: float
    exchanged_s: float
    least_exchanged_s: float
    after_last_s: float
    optimized_s: float


class ExchangeBounds:
    """Bounds for a model on a placement."""

    def __init__(self, model: ModelDescription, placement: Placement, switches: EdgeSwitches) -> None:
        self._model, self._placement, self._switches = model, placement, switches
        self._num_gpus = sum(map(len, placement.gpus.values()))
        experts = [sum(part.numbers.expert_parameters for part in block.parts) for block in model.blocks]
        parameters = [sum(part.numbers.parameters for part in block.parts) for block in model.blocks]
        self._experts_before = list(accumulate(experts, initial=0))
        self._parameters_before = list(accumulate(parameters, initial=0))
        self._expansions: dict[tuple[object, ...], Expansion] = {}
        self._seconds: dict[tuple[object, ...], tuple[float, float]] = {}

    def of(self, workload: CombinedWorkload, ends: Sequence[int]) -> list[Exchanged]:
        """Return the bounds of every place; ``ends`` are where its stages begin and end among the model's blocks."""
        return [
            self._of_place(workload, place, [range(ends[stage], ends[stage + 1]) for stage in stages])
            for place, stages in enumerate(stages_of_places(workload))
        ]

    def _of_place(self, workload: CombinedWorkload, place: int, stages: Sequence[range]) -> Exchanged:
        degrees = degrees_on(workload, self._num_gpus)
        num_micro_batches = workload.batch // (workload.micro_batch * degrees.data)
        reduce = Collective.REDUCE_SCATTER if workload.zero else Collective.ALL_REDUCE
        times = num_micro_batches if workload.zero >= 2 else 1
        inside_s = exchanged_s = 0.0
        sent_s: list[float] = []
        last_s: list[float] = []
        for stage in stages:
            buckets = [self._collective(workload, place, reduce, [run]) for run in buckets_of(stage, workload.buckets)]
            inside_s += times * sum(each for each, _ in buckets)
            sent_s.append(sum(each for _, each in buckets))
            exchanged_s += times * sent_s[-1]
            waits_s, takes_s = buckets[-1]
            last_s.append(max(0.0, takes_s - waits_s))
            if workload.zero == 3:
                gathers_s, _ = self._collective(workload, place, Collective.ALL_GATHER, [stage])
                inside_s += 2 * num_micro_batches * gathers_s
        optimized_s = self._optimizer_s(workload, stages, degrees.data * degrees.context)
        if workload.zero in (1, 2):
            optimized_s += sum(self._collective(workload, place, Collective.ALL_GATHER, stages))
        return Exchanged(inside_s, exchanged_s, min(sent_s), min(last_s), optimized_s)

    def _optimizer_s(self, workload: CombinedWorkload, stages: Sequence[range], num_replicas: int) -> float:
        blocks = [self._model.blocks[number] for stage in stages for number in stage]
        return StagePasses(workload).optimizer_s(blocks, num_replicas)

    def _collective(
        self, workload: CombinedWorkload, place: int, collective: Collective, runs: Sequence[Sequence[int]]
    ) -> tuple[float, float]:
        """Return the seconds of a collective of these blocks' parameters, inside hosts and between them."""
        names = ("tensor", "context", "expert", "pipeline", "order")
        layout = tuple(getattr(workload, name) for name in names)
        num_experts = sum(self._experts_before[run[-1] + 1] - self._experts_before[run[0]] for run in runs)
        num_parameters = sum(self._parameters_before[run[-1] + 1] - self._parameters_before[run[0]] for run in runs)
        key = (layout, place, collective, num_parameters, num_experts)
        if key not in self._seconds:
            if layout not in self._expansions:
                timeline = Timeline(self._switches)
                self._expansions[layout] = Expansion(workload, self._placement, timeline, of_each_kind=True)
            dense_bytes, expert_bytes = StagePasses(workload).gradient_bytes(num_parameters, num_experts)
            sent = self._expansions[layout].exchange(place, collective, dense_bytes, expert_bytes)
            self._seconds[key] = (
                sum(inside_s for inside_s, _ in sent),
                sum(self._switches.least_s(self._switches.loads(flows), shared=True) for _, flows in sent),
            )
        return self._seconds[key]
