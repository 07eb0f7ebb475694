"""A scenario: a fabric, the jobs that share it and how a run is measured, as its YAML file says."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from topologies.specification import Topology

Name = Annotated[str, Field(min_length=1)]
PositiveCount = Annotated[int, Field(strict=True, gt=0)]
NonNegativeCount = Annotated[int, Field(strict=True, ge=0)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Seconds = Annotated[Number, Field(ge=0, le=1e6)]  # the engine's clock ends after 106 days
PositiveSeconds = Annotated[Number, Field(gt=0, le=1e6)]
Scale = Annotated[Number, Field(gt=0, le=1e6)]
PositiveNumber = Annotated[Number, Field(gt=0)]
Bytes = Annotated[Number, Field(ge=0, lt=2**63)]
PositiveBytes = Annotated[Number, Field(gt=0, lt=2**63)]
Fraction = Annotated[Number, Field(ge=0, le=1)]


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
    flows_per_pair: PositiveCount | None = None
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


Workload = PhasesWorkload
"""The ``workload:`` mapping of a job, told apart by ``type``."""


class JobSpecification(ScenarioModel):
    """A job: where and when it runs, and what it computes and sends.

    It ends after ``iterations``, or with the iteration during which ``duration_s`` since its arrival has passed.
    """

    name: Name
    hosts: Annotated[tuple[Name, ...], Field(min_length=1)]
    gpus_per_host: PositiveCount
    arrival_s: Seconds = 0.0
    iterations: PositiveCount | None = None
    duration_s: PositiveSeconds | None = Field(default=None, validate_default=True)
    workload: Workload

    @field_validator("duration_s")
    @classmethod
    def _has_one_end(cls, duration_s: float | None, info: ValidationInfo) -> float | None:
        if "iterations" in info.data and (duration_s is None) == (info.data["iterations"] is None):
            raise ValueError("expected exactly one of iterations and duration_s")
        return duration_s

    @property
    def gpus(self) -> int:
        return len(self.hosts) * self.gpus_per_host

    @property
    def work(self) -> float:
        """W of Crux (section 3): GPU-seconds of computation per iteration, or FLOPs where the workload gives them."""
        return self.workload.compute_s * self.gpus if self.workload.flops is None else self.workload.flops


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


class Scenario(ScenarioModel):
    """A whole scenario. ``workloads.loading.load_scenario`` also checks it across its parts.

    ``scale`` divides rates and sizes in packet-level runs, times unchanged (None: the backend's choice).
    ``reaction_delay_s`` passes between an event and the moment the fabric follows the decision that it caused.
    The first ``warm_up_iterations`` of every job are not measured; ``measure`` sets the window outright instead.
    """

    name: Name
    topology: Topology
    jobs: Annotated[tuple[JobSpecification, ...], Field(min_length=1)]
    policy: Name | None = None
    seed: Annotated[int, Field(strict=True)] = 1
    scale: Scale | None = None
    reaction_delay_s: Seconds = 0.01
    warm_up_iterations: NonNegativeCount = 0
    measure: MeasureWindow | None = None

    @field_validator("measure")
    @classmethod
    def _warm_up_is_given_once(cls, measure: MeasureWindow | None, info: ValidationInfo) -> MeasureWindow | None:
        if measure is not None and info.data.get("warm_up_iterations"):
            raise ValueError("expected either measure or warm_up_iterations, not both")
        return measure
