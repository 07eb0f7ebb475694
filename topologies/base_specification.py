"""Base classes of topologies: the keys of every ``topology:``, and those of topologies with identical hosts."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from topologies.addressing import MAX_HOSTS, MAX_NICS_PER_HOST, MAX_PORTS_PER_SWITCH
from topologies.bounds import at_least
from topologies.fabric import Cable, Fabric, Pcie
from topologies.problems import Problem, validation_error

# Strict types accept neither true nor "8" as a number.
Count = Annotated[int, Field(strict=True, gt=0, le=MAX_HOSTS)]
NicCount = Annotated[int, Field(strict=True, gt=0, le=MAX_NICS_PER_HOST)]
GpuCount = Annotated[int, Field(strict=True, gt=0, le=1024)]
Gbps = Annotated[float, Field(strict=True, gt=0, le=1_000_000, allow_inf_nan=False), at_least(1e-6)]
DelayUs = Annotated[float, Field(strict=True, ge=0, le=1_000_000, allow_inf_nan=False)]


class PcieSpecification(BaseModel):
    """PCIe switches of hosts: NICs per switch, and the payload rate of the link they share with their GPUs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gbps: Gbps
    nics_per_switch: NicCount = 1


class Specification(BaseModel):
    """Keys of every topology. Rates are payload rates per direction; ``delay_us`` is a cable's one-way delay."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gpus_per_host: GpuCount = 8
    delay_us: DelayUs = 1.0
    pcie: PcieSpecification | None = None

    @property
    def host_pcie(self) -> Pcie | None:
        """The fabric's form of ``pcie``."""
        return None if self.pcie is None else Pcie(self.pcie.nics_per_switch, self.pcie.gbps * 1e9)

    @abstractmethod
    def build(self) -> Fabric:
        """Build the fabric."""


def numbered_names(prefix: str, count: int) -> tuple[str, ...]:
    """Return names of a prefix and a number, from 0."""
    return tuple(f"{prefix}{number}" for number in range(count))


class RegularSpecification(Specification):
    """Keys of topologies whose hosts are all alike.

    A host has ``nics_per_host`` NICs, each with its own cable and an equal share of ``host_link_gbps``. Keys that
    together exceed the addresses (``topologies.addressing``) are invalid.
    """

    nics_per_host: NicCount = 1
    host_link_gbps: Gbps

    @abstractmethod
    def num_hosts(self) -> tuple[int, str]:
        """Return the number of hosts, and the keys that determine it."""

    @abstractmethod
    def num_ports(self) -> Mapping[str, int]:
        """Return the ports of each kind of switch; the names include the keys that determine them."""

    def problems(self) -> list[Problem]:
        """Return the problems of the keys together."""
        problems = [
            Problem((), f"expected at most {MAX_PORTS_PER_SWITCH} ports on a switch, {place} has {ports:,}")
            for place, ports in self.num_ports().items()
            if ports > MAX_PORTS_PER_SWITCH
        ]
        num_hosts, keys = self.num_hosts()
        if num_hosts > MAX_HOSTS:
            problems.append(Problem((), f"expected at most {MAX_HOSTS:,} hosts, {keys} makes {num_hosts:,}"))
        return problems

    @model_validator(mode="after")
    def _keys_go_together(self) -> Self:
        if problems := self.problems():
            raise validation_error(self, problems)
        return self

    def host_cables(self, host: str, switches: Sequence[str]) -> list[Cable]:
        """Return the cables of a host's NICs, which take turns among the switches."""
        share_gbps = self.host_link_gbps / self.nics_per_host
        return [self.cable(host, switches[nic % len(switches)], share_gbps) for nic in range(self.nics_per_host)]

    def cable(self, first: str, second: str, gbps: float) -> Cable:
        """Return a cable of this topology."""
        return Cable((first, second), gbps * 1e9, self.delay_us * 1e-6)
