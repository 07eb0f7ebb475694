"""The fabric: hosts, switches and cables.

Links are directed: cable ``i`` is link ``2 i`` from its first end to its second, and link ``2 i + 1`` back. A path is a
tuple of link numbers, and loads are arrays indexed by them.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from topologies.addressing import Address, Interface, MacAddress, Prefix, regular_interface
from topologies.graph_checks import graph_problems
from topologies.problems import Problem
from topologies.targets import Target

Path = tuple[int, ...]
"""Link numbers from a source NIC to a destination NIC, in order."""


@dataclass(frozen=True, slots=True)
class Cable:
    """A full-duplex cable between two nodes, with its rate per direction and its one-way delay.

    ``ports`` are the port numbers at both ends, at a host the index of its NIC. None: the next ones in the order of the
    cables.
    """

    ends: tuple[str, str]
    rate_bps: float
    delay_s: float
    ports: tuple[int, int] | None = None


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
    """A network interface of a host; it sends on ``link`` only. Where its MAC is None, ARP tells it."""

    host: str
    index: int
    address: Address
    mac: MacAddress | None
    link: int
    name: str
    subnet: Prefix


@dataclass(frozen=True, slots=True)
class Pcie:
    """The PCIe switches of all hosts. Each connects ``nics_per_switch`` NICs, in order, and the GPUs beside them.

    ``rate_bps`` is the rate of the one link between these NICs and GPUs, per direction.
    """

    nics_per_switch: int
    rate_bps: float


@dataclass(frozen=True, slots=True)
class HostLink:
    """One direction of a PCIe link inside a host, where the host keeps order; numbered after the fabric's links."""

    index: int
    host: str
    switch: int
    is_outgoing: bool
    rate_bps: float

    @property
    def source(self) -> str:
        """Name of the sending end."""
        return f"{self.host}'s GPUs" if self.is_outgoing else f"{self.host}'s PCIe switch {self.switch}"

    @property
    def destination(self) -> str:
        """Name of the receiving end."""
        return f"{self.host}'s PCIe switch {self.switch}" if self.is_outgoing else f"{self.host}'s GPUs"


class Control(StrEnum):
    """What the controller can do with a switch."""

    OURS = "ours"
    """It runs our pipeline, so flows can be steered there."""
    DSCP_ONLY = "dscp_only"
    """It serves queues by DSCP, and hashes; nobody can steer a flow there."""


@dataclass(frozen=True, slots=True)
class SwitchIdentity:
    """The numbers by which others know a switch: of its P4Runtime device, and of its node in INT.

    ``port_names`` has what the switch calls its ports, by number, where it has names for them. ``mac`` is that of its
    router; None: its ports have MACs of a regular fabric. ``target`` is what our pipeline runs on, where it is ours.
    """

    device_id: int
    node_id: int
    port_names: tuple[tuple[int, str], ...] = ()
    control: Control = Control.OURS
    mac: MacAddress | None = None
    target: Target = Target.BMV2


