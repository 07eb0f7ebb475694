"""Clos and its simplest relatives: two layers of switches (Clos), two switches (dumbbell), one switch (star)."""

from collections.abc import Mapping
from typing import Literal

from topologies.base_specification import Count, Gbps, RegularSpecification, numbered_names
from topologies.fabric import Fabric


class StarSpecification(RegularSpecification):
    """All ``hosts`` (a number) on one switch."""

    kind: Literal["star"]
    hosts: Count

    def num_hosts(self) -> tuple[int, str]:
        """See ``RegularSpecification.num_hosts``."""
        return self.hosts, "hosts"

    def num_ports(self) -> Mapping[str, int]:
        """See ``RegularSpecification.num_ports``."""
        return {"t0 (hosts x nics_per_host)": self.hosts * self.nics_per_host}

    def build(self) -> Fabric:
        """Build hosts h0… and switch t0."""
        hosts = numbered_names("h", self.hosts)
        cables = tuple(cable for host in hosts for cable in self.host_cables(host, ["t0"]))
        return Fabric(hosts, ("t0",), cables, self.gpus_per_host, self.host_pcie)


class DumbbellSpecification(RegularSpecification):
    """Two switches t0 and t1 with one or more cables; the first half of the hosts on t0, the rest on t1."""

    kind: Literal["dumbbell"]
    hosts_per_side: Count
    bottleneck_gbps: Gbps
    bottleneck_links: Count = 1

    def num_hosts(self) -> tuple[int, str]:
        """See ``RegularSpecification.num_hosts``."""
        return 2 * self.hosts_per_side, "2 x hosts_per_side"

    def num_ports(self) -> Mapping[str, int]:
        """See ``RegularSpecification.num_ports``."""
        ports = self.hosts_per_side * self.nics_per_host + self.bottleneck_links
        return {"either switch (hosts_per_side x nics_per_host + bottleneck_links)": ports}

    def build(self) -> Fabric:
        """Build hosts h0… and switches t0 and t1."""
        hosts = numbered_names("h", 2 * self.hosts_per_side)
        cables = [
            cable
            for number, host in enumerate(hosts)
            for cable in self.host_cables(host, [f"t{number // self.hosts_per_side}"])
        ]
        cables += [self.cable("t0", "t1", self.bottleneck_gbps)] * self.bottleneck_links
        return Fabric(hosts, ("t0", "t1"), tuple(cables), self.gpus_per_host, self.host_pcie)


class ClosSpecification(RegularSpecification):
    """Two layers: every ToR has ``uplinks_per_pair`` cables to every aggregation switch; a host has one ToR.

    This is the shape of Crux's testbed (section 6.2): 6 ToRs, 8 aggregation switches, 2 hosts per ToR, 8 NICs per host
    and 2 uplinks per pair. It is also that of its larger simulation (section 6.1): 173 ToRs and 16 aggregation
    switches.
    """

    kind: Literal["clos"]
    tors: Count
    aggs: Count
    hosts_per_tor: Count
    uplink_gbps: Gbps
    uplinks_per_pair: Count = 1

    def num_hosts(self) -> tuple[int, str]:
        """See ``RegularSpecification.num_hosts``."""
        return self.tors * self.hosts_per_tor, "tors x hosts_per_tor"

    def num_ports(self) -> Mapping[str, int]:
        """See ``RegularSpecification.num_ports``."""
        down, up = self.hosts_per_tor * self.nics_per_host, self.aggs * self.uplinks_per_pair
        return {
            "a ToR (hosts_per_tor x nics_per_host + aggs x uplinks_per_pair)": down + up,
            "an aggregation switch (tors x uplinks_per_pair)": self.tors * self.uplinks_per_pair,
        }

    def build(self) -> Fabric:
        """Build hosts h0…, ToRs t0… and aggregation switches a0…; hosts fill the ToRs in order."""
        hosts = numbered_names("h", self.tors * self.hosts_per_tor)
        tors, aggs = numbered_names("t", self.tors), numbered_names("a", self.aggs)
        cables = [
            cable
            for number, host in enumerate(hosts)
            for cable in self.host_cables(host, [tors[number // self.hosts_per_tor]])
        ]
        cables += [
            self.cable(tor, agg, self.uplink_gbps) for tor in tors for agg in aggs for _ in range(self.uplinks_per_pair)
        ]
        return Fabric(hosts, tors + aggs, tuple(cables), self.gpus_per_host, self.host_pcie)
