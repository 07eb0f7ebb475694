"""A scenario: a fabric, the jobs that share it and how a run is measured, as its YAML file says."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from topologies.addressing import FIRST_SOURCE_PORT, LAST_SOURCE_PORT
from topologies.ecmp import FabricHash
from topologies.names import PlainName
from topologies.specification import Topology
from topologies.steering import Steering
from workloads.models import ModelName

Name = Annotated[str, Field(min_length=1)]
PositiveCount = Annotated[int, Field(strict=True, gt=0)]
FlowsPerPair = Annotated[int, Field(strict=True, gt=0, le=LAST_SOURCE_PORT - FIRST_SOURCE_PORT + 1)]
NonNegativeCount = Annotated[int, Field(strict=True, ge=0)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
DEFAULT_RECOVERY_S = 1.0
LONGEST_S = 1e6
"""No time in a scenario is longer: the clock of a run ends after 106 days."""

Seconds = Annotated[Number, Field(ge=0, le=LONGEST_S)]
PositiveSeconds = Annotated[Number, Field(gt=0, le=LONGEST_S)]
Scale = Annotated[Number, Field(gt=0, le=1e6)]
PositiveNumber = Annotated[Number, Field(gt=0)]
Bytes = Annotated[Number, Field(ge=0, lt=2**63)]
PositiveBytes = Annotated[Number, Field(gt=0, lt=2**63)]
Fraction = Annotated[Number, Field(ge=0, le=1)]
Jitter = Annotated[Number, Field(ge=0, le=0.3)]
ErrorSize = Annotated[Number, Field(ge=0, lt=1)]


class ScenarioModel(BaseModel):
    """What every mapping of a scenario has in common: it cannot change, and it refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Pattern(StrEnum):
    """Who sends to whom: each host to the next, each to all others, or the first of each pair to the second."""

    RING = "ring"
    ALL_TO_ALL = "all_to_all"
    PAIRS = "pairs"


class Transfer(ScenarioModel):
    """Bytes from one host to another in every iteration."""

    source: Name
    destination: Name
    bytes: PositiveBytes


class PhasesWorkload(ScenarioModel):
    """One compute phase per iteration, and communication that starts when the fraction ``comm_start`` of it is done.

    The next iteration begins when both have ended. Traffic is ``bytes`` of payload per host and iteration, split evenly
    over the host's peers in ``pattern``, or the transfers listed in ``flows``. A transfer is ``flows_per_pair`` flows
    (None: one per NIC that the job uses at the source). ``flops`` is what the whole job computes in one iteration.
    """

    type: Literal["phases"]
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


class ModelWorkload(ScenarioModel):
    """A model of the table (``workloads.models``), whose parallelism the ``type`` of the workload names.

    ``flows_per_pair`` takes the place of the table's; ``flops`` is what the whole job computes in one iteration.
    """

    model: ModelName
    flows_per_pair: FlowsPerPair | None = None
    flops: PositiveNumber | None = None


Parts = Annotated[int, Field(strict=True, gt=0, le=1024)]
Layers = Annotated[int, Field(strict=True, gt=0, le=128)]


class DataParallelWorkload(ModelWorkload):
    """Data parallelism: all hosts compute, and reduce their gradients in a ring meanwhile.

    All gradients at once when the model says; or in ``buckets``, each when the backward pass has come so far.
    """

    type: Literal["dp"]
    buckets: Parts | None = None


class ShardedOptimizerWorkload(ModelWorkload):
    """Data parallelism with a sharded optimizer (ZeRO-1 and ZeRO-2): gradients scattered, new parameters gathered.

    In ``buckets`` of layers; the gathers overlap the forward pass, unless ``overlap`` is false.
    """

    type: Literal["zero"]
    buckets: Parts
    overlap: bool = True


class ParameterServerWorkload(ModelWorkload):
    """Data parallelism with parameter servers, the first ``servers`` of the job's hosts: gradients pushed to them.

    The servers' GPUs compute nothing; each of them has an equal share of the parameters.
    """

    type: Literal["ps"]
    servers: Parts = 1


class TensorParallelWorkload(ModelWorkload):
    """Tensor parallelism: the hosts share every layer, and reduce its activations twice forward and twice backward."""

    type: Literal["tp"]
    layers: Layers


class ExpertParallelWorkload(ModelWorkload):
    """Mixture of experts: every layer sends its tokens to experts on other hosts and takes back what they make of them.

    ``chunks`` of the tokens follow one another, so that one is computed while others are on their way.
    """

    type: Literal["moe"]
    layers: Layers
    chunks: Layers = 1


class ContextParallelWorkload(ModelWorkload):
    """Context parallelism by ring attention: each host has a block of the sequence and passes keys and values on."""

    type: Literal["cp"]
    layers: Layers