@dataclass(frozen=True)
class Fabric:
    """Nodes by name in a fixed order, and the cables between them.

    Switch ports count from 1 in the order of the cables, unless cables say their ports. A host's ports are its NICs,
    from 0. ``interfaces`` has the NICs of each host in order, and ``identities`` the numbers of each switch. None means
    those of a regular fabric (``topologies.addressing``), and positions of switches from 1. Every host has a cable, and
    all switches reach each other. Raises ValueError with all problems of the graph (``topologies.graph_checks``), of
    rates that are not positive, and of delays that are negative.
    """

    hosts: tuple[str, ...]
    switches: tuple[str, ...]
    cables: tuple[Cable, ...]
    gpus_per_host: int
    pcie: Pcie | None = None
    interfaces: tuple[tuple[Interface, ...], ...] | None = None
    identities: tuple[SwitchIdentity, ...] | None = None

    def __post_init__(self) -> None:
        problems = graph_problems(self.hosts, self.switches, [cable.ends for cable in self.cables])
        for number, cable in enumerate(self.cables):
            if not 0 < cable.rate_bps < math.inf:
                problems.append(
                    Problem(("links", number, "rate_bps"), "expected a finite rate above 0", cable.rate_bps)
                )
            if not 0 <= cable.delay_s < math.inf:
                problems.append(Problem(("links", number, "delay_s"), "expected a finite delay from 0", cable.delay_s))
        if problems:
            raise ValueError("; ".join(map(str, problems)))
        if self.pcie is not None and not (self.pcie.nics_per_switch > 0 and 0 < self.pcie.rate_bps < math.inf):
            raise ValueError(f"expected a PCIe switch with NICs and a finite rate above 0, got {self.pcie}")

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Both directions of every cable, by link number."""
        next_port = dict.fromkeys(self.hosts, 0) | dict.fromkeys(self.switches, 1)
        links = []
        for number, cable in enumerate(self.cables):
            first, second = cable.ends
            if cable.ports is None:
                first_port, next_port[first] = next_port[first], next_port[first] + 1
                second_port, next_port[second] = next_port[second], next_port[second] + 1
            else:
                first_port, second_port = cable.ports
            links += [
                Link(2 * number, first, first_port, second, second_port, cable.rate_bps, cable.delay_s),
                Link(2 * number + 1, second, second_port, first, first_port, cable.rate_bps, cable.delay_s),
            ]
        return tuple(links)

    @cached_property
    def slowest_bps(self) -> float:
        """Rate of the slowest link, links inside hosts included."""
        return min([cable.rate_bps for cable in self.cables] + ([self.pcie.rate_bps] if self.pcie else []))

    @cached_property
    def links_from(self) -> dict[str, tuple[Link, ...]]:
        """Links out of every node: of hosts in the order of their NICs, of switches in that of the cables.

        So no choice depends on how somebody has numbered ports.
        """
        leaving: dict[str, list[Link]] = {node: [] for node in (*self.hosts, *self.switches)}
        for link in self.links:
            leaving[link.source].append(link)
        for host in self.hosts:
            leaving[host].sort(key=lambda link: link.source_port)
        return {node: tuple(links) for node, links in leaving.items()}

    @cached_property
    def host_index(self) -> dict[str, int]:
        """Position of every host."""
        return {host: index for index, host in enumerate(self.hosts)}

    @cached_property
    def switch_index(self) -> dict[str, int]:
        """Position of every switch."""
        return {switch: index for index, switch in enumerate(self.switches)}

    @cached_property
    def identity(self) -> dict[str, SwitchIdentity]:
        """The numbers of every switch."""
        given = self.identities or tuple(SwitchIdentity(number, number) for number in range(1, len(self.switches) + 1))
        return dict(zip(self.switches, given, strict=True))

    @cached_property
    def ordinary_switches(self) -> frozenset[str]:
        """The switches that serve queues by DSCP and hash as they like: nobody can steer a flow there."""
        return frozenset(name for name, each in self.identity.items() if each.control is Control.DSCP_ONLY)

    @cached_property
    def device_ids(self) -> dict[str, int]:
        """The P4Runtime device of every switch where one server has them all: positions from 1 if ids of switches meet.

        Switches with servers of their own mostly are device 1 there.
        """
        own = {name: identity.device_id for name, identity in self.identity.items()}
        return own if len(set(own.values())) == len(own) else {name: 1 + at for name, at in self.switch_index.items()}

    @cached_property
    def nics(self) -> dict[str, tuple[Nic, ...]]:
        """NICs of every host in order, one per cable at the host."""
        found = {}
        for number, host in enumerate(self.hosts):
            links = self.links_from[host]
            interfaces = (
                [regular_interface(number, port) for port in range(len(links))]
                if self.interfaces is None
                else self.interfaces[number]
            )
            found[host] = tuple(
                Nic(host, link.source_port, each.address, each.mac, link.index, each.name, each.subnet)
                for link, each in zip(links, interfaces, strict=True)
            )
        return found

    @cached_property
    def port_names(self) -> dict[str, dict[int, str]]:
        """What every node calls its ports, by number: a host all its NICs, a switch those that it has names for."""
        of_hosts = {host: {nic.index: nic.name for nic in nics} for host, nics in self.nics.items()}
        return of_hosts | {switch: dict(identity.port_names) for switch, identity in self.identity.items()}

    @cached_property
    def host_prefixes(self) -> dict[str, tuple[Prefix, ...]]:
        """Prefixes that together hold all addresses of a host, and none of another: its own subnets, or single NICs."""
        owners: dict[Prefix, set[str]] = {}
        for nic in self.nic_by_address.values():
            owners.setdefault(nic.subnet, set()).add(nic.host)
        return {
            host: tuple(
                dict.fromkeys(
                    nic.subnet if len(owners[nic.subnet]) == 1 else Prefix.around(nic.address, 32) for nic in nics
                )
            )
            for host, nics in self.nics.items()
        }

    @cached_property
    def host_by_prefix(self) -> dict[tuple[int, int], str]:
        """Hosts by address and mask of their prefixes."""
        return {(each.address, each.mask): host for host, prefixes in self.host_prefixes.items() for each in prefixes}

    @cached_property
    def nic_by_address(self) -> dict[int, Nic]:
        """NICs by address, which may also be given as an integer."""
        return {nic.address: nic for nics in self.nics.values() for nic in nics}

    @cached_property
    def host_links(self) -> tuple[HostLink, ...]:
        """PCIe links inside hosts, out and in for every PCIe switch; none without ``pcie``."""
        if self.pcie is None:
            return ()
        switches = [
            (host, number)
            for host, nics in self.nics.items()
            for number in range(math.ceil(len(nics) / self.pcie.nics_per_switch))
        ]
        first = len(self.links)
        return tuple(
            HostLink(first + 2 * number + direction, host, switch, direction == 0, self.pcie.rate_bps)
            for number, (host, switch) in enumerate(switches)
            for direction in (0, 1)
        )

    @cached_property
    def _host_links_by_switch(self) -> dict[tuple[str, int], tuple[int, int]]:
        outgoing = self.host_links[::2]
        return {(link.host, link.switch): (link.index, link.index + 1) for link in outgoing}

    def host_links_between(self, source: Nic, destination: Nic) -> tuple[int, ...]:
        """Return the host links that a flow between two NICs uses, on any path."""
        if self.pcie is None:
            return ()
        outgoing, _ = self._host_links_by_switch[source.host, source.index // self.pcie.nics_per_switch]
        _, incoming = self._host_links_by_switch[destination.host, destination.index // self.pcie.nics_per_switch]
        return outgoing, incoming

    def link(self, index: int) -> Link | HostLink:
        """Return the link of a number, inside a host or not."""
        first = len(self.links)
        return self.links[index] if index < first else self.host_links[index - first]

    @cached_property
    def rates_bps(self) -> tuple[float, ...]:
        """Rate of every link by number, host links last."""
        return (*(link.rate_bps for link in self.links), *(link.rate_bps for link in self.host_links))

    def links_between(self, source: str, destination: str) -> tuple[int, ...]:
        """Return the parallel links from one node to another, in order; none if there is no cable."""
        return tuple(link.index for link in self.links_from[source] if link.destination == destination)

    def reverse(self, link: int) -> int:
        """Return the link in the other direction of the same cable."""
        return link ^ 1

    def nodes_of(self, path: Path) -> tuple[str, ...]:
        """Return the node names along a path, both ends included."""
        return (self.links[path[0]].source, *(self.links[link].destination for link in path))

    def parallel_index(self, link: int) -> int:
        """Return the position of a link among the parallel links of its nodes, in order; 0 inside a host."""
        if link >= len(self.links):
            return 0
        wanted = self.links[link]
        return self.links_between(wanted.source, wanted.destination).index(link)
