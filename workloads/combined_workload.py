"""The workload ``combined``: a described model, divided by several parallelisms at once."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from topologies.problems import Problem, validation_error
from workloads.combined.ranks import RankOrder
from workloads.described.description import ModelDescription
from workloads.described.devices import NVLINK_GBPS, Device
from workloads.described.timing import device_for
from workloads.field_types import FlowsPerPair, PositiveNumber, ScenarioModel
from workloads.model_workload import ModelReference, description_of, device_problems
from workloads.pipeline_order import CHUNKS, PipelineSchedule, checked_chunks

Degree = Annotated[int, Field(strict=True, gt=0, le=65_536)]


class Recomputation(StrEnum):
    """What the backward pass computes again: nothing, the scores of attention, or the whole forward pass."""

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


class AllReduce(StrEnum):
    """Way of an all-reduce between hosts: what NCCL would choose, or always the same."""

    NCCL = "nccl"
    RING = "ring"
    TREE = "tree"
    HIERARCHICAL = "hierarchical"


class CombinedWorkload(ScenarioModel):
    """Tensor, context, expert and pipeline parallelism; the rest of the job's GPUs are data parallelism.

    An iteration computes a ``batch`` of samples, in micro-batches of ``micro_batch`` for each replica. ``zero`` is the
    stage of ZeRO. The last backward pass of a stage is cut into ``buckets``, each of which reduces its gradients when
    it is done. With ``sequence`` the ranks of tensor parallelism divide norms and sums, too. ``nvlink_gbps`` is a GPU's
    rate inside a host, ``nic_gbps`` a NIC's rate as NCCL's choice knows it.
    """

    type: Literal["combined"]
    model: ModelReference
    device: Device | None = None
    batch: Annotated[int, Field(strict=True, gt=0, le=2**31)]
    micro_batch: Annotated[int, Field(strict=True, gt=0, le=2**31)] = 1
    tensor: Degree = 1
    context: Degree = 1
    expert: Degree = 1
    pipeline: Annotated[int, Field(strict=True, gt=0, le=1024)] = 1
    order: RankOrder = RankOrder.DATA_BEFORE_PIPELINE
    schedule: PipelineSchedule = PipelineSchedule.ONE_FORWARD_ONE_BACKWARD
    chunks: Annotated[int, Field(strict=True, gt=0)] | None = None
    zero: Annotated[int, Field(strict=True, ge=0, le=3)] = 0
    buckets: Annotated[int, Field(strict=True, gt=0, le=1024)] = 1
    sequence: Annotated[bool, Field(strict=True)] = False
    recompute: Recomputation = Recomputation.NONE
    all_reduce: AllReduce = AllReduce.NCCL
    nvlink_gbps: PositiveNumber | None = None
    nic_gbps: PositiveNumber = 400.0
    flows_per_pair: FlowsPerPair | None = None
    flops: PositiveNumber | None = None

    @field_validator("chunks")
    @classmethod
    def _fits_the_schedule(cls, chunks: int | None, info: ValidationInfo) -> int | None:
        return checked_chunks(chunks, info.data.get("schedule"))

    @model_validator(mode="after")
    def _model_has_layers_and_speed(self) -> Self:
        description = description_of(self.model)
        if description is None:
            problem = f"expected a public model or a description, whose layers are divided, got {self.model}"
            raise validation_error(self, [Problem(("model",), problem)])
        problems = device_problems(description, self.device)
        device = device_for(description, self.device)
        if self.nvlink_gbps is None and not problems and (device is None or device.name is None):
            problems.append(Problem(("nvlink_gbps",), "missing; needed for a device that is not one of the table"))
        if problems:
            raise validation_error(self, problems)
        return self

    @property
    def description(self) -> ModelDescription:
        """The description of the model."""
        description = description_of(self.model)
        assert description is not None
        return description

    @property
    def chunks_per_stage(self) -> int:
        """Chunks of layers on each rank; by default the fewest that the schedule allows."""
        return self.chunks or CHUNKS[self.schedule][0]

    @property
    def nvlink_bytes_per_s(self) -> float:
        """What a GPU sends inside its host, and receives meanwhile."""
        device = device_for(self.description, self.device)
        gbps = self.nvlink_gbps
        if gbps is None and device is not None and device.name is not None:
            gbps = NVLINK_GBPS[device.name]
        assert gbps is not None
        return gbps * 1e9 / 8
