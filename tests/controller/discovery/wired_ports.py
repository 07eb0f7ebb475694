"""Ports of switches with wires between them, which a test moves, in a time that a test moves too."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from controller.discovery.differences import DifferenceKind
from controller.discovery.discoverer import Discoverer, Misplacement
from controller.links.link_health import LinkHealth
from controller.links.port_states import Port, PortStateTable
from controller.southbound.southbound import PacketArrival, WakeUp
from topologies.addressing import Address, MacAddress
from topologies.fabric import Fabric, Nic

Host = Callable[[bytes], Iterable[bytes]]
"""What a host answers to a frame."""

STEP_S = 0.25
HEARD_S = 5.0


class WiredPorts:
    """A DiscoveringSouthbound over wires: ``wires`` has the port at the other end, ``hosts`` the hosts at ports."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.now_s = 1000.0
        self.wires: dict[Port, Port] = {
            (link.source, link.source_port): (link.destination, link.destination_port)
            for link in fabric.links
            if {link.source, link.destination} <= fabric.switch_index.keys()
        }
        self.hosts: dict[Port, Host] = {}
        self.down: set[Port] = set()
        self.away: set[str] = set()
        self.odd: dict[int, bool] = {}
        """Further ports that every switch tells of."""
        self.sent: list[tuple[Port, bytes]] = []
        self.macs: Mapping[Address, MacAddress] = {}
        self.misplacement = Misplacement()
        self.health = LinkHealth(fabric, None)
        self.ports = PortStateTable(fabric.switches)
        self._arrived: list[PacketArrival] = []
        self.probed: Mapping[Port, Port] = {}
        """What hosts say of their probes."""
        self.discoverer = Discoverer(
            fabric, self, self.ports, self._apply, lambda: self.now_s, take_probed=lambda: self.probed
        )

    @property
    def packets(self) -> "WiredPorts":
        return self

    @property
    def connected(self) -> Collection[str]:
        return self.fabric.switch_index.keys() - self.away

    @property
    def dropped(self) -> Counter[str]:
        return Counter()

    def listen(self, wake: WakeUp) -> None:
        pass

    def take(self, most: int) -> list[PacketArrival]:
        taken, self._arrived = self._arrived[:most], self._arrived[most:]
        return taken

    def send(self, name: str, packets: Iterable[tuple[int, bytes]]) -> None:
        for number, octets in packets:
            self._carry((name, number), octets)

    def neighbours(self) -> Mapping[Address, MacAddress]:
        return self.macs

    async def set_neighbours(self, macs: Mapping[Address, MacAddress]) -> None:
        self.macs = dict(macs)

    def arrive(self, port: Port, octets: bytes) -> None:
        """Have a frame come in at a port."""
        if port not in self.down and port[0] not in self.away:
            self._arrived.append(PacketArrival(*port, octets))

    def wire(self, first: Port, second: Port) -> None:
        """Connect two ports; what was at them hangs loose."""
        for port in (first, second):
            self.hosts.pop(port, None)
            if (before := self.wires.pop(port, None)) is not None:
                self.wires.pop(before, None)
        self.wires[first], self.wires[second] = second, first

    async def stand_still_s(self, time_s: float) -> None:
        """Let time pass in which the controller does nothing."""
        self.now_s += time_s
        self.discoverer.tick()
        await self.discoverer.applied()

    async def pass_s(self, time_s: float) -> None:
        """Let time pass."""
        end_s = self.now_s + time_s
        while self.now_s < end_s:
            self.now_s += STEP_S
            for switch in self.fabric.switches:
                if switch in self.away:
                    self.ports.remove(switch)
                else:
                    numbers = [link.source_port for link in self.fabric.links_from[switch]]
                    self.ports.set_ports(switch, {each: (switch, each) not in self.down for each in numbers} | self.odd)
            self.health.set_port_states(self.ports.states, self.now_s)
            self.discoverer.tick()
            await self.discoverer.applied()
            while self._arrived:
                self.discoverer.take()

    def dead_cables(self) -> frozenset[int]:
        """Return the cables that routing leaves out."""
        return frozenset(link // 2 for link in self.health.dead_links(self.now_s))

    async def _apply(self, found: Misplacement) -> None:
        self.misplacement = found
        self.health.set_found_cables(found.misplaced, found.unheard, found.confirmed, self.now_s)

    def _carry(self, port: Port, octets: bytes) -> None:
        self.sent.append((port, octets))
        if port in self.down or port[0] in self.away:
            return
        if port in self.wires:
            self.arrive(self.wires[port], octets)
        for answer in self.hosts.get(port, lambda _: ())(octets):
            self.arrive(port, answer)


def port_of(fabric: Fabric, nic: Nic) -> Port:
    link = fabric.links[nic.link]
    return link.destination, link.destination_port


def uplinks(fabric: Fabric) -> list[int]:
    """The first directions of the cables between switches."""
    return [link.index for link in fabric.links[::2] if link.source in fabric.switch_index]


def ends(fabric: Fabric, link: int) -> tuple[Port, Port]:
    found = fabric.links[link]
    return (found.source, found.source_port), (found.destination, found.destination_port)


def exchange(wired: WiredPorts) -> set[int]:
    """Exchange the second ends of the first and the last cable between switches; return these cables."""
    first, *_, last = uplinks(wired.fabric)
    (one, other), (third, fourth) = ends(wired.fabric, first), ends(wired.fabric, last)
    wired.wire(one, fourth)
    wired.wire(third, other)
    return {first // 2, last // 2}


def kinds(wired: WiredPorts) -> set[DifferenceKind]:
    return {each.kind for each in wired.discoverer.differences}
