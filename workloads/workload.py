"""Workload types: what a job computes and sends, as in the ``workload:`` of a scenario's job."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from workloads.chakra_workload import ChakraWorkload
from workloads.combined_workload import CombinedWorkload
from workloads.field_types import (
    Bytes,
    FlowsPerPair,
    Fraction,
    Name,
    PositiveBytes,
    PositiveCount,
    PositiveNumber,
    PositiveSeconds,
    ScenarioModel,
)
from workloads.model_workload import ModelWorkload
from workloads.models import ModelName
from workloads.pipeline_order import CHUNKS, PipelineSchedule, checked_chunks


class Pattern(StrEnum):
    """Traffic pattern: each host to the next, each to all others, or the first of each pair to the second."""

    RING = "ring"
    ALL_TO_ALL = "all_to_all"
    PAIRS = "pairs"


class Transfer(ScenarioModel):
    """Bytes from one host to another in every iteration."""

    source: Name
    destination: Name
    bytes: PositiveBytes


class Phases(ScenarioModel):
    """One compute phase per iteration, and communication that starts after the fraction ``comm_start`` of it.

    The next iteration begins when both have ended. Traffic is either ``bytes`` per host and iteration, split evenly
    over the host's peers in ``pattern``, or the transfers listed in ``flows``. A transfer is ``flows_per_pair`` flows
    (None: one per NIC that the job uses at the source). ``flops`` is what the whole job computes in one iteration.
    """

    compute_s: PositiveSeconds
    comm_start: Fraction
    bytes: Bytes | None = None
    pattern: Pattern | None = None
    flows: tuple[Transfer, ...] | None = Field(default=None, validate_default=True)
    flows_per_pair: FlowsPerPair | None = None
    flops: PositiveNumber | None = None

    @field_validator("flows")
    @classmethod
    def _traffic_is_given_once(
        cls, flows: tuple[Transfer, ...] | None, info: ValidationInfo
    ) -> tuple[Transfer, ...] | None:
        if {"bytes", "pattern"} <= info.data.keys():
            given = [key for key in ("bytes", "pattern") if info.data[key] is not None]
            if len(given) != (0 if flows is not None else 2):
                raise ValueError("expected either both bytes and pattern, or flows alone")
        return flows


class PhasesWorkload(Phases):
    """A job that is described by its phases alone."""

    type: Literal["phases"]


class CommandWorkload(Phases):
    """A program of the user's own, which runs on real hosts; other back ends play the phases that describe it.

    ``command`` is the program and its arguments, started at every host of the job. In them ``{host}``, ``{rank}``,
    ``{peers}``, ``{job}`` and ``{iterations}`` stand for the host's name, its place among the job's hosts, the names of
    all of these, the job's name, and its number of iterations.
    """

    type: Literal["command"]
    command: Annotated[tuple[str, ...], Field(min_length=1)]


class TorchParallelism(StrEnum):
    """Parallelism of a PyTorch job."""

    DDP = "ddp"
    FSDP = "fsdp"
    PIPELINE = "pipeline"
    MOE = "moe"


class TorchComputation(StrEnum):
    """What a PyTorch job computes: nothing, for as long as it says, or a small model."""

    STAND_IN = "stand_in"
    REAL = "real"


_TORCH_KEYS = {
    TorchParallelism.DDP: ("parameter_bytes", "layers"),
    TorchParallelism.FSDP: ("parameter_bytes", "layers"),
    TorchParallelism.PIPELINE: ("activation_bytes", "micro_batches"),
    TorchParallelism.MOE: ("activation_bytes", "layers"),
}
"""The keys that each parallelism needs; the others it does not take."""

Parts = Annotated[int, Field(strict=True, gt=0, le=1024)]
Layers = Annotated[int, Field(strict=True, gt=0, le=128)]


class TorchWorkload(ScenarioModel):
    """A PyTorch job, one rank for each host: it trains over gloo on real hosts; other back ends play its task graph.

    Every GPU computes ``compute_s`` per iteration, a third of it forward; with ``computation: real`` that is what other
    back ends play. The model has ``parameter_bytes`` in ``layers`` of equal size. ``activation_bytes`` are what a stage
    of a pipeline passes to the next in all ``micro_batches``, or what a host sends to the experts of a layer.
    """

    type: Literal["torch"]
    parallelism: TorchParallelism
    compute_s: PositiveSeconds
    computation: TorchComputation = TorchComputation.STAND_IN
    parameter_bytes: PositiveBytes | None = Field(default=None, validate_default=True)
    activation_bytes: PositiveBytes | None = Field(default=None, validate_default=True)
    layers: Layers | None = Field(default=None, validate_default=True)
    micro_batches: Parts | None = Field(default=None, validate_default=True)
    flops: PositiveNumber | None = None

    @field_validator("parameter_bytes", "activation_bytes", "layers", "micro_batches")
    @classmethod
    def _belongs_to_the_parallelism(cls, value: float | None, info: ValidationInfo) -> float | None:
        parallelism = info.data.get("parallelism")
        if parallelism is not None:
            is_needed = info.field_name in _TORCH_KEYS[parallelism]
            if is_needed and value is None:
                raise ValueError(f"missing; parallelism {parallelism.value} needs this key")
            if not is_needed and value is not None:
                takes = ", ".join(_TORCH_KEYS[parallelism])
                raise ValueError(f"expected no such key with parallelism {parallelism.value}, which takes {takes}")
        return value


class DataParallelWorkload(ModelWorkload):
    """Data parallelism: all hosts compute, and reduce their gradients in a ring meanwhile.

    All gradients are reduced at once when the model says, or in ``buckets`` as the backward pass proceeds.
    """

    type: Literal["dp"]
    buckets: Parts | None = None


class ShardedOptimizerWorkload(ModelWorkload):
    """Data parallelism with a sharded optimizer (ZeRO-1, ZeRO-2): scatters gradients, gathers new parameters.

    Both happen in ``buckets`` of layers. The gathers overlap the forward pass unless ``overlap`` is false.
    """

    type: Literal["zero"]
    buckets: Parts
    overlap: bool = True


class ParameterServerWorkload(ModelWorkload):
    """Data parallelism with parameter servers on the first ``servers`` of the job's hosts.

    The servers' GPUs compute nothing; each server holds an equal share of the parameters.
    """

    type: Literal["ps"]
    servers: Parts = 1


def _needed_unless_described(value: int | None, info: ValidationInfo) -> int | None:
    if value is None and isinstance(info.data.get("model"), ModelName):
        raise ValueError(f"missing; the model {info.data['model']} needs this key")
    return value


NumberOfLayers = Annotated[Layers | None, AfterValidator(_needed_unless_described), Field(validate_default=True)]
"""Layers that the hosts divide; a public or described model has its own."""
LayerGroups = Annotated[Parts | None, AfterValidator(_needed_unless_described), Field(validate_default=True)]


class TensorParallelWorkload(ModelWorkload):
    """Tensor parallelism: hosts share every layer and reduce its activations twice forward and twice backward."""

    type: Literal["tp"]
    layers: NumberOfLayers = None


class ExpertParallelWorkload(ModelWorkload):
    """Mixture of experts: every layer sends its tokens to experts on other hosts and gets the results back.

    Tokens travel in ``chunks``: the experts compute one chunk while others are in flight.
    """

    type: Literal["moe"]
    layers: NumberOfLayers = None
    chunks: Layers = 1


class ContextParallelWorkload(ModelWorkload):
    """Context parallelism by ring attention: each host has a block of the sequence and passes keys and values on."""

    type: Literal["cp"]
    layers: NumberOfLayers = None


class PipelineWorkload(ModelWorkload):
    """Pipeline parallelism: each host of the job, in order, is a stage, or ``chunks`` of stages."""

    type: Literal["pp"]
    micro_batches: Parts
    schedule: PipelineSchedule = PipelineSchedule.ONE_FORWARD_ONE_BACKWARD
    chunks: PositiveCount | None = None

    @field_validator("chunks")
    @classmethod
    def _fits_the_schedule(cls, chunks: int | None, info: ValidationInfo) -> int | None:
        return checked_chunks(chunks, info.data.get("schedule"))

    @property
    def chunks_per_host(self) -> int:
        """Chunks of layers on each host; by default the fewest that the schedule allows."""
        return self.chunks or CHUNKS[self.schedule][0]


class FullyShardedWorkload(ModelWorkload):
    """Fully sharded data parallelism (FSDP, ZeRO-3): gathers parameters before use, scatters gradients after.

    ``layer_groups`` are gathered in turn; while one computes, the next ``prefetch`` are in flight. With ``replicas``
    (HSDP), that many groups of hosts each hold all parameters, and reduce gradients among each other after the scatter.
    """

    type: Literal["fsdp"]
    layer_groups: LayerGroups = None
    prefetch: PositiveCount = 1
    replicas: PositiveCount = 1


Workload = Annotated[
    PhasesWorkload
    | CommandWorkload
    | TorchWorkload
    | DataParallelWorkload
    | ShardedOptimizerWorkload
    | ParameterServerWorkload
    | TensorParallelWorkload
    | ExpertParallelWorkload
    | ContextParallelWorkload
    | PipelineWorkload
    | FullyShardedWorkload
    | CombinedWorkload
    | ChakraWorkload,
    Field(discriminator="type"),
]
"""The ``workload:`` mapping of a job; ``type`` selects the class."""
