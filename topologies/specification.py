"""The ``topology:`` mapping of a scenario, validated, and the fabric it describes."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from topologies.fabric import Cable, Fabric

PositiveGbps = Annotated[float, Field(gt=0, allow_inf_nan=False)]
PositiveCount = Annotated[int, Field(gt=0)]
DelayUs = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Specification(BaseModel):
    """Keys that every topology has. Rates are payload rates per direction."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gpus_per_host: PositiveCount = 8
    delay_us: DelayUs = 1.0


class ClosSpecification(Specification):
    """Two layers: every ToR has ``uplinks_per_pair`` cables to every aggregation switch; hosts hang off one ToR."""

    kind: Literal["clos"]
    tors: PositiveCount
    aggs: PositiveCount
    hosts_per_tor: PositiveCount
    nics_per_host: PositiveCount = 1
    host_link_gbps: PositiveGbps
    uplink_gbps: PositiveGbps
    uplinks_per_pair: PositiveCount = 1

    def build(self) -> Fabric:
        """Hosts h0…, ToRs t0…, aggregation switches a0…; hosts fill the ToRs in order."""
        hosts = _names("h", self.tors * self.hosts_per_tor)
        tors, aggs = _names("t", self.tors), _names("a", self.aggs)
        cables = [
            cable
            for number, host in enumerate(hosts)
            for cable in self._host_cables(host, tors[number // self.hosts_per_tor])
        ]
        cables += [
            Cable((tor, agg), self.uplink_gbps * 1e9, self.delay_us * 1e-6)
            for tor in tors
            for agg in aggs
            for _ in range(self.uplinks_per_pair)
        ]
        return Fabric(hosts, tors + aggs, tuple(cables), self.gpus_per_host)

    def _host_cables(self, host: str, tor: str) -> list[Cable]:
        rate_bps = self.host_link_gbps * 1e9 / self.nics_per_host
        return [Cable((host, tor), rate_bps, self.delay_us * 1e-6)] * self.nics_per_host


class DumbbellSpecification(Specification):
    """Two switches t0 and t1 joined by one or more cables; the first half of the hosts on t0, the rest on t1."""

    kind: Literal["dumbbell"]
    hosts_per_side: PositiveCount
    nics_per_host: PositiveCount = 1
    host_link_gbps: PositiveGbps
    bottleneck_gbps: PositiveGbps
    bottleneck_links: PositiveCount = 1

    def build(self) -> Fabric:
        """Hosts h0…, switches t0 and t1."""
        hosts = _names("h", 2 * self.hosts_per_side)
        rate_bps, delay_s = self.host_link_gbps * 1e9 / self.nics_per_host, self.delay_us * 1e-6
        cables = [
            Cable((host, f"t{number // self.hosts_per_side}"), rate_bps, delay_s)
            for number, host in enumerate(hosts)
            for _ in range(self.nics_per_host)
        ]
        cables += [Cable(("t0", "t1"), self.bottleneck_gbps * 1e9, delay_s)] * self.bottleneck_links
        return Fabric(hosts, ("t0", "t1"), tuple(cables), self.gpus_per_host)


class LinkSpecification(BaseModel):
    """One cable of an explicit graph."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ends: tuple[str, str]
    gbps: PositiveGbps
    delay_us: DelayUs | None = None


class GraphSpecification(Specification):
    """An explicit graph; the same pair of ends may be listed more than once (parallel links)."""

    kind: Literal["graph"]
    hosts: Annotated[tuple[str, ...], Field(min_length=1)]
    switches: Annotated[tuple[str, ...], Field(min_length=1)]
    links: Annotated[tuple[LinkSpecification, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _is_a_fabric(self) -> "GraphSpecification":
        self.build()
        return self

    def build(self) -> Fabric:
        """The fabric as listed; names are kept."""
        cables = (
            Cable(link.ends, link.gbps * 1e9, (self.delay_us if link.delay_us is None else link.delay_us) * 1e-6)
            for link in self.links
        )
        return Fabric(self.hosts, self.switches, tuple(cables), self.gpus_per_host)


Topology = Annotated[ClosSpecification | DumbbellSpecification | GraphSpecification, Field(discriminator="kind")]
"""The ``topology:`` mapping of a scenario: one of the kinds, told apart by ``kind``."""


def _names(prefix: str, count: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{number}" for number in range(count))