class PipelineSchedule(StrEnum):
    """Order of the micro-batches on a pipeline stage."""

    GPIPE = "gpipe"
    ONE_FORWARD_ONE_BACKWARD = "1f1b"
    INTERLEAVED = "interleaved"
    INTERLEAVED_ZERO_BUBBLE = "interleaved_zero_bubble"
    ZERO_BUBBLE_V = "zero_bubble_v"
    DUAL_PIPE_V = "dual_pipe_v"


_CHUNKS = {
    PipelineSchedule.GPIPE: (1,),
    PipelineSchedule.ONE_FORWARD_ONE_BACKWARD: (1,),
    PipelineSchedule.INTERLEAVED: range(2, 17),
    PipelineSchedule.INTERLEAVED_ZERO_BUBBLE: range(2, 17),
    PipelineSchedule.ZERO_BUBBLE_V: (2,),
    PipelineSchedule.DUAL_PIPE_V: (2,),
}
"""How many chunks of layers a host can hold."""


class PipelineWorkload(ModelWorkload):
    """Pipeline parallelism: each host of the job, in their order, is a stage, or ``chunks`` of them."""

    type: Literal["pp"]
    micro_batches: Parts
    schedule: PipelineSchedule = PipelineSchedule.ONE_FORWARD_ONE_BACKWARD
    chunks: PositiveCount | None = None

    @field_validator("chunks")
    @classmethod
    def _fits_the_schedule(cls, chunks: int | None, info: ValidationInfo) -> int | None:
        schedule = info.data.get("schedule")
        if chunks is not None and schedule is not None and chunks not in _CHUNKS[schedule]:
            fitting = _CHUNKS[schedule]
            expected = f"{fitting[0]}" if len(fitting) == 1 else f"{fitting[0]} to {fitting[-1]}"
            raise ValueError(f"expected {expected} for schedule {schedule.value}")
        return chunks

    @property
    def chunks_per_host(self) -> int:
        """Chunks of layers that each host holds: the fewest where none are given."""
        return self.chunks or _CHUNKS[self.schedule][0]


class FullyShardedWorkload(ModelWorkload):
    """Fully sharded data parallelism (FSDP, ZeRO-3): parameters are gathered before and gradients scattered after use.

    ``layer_groups`` are gathered one after the other; while one computes, the next ``prefetch`` are on their way. With
    ``replicas`` (HSDP) so many groups of hosts, in their order, have all parameters each, and reduce gradients among
    each other after scattering them.
    """

    type: Literal["fsdp"]
    layer_groups: Parts
    prefetch: PositiveCount = 1
    replicas: PositiveCount = 1


Workload = Annotated[
    PhasesWorkload
    | DataParallelWorkload
    | ShardedOptimizerWorkload
    | ParameterServerWorkload
    | TensorParallelWorkload
    | ExpertParallelWorkload
    | ContextParallelWorkload
    | PipelineWorkload
    | FullyShardedWorkload,
    Field(discriminator="type"),
]
"""The ``workload:`` mapping of a job, told apart by ``type``."""


class PlacementPolicy(StrEnum):
    """Which hosts a job gets that asks for GPUs: under as few switches as possible, or under as many."""

    AFFINITY = "affinity"
    SPREAD = "spread"


class GpuChoice(StrEnum):
    """Which of a host's free GPUs a job takes: the first, or of each NIC's in turn."""

    FIRST = "first"
    PER_NIC = "per_nic"


class ProfileSource(StrEnum):
    """How the controller knows what a job computes and sends."""

    TOLD = "told"
    MEASURED = "measured"


class JobSpecification(ScenarioModel):
    """A job: where and when it runs, and what it computes and sends.

    It tells the controller what it does, or its hosts alone, so that its ``profile`` is measured.
    It names its ``hosts``, or asks for ``gpus``, ``gpus_per_host`` on each host, and leaves these to its ``placement``.
    It ends after ``iterations``, or with the iteration during which ``duration_s`` since its arrival has passed.
    """

    name: PlainName
    hosts: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    gpus_per_host: PositiveCount
    gpus: PositiveCount | None = Field(default=None, validate_default=True)
    placement: PlacementPolicy | None = None
    gpu_choice: GpuChoice = GpuChoice.FIRST
    arrival_s: Seconds = 0.0
    profile: ProfileSource = ProfileSource.TOLD
    iterations: PositiveCount | None = None
    duration_s: PositiveSeconds | None = Field(default=None, validate_default=True)
    workload: Workload

    @field_validator("gpus")
    @classmethod
    def _has_hosts_or_gpus(cls, gpus: int | None, info: ValidationInfo) -> int | None:
        if "hosts" in info.data and (gpus is None) == (info.data["hosts"] is None):
            raise ValueError("expected exactly one of hosts and gpus")
        per_host = info.data.get("gpus_per_host")
        if gpus is not None and per_host is not None and gpus % per_host:
            raise ValueError(f"expected a multiple of gpus_per_host, which is {per_host}")
        return gpus

    @field_validator("placement")
    @classmethod
    def _is_left_to_choose(cls, placement: PlacementPolicy | None, info: ValidationInfo) -> PlacementPolicy | None:
        if placement is not None and info.data.get("hosts") is not None:
            raise ValueError("expected gpus instead of hosts where a placement is to choose")
        return placement

    @field_validator("duration_s")
    @classmethod
    def _has_one_end(cls, duration_s: float | None, info: ValidationInfo) -> float | None:
        if "iterations" in info.data and (duration_s is None) == (info.data["iterations"] is None):
            raise ValueError("expected exactly one of iterations and duration_s")
        return duration_s


