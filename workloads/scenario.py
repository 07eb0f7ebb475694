"""The scenario file: a fabric, the jobs that share it, and how a run is measured."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from topologies.ecmp import FabricHash
from topologies.names import PlainName
from topologies.specification import Topology
from topologies.steering import Steering
from workloads.events import ScenarioEvent
from workloads.field_types import (
    ErrorSize,
    Jitter,
    Name,
    NonNegativeCount,
    PositiveCount,
    PositiveSeconds,
    Scale,
    ScenarioModel,
    Seconds,
)
from workloads.workload import Workload

DEFAULT_RECOVERY_S = 1.0


class PlacementPolicy(StrEnum):
    """Placement of a job that asks for GPUs: under as few switches as possible, or under as many."""

    AFFINITY = "affinity"
    SPREAD = "spread"


class GpuChoice(StrEnum):
    """Order in which a job takes a host's free GPUs: the first ones, or those of each NIC in turn."""

    FIRST = "first"
    PER_NIC = "per_nic"


class ProfileSource(StrEnum):
    """Source of the controller's knowledge of a job: reported by the job, or measured."""

    REPORTED = "told"
    MEASURED = "measured"


class JobSpecification(ScenarioModel):
    """A job: where and when it runs, and what it computes and sends.

    ``profile`` says whether the job reports its profile to the controller or leaves it to be measured. The job names
    its ``hosts``, or asks for ``gpus``, with ``gpus_per_host`` on each host chosen by its ``placement``. It ends after
    ``iterations``, or after the iteration in which ``duration_s`` since its arrival ends.
    """

    name: PlainName
    hosts: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    gpus_per_host: PositiveCount
    gpus: PositiveCount | None = Field(default=None, validate_default=True)
    placement: PlacementPolicy | None = None
    gpu_choice: GpuChoice = GpuChoice.FIRST
    arrival_s: Seconds = 0.0
    profile: ProfileSource = ProfileSource.REPORTED
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
    """Relative errors of the work, bytes and overlap that every job reports to the controller."""

    work: ErrorSize = 0.0
    bytes: ErrorSize = 0.0
    overlap: ErrorSize = 0.0


class MeasureWindow(ScenarioModel):
    """The part of a run that is measured."""

    from_s: Seconds
    to_s: PositiveSeconds

    @field_validator("to_s")
    @classmethod
    def _is_not_empty(cls, to_s: float, info: ValidationInfo) -> float:
        if "from_s" in info.data and to_s <= info.data["from_s"]:
            raise ValueError(f"expected more than from_s, which is {info.data['from_s']}")
        return to_s


class CongestionControlChoice(ScenarioModel):
    """Name of a congestion control of the emulator's hosts, and values of its parameters that are not its own."""

    name: Name
    parameters: dict[Name, Annotated[float, Field(allow_inf_nan=False)]] = Field(default_factory=dict)


class Scenario(ScenarioModel):
    """A whole scenario. ``workloads.loading.load_scenario`` also checks its parts against each other.

    Policies use the ``num_levels`` lowest levels of the hardware. ``scale`` divides rates and sizes in packet-level
    runs and leaves times unchanged (None: the back end chooses). A decision takes effect ``reaction_delay_s`` after the
    event that caused it. ``hash`` says whether the controller knows the switches' hash, ``probes`` whether hosts send
    probes; both matter only in packet-level runs. ``reads_ports``: switches report to the controller which ports are
    up. A switch or controller that comes up in ``events`` serves again ``recovery_s`` later.

    ``congestion_control`` is what emulated hosts have instead of fixed windows.

    ``compute_jitter`` is the relative standard deviation of computation times. ``profile_error`` is the error of what
    jobs report about themselves. The time that a job's first ``warm_up_iterations`` take in the ideal is not measured;
    ``measure`` sets the measured window instead.
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
    congestion_control: CongestionControlChoice | None = None
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
