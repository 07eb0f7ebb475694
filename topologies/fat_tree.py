"""Fat-tree and double-sided topology: three layers, pods of ToRs and aggregation switches under a core.

In a pod every ToR connects to every aggregation switch. The core consists of as many equal planes as a pod has
aggregation switches: the first aggregation switch of every pod connects to every core switch of the first plane, and so
on.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from topologies.base_specification import Count, Gbps, NicCount, RegularSpecification, numbered_names
from topologies.fabric import Cable, Fabric
from topologies.problems import Problem


class DoubleSidedSpecification(RegularSpecification):
    """Hosts with two ToRs: even NICs connect to the first ToR of a pair, odd NICs to the second.

    So a flow's NIC decides its ToR. The shape is that of Crux's larger simulation (section 6.1): 6 ToRs, 12 aggregation
    and 32 core switches, eight links per host. The paper gives neither the cabling between switches nor the number of
    hosts. By default each pair of ToRs forms a pod with 4 aggregation switches, each of which has a plane of 8 core
    switches.

    ToRs are a multiple of twice the ``pods``, aggregation switches of the ``pods``, core switches of the aggregation
    switches in a pod, and a host's NICs of 2. ``hosts_per_pair`` counts hosts per pair of ToRs. There are
    ``uplinks_per_pair`` cables between a ToR and an aggregation switch (``uplink_gbps`` each), and one between an
    aggregation and a core switch (``core_link_gbps``).
    """

    kind: Literal["double_sided"]
    pods: Annotated[Count, Field(ge=2)] = 3
    tors: Count = 6
    aggs: Count = 12
    cores: Count = 32
    hosts_per_pair: Count
    nics_per_host: Annotated[NicCount, Field(multiple_of=2)] = 8
    uplink_gbps: Gbps
    uplinks_per_pair: Count = 1
    core_link_gbps: Gbps

    def problems(self) -> list[Problem]:
        """See ``RegularSpecification.problems``."""
        uneven = []
        if self.tors % (2 * self.pods):
            uneven.append(Problem(("tors",), f"expected a multiple of {2 * self.pods} (2 x pods)", self.tors))
        if self.aggs % self.pods:
            uneven.append(Problem(("aggs",), f"expected a multiple of {self.pods} (pods)", self.aggs))
        elif self.cores % (planes := self.aggs // self.pods):
            uneven.append(Problem(("cores",), f"expected a multiple of {planes} (aggs / pods)", self.cores))
        return uneven or super().problems()

    def num_hosts(self) -> tuple[int, str]:
        """See ``RegularSpecification.num_hosts``."""
        return self.tors // 2 * self.hosts_per_pair, "tors / 2 x hosts_per_pair"

    def num_ports(self) -> Mapping[str, int]:
        """See ``RegularSpecification.num_ports``."""
        tors_per_pod, aggs_per_pod = self.tors // self.pods, self.aggs // self.pods
        down, up = self.hosts_per_pair * self.nics_per_host // 2, aggs_per_pod * self.uplinks_per_pair
        return {
            "a ToR (hosts_per_pair x nics_per_host / 2 + aggs / pods x uplinks_per_pair)": down + up,
            "an aggregation switch (tors / pods x uplinks_per_pair + cores x pods / aggs)": (
                tors_per_pod * self.uplinks_per_pair + self.cores // aggs_per_pod
            ),
            "a core switch (pods)": self.pods,
        }

    def build(self) -> Fabric:
        """Build hosts h0…, ToRs t0…, aggregation switches a0… and core switches c0…, each layer in order."""
        hosts = numbered_names("h", self.tors // 2 * self.hosts_per_pair)
        tors, aggs, cores = (
            numbered_names("t", self.tors),
            numbered_names("a", self.aggs),
            numbered_names("c", self.cores),
        )
        cables = []
        for number, host in enumerate(hosts):
            first_tor = number // self.hosts_per_pair * 2
            cables += self.host_cables(host, tors[first_tor : first_tor + 2])
        cables += [
            self.cable(*ends, self.uplink_gbps)
            for ends in _pairs_within_pods(tors, aggs, self.pods)
            for _ in range(self.uplinks_per_pair)
        ]
        cables += [self.cable(*ends, self.core_link_gbps) for ends in _pairs_within_planes(aggs, cores, self.pods)]
        return Fabric(hosts, tors + aggs + cores, tuple(cables), self.gpus_per_host, self.host_pcie)


class FatTreeSpecification(RegularSpecification):
    """The fat-tree of Al-Fares et al. (SIGCOMM 2008, section 3) of switches with ``k`` ports, an even number.

    It has k pods of k/2 ToRs (edge switches in the paper) and k/2 aggregation switches; k/2 hosts per ToR, k^3/4 in
    all; and (k/2)^2 core switches. All cables between switches have ``uplink_gbps``. A ToR has more than k ports if
    ``nics_per_host`` exceeds 1.
    """

    kind: Literal["fat_tree"]
    # 64 ports make 65,536 hosts.
    k: Annotated[int, Field(strict=True, ge=2, le=64, multiple_of=2)]
    uplink_gbps: Gbps

    def num_hosts(self) -> tuple[int, str]:
        """See ``RegularSpecification.num_hosts``."""
        return self.k**3 // 4, "k^3 / 4"

    def num_ports(self) -> Mapping[str, int]:
        """See ``RegularSpecification.num_ports``."""
        return {"a ToR (k / 2 x nics_per_host + k / 2)": self.k // 2 * (self.nics_per_host + 1)}

    def build(self) -> Fabric:
        """Build hosts h0…, ToRs t0…, aggregation switches a0… and core switches c0…, each layer in order."""
        half = self.k // 2
        hosts, cores = numbered_names("h", self.k * half**2), numbered_names("c", half**2)
        tors, aggs = numbered_names("t", self.k * half), numbered_names("a", self.k * half)
        cables: list[Cable] = []
        for number, host in enumerate(hosts):
            cables += self.host_cables(host, [tors[number // half]])
        pairs = [*_pairs_within_pods(tors, aggs, self.k), *_pairs_within_planes(aggs, cores, self.k)]
        cables += [self.cable(*ends, self.uplink_gbps) for ends in pairs]
        return Fabric(hosts, tors + aggs + cores, tuple(cables), self.gpus_per_host, self.host_pcie)


def _pairs_within_pods(tors: tuple[str, ...], aggs: tuple[str, ...], pods: int) -> list[tuple[str, str]]:
    tors_per_pod, aggs_per_pod = len(tors) // pods, len(aggs) // pods
    return [
        (tor, agg)
        for number, tor in enumerate(tors)
        for agg in aggs[number // tors_per_pod * aggs_per_pod :][:aggs_per_pod]
    ]


def _pairs_within_planes(aggs: tuple[str, ...], cores: tuple[str, ...], pods: int) -> list[tuple[str, str]]:
    planes = len(aggs) // pods
    cores_per_plane = len(cores) // planes
    return [
        (agg, core)
        for number, agg in enumerate(aggs)
        for core in cores[number % planes * cores_per_plane :][:cores_per_plane]
    ]