class ProfileError(ScenarioModel):
    """By what part of the truth the work, bytes and overlap are off that every job tells the controller."""

    work: ErrorSize = 0.0
    bytes: ErrorSize = 0.0
    overlap: ErrorSize = 0.0


class MeasureWindow(ScenarioModel):
    """The part of a run that counts."""

    from_s: Seconds
    to_s: PositiveSeconds

    @field_validator("to_s")
    @classmethod
    def _is_not_empty(cls, to_s: float, info: ValidationInfo) -> float:
        if "from_s" in info.data and to_s <= info.data["from_s"]:
            raise ValueError(f"expected more than from_s, which is {info.data['from_s']}")
        return to_s


class ElementState(StrEnum):
    """Whether a part of the cluster is there."""

    DOWN = "down"
    UP = "up"


class ScenarioEvent(ScenarioModel):
    """Something goes down, or comes back: a cable, a switch, a host or the controller, of which exactly one is named.

    A cable is named by its ends in ``link``, and by its place among those ``parallel`` to it. Controllers are numbered
    from 0; there is one.
    """

    at_s: Seconds
    link: tuple[Name, Name] | None = None
    parallel: NonNegativeCount = 0
    switch: Name | None = None
    host: Name | None = None
    controller: Annotated[int, Field(strict=True, ge=0, le=0)] | None = None
    state: ElementState

    @model_validator(mode="after")
    def _names_one_thing(self) -> Self:
        if sum(getattr(self, key) is not None for key in EVENT_KEYS) != 1:
            raise ValueError(f"expected exactly one of {', '.join(EVENT_KEYS)}")
        if self.link is None and "parallel" in self.model_fields_set:
            raise ValueError("expected parallel only beside link")
        return self

    @property
    def in_words(self) -> str:
        """What happens, for people."""
        if self.link is not None:
            element = f"cable {self.link[0]} to {self.link[1]}{f' ({self.parallel})' if self.parallel else ''}"
        else:
            element = f"switch {self.switch}" if self.switch else f"host {self.host}" if self.host else "controller"
        return f"{element} {self.state}"


EVENT_KEYS = ("link", "switch", "host", "controller")
"""What an event may name."""


class Scenario(ScenarioModel):
    """A whole scenario. ``workloads.loading.load_scenario`` also checks it across its parts.

    Policies have the ``num_levels`` lowest levels of the hardware's.
    ``scale`` divides rates and sizes in packet-level runs, times unchanged (None: the backend's choice).
    ``reaction_delay_s`` passes between an event and the moment the fabric follows the decision that it caused.
    ``hash`` is whether the controller is to know the switches' hash, ``probes`` whether hosts send probes; both matter
    in a packet-level run alone. ``reads_ports``: switches tell the controller which ports are up. Of what goes down in
    ``events`` a switch or a controller serves again ``recovery_s`` after it came up.
    Computations last what they should up to ``compute_jitter``, a standard deviation in parts of one. What jobs tell
    the controller of themselves is off by ``profile_error``; what they do is not.
    The first ``warm_up_iterations`` of every job are not measured; ``measure`` sets the window outright instead.
    """

    name: Name
    topology: Topology
    jobs: Annotated[tuple[JobSpecification, ...], Field(min_length=1)]
    policy: Name | None = None
    steering: Steering = Steering.RULE
    hash: FabricHash = FabricHash.KNOWN
    probes: Annotated[bool, Field(strict=True)] = False
    reads_ports: Annotated[bool, Field(strict=True)] = True
    seed: Annotated[int, Field(strict=True)] = 1
    num_levels: Annotated[int, Field(strict=True, ge=1, le=8)] = 8
    scale: Scale | None = None
    reaction_delay_s: Seconds = 0.01
    recovery_s: Seconds = DEFAULT_RECOVERY_S
    events: tuple[ScenarioEvent, ...] = ()
    compute_jitter: Jitter = 0.0
    profile_error: ProfileError = ProfileError()
    warm_up_iterations: NonNegativeCount = 0
    measure: MeasureWindow | None = None

    @field_validator("measure")
    @classmethod
    def _warm_up_is_given_once(cls, measure: MeasureWindow | None, info: ValidationInfo) -> MeasureWindow | None:
        if measure is not None and info.data.get("warm_up_iterations"):
            raise ValueError("expected either measure or warm_up_iterations, not both")
        return measure
