"""Topologies that a few numbers describe: the star, the dumbbell and the two-layer Clos, and what such kinds share."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Literal, Self

from pydantic import model_validator

from topologies.addressing import MAX_HOSTS, MAX_PORTS_PER_SWITCH
from topologies.fabric import Cable, Fabric
from topologies.faults import Fault
from topologies.keys import Count, Gbps, NicCount, Specification, refusal


def names(prefix: str, count: int) -> tuple[str, ...]:
    """Names in order: prefix and number, from 0."""
    return tuple(f"{prefix}{number}" for number in range(count))


class RegularSpecification(Specification):
    """Keys of hosts that are all alike.

    A host has ``nics_per_host`` NICs, each with a cable of its own and an equal share of ``host_link_gbps``. Refused
    are keys that together make more hosts or ports than have addresses (``topologies.addressing``).
    """

    nics_per_host: NicCount = 1
    host_link_gbps: Gbps

    @abstractmethod
    def num_hosts(self) -> tuple[int, str]:
        """How many hosts there are, and the keys that make it so."""

    @abstractmethod
    def num_ports(self) -> Mapping[str, int]:
        """Ports of a switch by its place in the fabric, named together with the keys that make it so."""

    def faults(self) -> list[Fault]:
        """What is wrong with the keys together."""
        faults = [
            Fault((), f"expected at most {MAX_PORTS_PER_SWITCH} ports on a switch, {place} has {ports:,}")
            for place, ports in self.num_ports().items()
            if ports > MAX_PORTS_PER_SWITCH
        ]
        num_hosts, keys = self.num_hosts()
        if num_hosts > MAX_HOSTS:
            faults.append(Fault((), f"expected at most {MAX_HOSTS:,} hosts, {keys} makes {num_hosts:,}"))
        return faults

    @model_validator(mode="after")
    def _keys_go_together(self) -> Self:
        if faults := self.faults():
            raise refusal(self, faults)
        return self

    def host_cables(self, host: str, switches: Sequence[str]) -> list[Cable]:
        """Cables of a host's NICs, which take turns among the switches."""
        share_gbps = self.host_link_gbps / self.nics_per_host
        return [self.cable(host, switches[nic % len(switches)], share_gbps) for nic in range(self.nics_per_host)]

    def cable(self, first: str, second: str, gbps: float) -> Cable:
        return Cable((first, second), gbps * 1e9, self.delay_us * 1e-6)


class StarSpecification(RegularSpecification):
    """All ``hosts`` (a number) on one switch."""

    kind: Literal["star"]
    hosts: Count

    def num_hosts(self) -> tuple[int, str]:
        return self.hosts, "hosts"

    def num_ports(self) -> Mapping[str, int]:
        return {"t0 (hosts x nics_per_host)": self.hosts * self.nics_per_host}

    def build(self) -> Fabric:
        """Hosts h0…, switch t0."""
        hosts = names("h", self.hosts)
        cables = tuple(cable for host in hosts for cable in self.host_cables(host, ["t0"]))
        return Fabric(hosts, ("t0",), cables, self.gpus_per_host, self.host_pcie)


class DumbbellSpecification(RegularSpecification):
    """Two switches t0 and t1 joined by one or more cables; the first half of the hosts on t0, the rest on t1."""

    kind: Literal["dumbbell"]
    hosts_per_side: Count
    bottleneck_gbps: Gbps
    bottleneck_links: Count = 1

    def num_hosts(self) -> tuple[int, str]:
        return 2 * self.hosts_per_side, "2 x hosts_per_side"

    def num_ports(self) -> Mapping[str, int]:
        ports = self.hosts_per_side * self.nics_per_host + self.bottleneck_links
        return {"either switch (hosts_per_side x nics_per_host + bottleneck_links)": ports}

    def build(self) -> Fabric:
        """Hosts h0…, switches t0 and t1."""
        hosts = names("h", 2 * self.hosts_per_side)
        cables = [
            cable
            for number, host in enumerate(hosts)
            for cable in self.host_cables(host, [f"t{number // self.hosts_per_side}"])
        ]
        cables += [self.cable("t0", "t1", self.bottleneck_gbps)] * self.bottleneck_links
        return Fabric(hosts, ("t0", "t1"), tuple(cables), self.gpus_per_host, self.host_pcie)


class ClosSpecification(RegularSpecification):
    """Two layers: every ToR has ``uplinks_per_pair`` cables to every aggregation switch; hosts hang off one ToR.

    The shape of Crux's testbed (section 6.2): 6 ToRs, 8 aggregation switches, 2 hosts per ToR, 8 NICs per host and 2
    uplinks per pair, and of its larger simulation (section 6.1): 173 ToRs and 16 aggregation switches.
    """

    kind: Literal["clos"]
    tors: Count
    aggs: Count
    hosts_per_tor: Count
    uplink_gbps: Gbps
    uplinks_per_pair: Count = 1

    def num_hosts(self) -> tuple[int, str]:
        return self.tors * self.hosts_per_tor, "tors x hosts_per_tor"

    def num_ports(self) -> Mapping[str, int]:
        down, up = self.hosts_per_tor * self.nics_per_host, self.aggs * self.uplinks_per_pair
        return {
            "a ToR (hosts_per_tor x nics_per_host + aggs x uplinks_per_pair)": down + up,
            "an aggregation switch (tors x uplinks_per_pair)": self.tors * self.uplinks_per_pair,
        }

    def build(self) -> Fabric:
        """Hosts h0…, ToRs t0…, aggregation switches a0…; hosts fill the ToRs in order."""
        hosts = names("h", self.tors * self.hosts_per_tor)
        tors, aggs = names("t", self.tors), names("a", self.aggs)
        cables = [
            cable
            for number, host in enumerate(hosts)
            for cable in self.host_cables(host, [tors[number // self.hosts_per_tor]])
        ]
        cables += [
            self.cable(tor, agg, self.uplink_gbps) for tor in tors for agg in aggs for _ in range(self.uplinks_per_pair)
        ]
        return Fabric(hosts, tors + aggs, tuple(cables), self.gpus_per_host, self.host_pcie)
