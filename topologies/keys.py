"""What the ``topology:`` mappings of all kinds have in common: their numbers, two keys, and how they refuse."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError, ValidationError

from topologies.addressing import MAX_HOSTS, MAX_NICS_PER_HOST
from topologies.fabric import Fabric, Pcie
from topologies.faults import Fault

# Strict, so that neither true nor "8" is taken for a number.
Count = Annotated[int, Field(strict=True, gt=0, le=MAX_HOSTS)]
NicCount = Annotated[int, Field(strict=True, gt=0, le=MAX_NICS_PER_HOST)]
GpuCount = Annotated[int, Field(strict=True, gt=0, le=1024)]
Gbps = Annotated[float, Field(strict=True, gt=0, le=1_000_000, allow_inf_nan=False)]
DelayUs = Annotated[float, Field(strict=True, ge=0, le=1_000_000, allow_inf_nan=False)]


class PcieSpecification(BaseModel):
    """The PCIe switches of hosts: NICs on each, and the payload rate of the link that these and their GPUs share."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gbps: Gbps
    nics_per_switch: NicCount = 1


class Specification(BaseModel):
    """Keys that every topology has. Rates are payload rates per direction; ``delay_us`` is a cable's, one way."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gpus_per_host: GpuCount = 8
    delay_us: DelayUs = 1.0
    pcie: PcieSpecification | None = None

    @property
    def host_pcie(self) -> Pcie | None:
        """What ``pcie`` says, as the fabric has it."""
        return None if self.pcie is None else Pcie(self.pcie.nics_per_switch, self.pcie.gbps * 1e9)

    @abstractmethod
    def build(self) -> Fabric:
        """The fabric that the keys describe."""


def refusal(of: BaseModel | type[BaseModel], faults: Sequence[Fault], others: Sequence[ErrorDetails] = ()) -> Exception:
    """The error for a validator to raise so that every fault is reported in its place, after any other errors."""
    title = of.__name__ if isinstance(of, type) else type(of).__name__
    lines = [
        InitErrorDetails(type=other["type"], loc=other["loc"], input=other["input"], ctx=other.get("ctx", {}))
        for other in others
    ]
    lines += [
        InitErrorDetails(
            type=PydanticCustomError("topology", "{fault}", {"fault": fault.expected}),
            loc=fault.location,
            input=fault.given,
        )
        for fault in faults
    ]
    return ValidationError.from_exception_data(title, lines)
