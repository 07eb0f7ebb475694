"""A fabric: hosts, switches and cables, as every other part of Trainyard sees them.

Links are numbered by direction: cable ``i`` is link ``2 i`` from its first end to its second and ``2 i + 1`` back, so
that a path is a tuple of link numbers and loads are arrays indexed by them.
"""

import math
from dataclasses import dataclass
from functools import cached_property

from topologies.addressing import nic_address, nic_mac
from topologies.faults import Fault, find_faults

Path = tuple[int, ...]
"""Link numbers from a source NIC to a destination NIC, in order."""


@dataclass(frozen=True, slots=True)
class Cable:
    """A full-duplex cable between two nodes: rate per direction and one-way delay."""

    ends: tuple[str, str]
    rate_bps: float
    delay_s: float


@dataclass(frozen=True, slots=True)
class Link:
    """One direction of a cable, from an egress port to an ingress port."""

    index: int
    source: str
    source_port: int
    destination: str
    destination_port: int
    rate_bps: float
    delay_s: float


@dataclass(frozen=True, slots=True)
class Nic:
    """One network interface of a host; it sends on ``link`` and nowhere else."""

    host: str
    index: int
    address: int
    mac: int
    link: int


@dataclass(frozen=True)
class Fabric:
    """Nodes by name in a fixed order, and the cables between them.

    Switch ports count from 1 in the order of the cables; a host's ports are its NICs, from 0.
    Every host has a cable and all switches reach each other. Raises ValueError with everything for which the graph is
    not a fabric (``topologies.faults``), and for rates that are not positive and delays that are negative.
    """

    hosts: tuple[str, ...]
    switches: tuple[str, ...]
    cables: tuple[Cable, ...]
    gpus_per_host: int

    def __post_init__(self) -> None:
        faults = find_faults(self.hosts, self.switches, [cable.ends for cable in self.cables])
        for number, cable in enumerate(self.cables):
            if not 0 < cable.rate_bps < math.inf:
                faults.append(Fault(("links", number, "rate_bps"), "expected a finite rate above 0", cable.rate_bps))
            if not 0 <= cable.delay_s < math.inf:
                faults.append(Fault(("links", number, "delay_s"), "expected a finite delay from 0", cable.delay_s))
        if faults:
            raise ValueError("; ".join(map(str, faults)))

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Both directions of every cable, by link number."""
        next_port = dict.fromkeys(self.hosts, 0) | dict.fromkeys(self.switches, 1)
        links = []
        for number, cable in enumerate(self.cables):
            first, second = cable.ends
            first_port, next_port[first] = next_port[first], next_port[first] + 1
            second_port, next_port[second] = next_port[second], next_port[second] + 1
            links += [
                Link(2 * number, first, first_port, second, second_port, cable.rate_bps, cable.delay_s),
                Link(2 * number + 1, second, second_port, first, first_port, cable.rate_bps, cable.delay_s),
            ]
        return tuple(links)

    @cached_property
    def links_from(self) -> dict[str, tuple[Link, ...]]:
        """Links out of every node, in port order."""
        leaving: dict[str, list[Link]] = {node: [] for node in (*self.hosts, *self.switches)}
        for link in self.links:
            leaving[link.source].append(link)
        return {node: tuple(sorted(links, key=lambda link: link.source_port)) for node, links in leaving.items()}

    @cached_property
    def host_index(self) -> dict[str, int]:
        return {host: index for index, host in enumerate(self.hosts)}

    @cached_property
    def switch_index(self) -> dict[str, int]:
        return {switch: index for index, switch in enumerate(self.switches)}

    @cached_property
    def nics(self) -> dict[str, tuple[Nic, ...]]:
        """NICs of every host, in order; one per cable that ends at the host."""
        return {
            host: tuple(
                Nic(host, port, nic_address(number, port), nic_mac(number, port), link.index)
                for port, link in enumerate(self.links_from[host])
            )
            for number, host in enumerate(self.hosts)
        }

    @cached_property
    def nic_by_address(self) -> dict[int, Nic]:
        return {nic.address: nic for nics in self.nics.values() for nic in nics}

    def reverse(self, link: int) -> int:
        """Number of the link in the other direction of the same cable."""
        return link ^ 1

    def nodes_of(self, path: Path) -> tuple[str, ...]:
        """Node names along a path, both ends included."""
        return (self.links[path[0]].source, *(self.links[link].destination for link in path))

    def parallel_index(self, link: int) -> int:
        """Position of a link among the parallel links of its two nodes, in port order."""
        wanted = self.links[link]
        peers = [other.index for other in self.links_from[wanted.source] if other.destination == wanted.destination]
        return peers.index(link)
