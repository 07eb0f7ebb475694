"""Probe agents of hosts: the host library's own, each in a process of its own, on NICs in memory."""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address

from emulator.fabric import EmulatedFabric
from emulator.observations import Capture
from hostlib.connection import Connection
from hostlib.telemetry.host_agent import AgentStatus, HostAgent
from hostlib.telemetry.probe_agent import ProbeAgent
from hostlib.telemetry.prober import Pace
from hostlib.telemetry.probes import ETHERNET_BYTES, Probe, probe_packet
from tests.chaos.processes import Process
from topologies.fabric import Nic

_ETHERNET = bytes(ETHERNET_BYTES - 2) + b"\x08\x00"

_PACE = Pace(steady_share=1e-6, start_share=3e-6, quick_probes=64)
"""A small part of what hosts send: so few paths need no more, and time is for what fails."""


class Nics:
    """The NICs of an emulated fabric that an agent listens at."""

    def __init__(self, emulated: EmulatedFabric) -> None:
        self.emulated = emulated
        self._listening: dict[int, MemoryNic] = {}

    def arrive(self, captures: tuple[Capture, ...]) -> None:
        """Deliver packets to NICs."""
        for capture in captures:
            nic = self._listening.get(self.emulated.fabric.reverse(capture.link))
            if nic is not None:
                nic.arrive(capture.octets[ETHERNET_BYTES:])

    def listen(self, nic: "MemoryNic") -> None:
        """Deliver the packets of a NIC to this one."""
        self._listening[nic.link] = nic

    def stop_listening(self, nic: "MemoryNic") -> None:
        """Stop delivering packets to this one."""
        if self._listening.get(nic.link) is nic:
            del self._listening[nic.link]


class MemoryNic:
    """A NIC for probes, as ``HostAgent`` uses one."""

    def __init__(self, nics: Nics, nic: Nic) -> None:
        self.address = IPv4Address(nic.address)
        self.link = nic.link
        self.sent = 0
        self.received = 0
        self.lost = 0
        self._unsent: Counter[str] = Counter()
        self._nics = nics
        self._arrived: deque[bytes] = deque()
        self._on_arrival: Callable[[], None] | None = None

    @property
    def unsent(self) -> Mapping[str, int]:
        return self._unsent

    def listen(self, on_arrival: Callable[[], None]) -> None:
        self._on_arrival = on_arrival
        self._nics.listen(self)

    def stop_listening(self) -> None:
        self._nics.stop_listening(self)

    def arrive(self, packet: bytes) -> None:
        """Receive a packet."""
        assert self._on_arrival is not None
        self._arrived.append(packet)
        self._on_arrival()

    def send(self, probe: Probe) -> None:
        if self._nics.emulated.is_up(self.link):
            self._nics.emulated.inject(self.link, _ETHERNET + probe_packet(probe))
            self.sent += 1
        else:
            self._unsent["ENETDOWN"] += 1

    def receive(self) -> Iterator[bytes]:
        while self._arrived:
            self.received += 1
            yield self._arrived.popleft()


class Agent:
    """A host's agent in a process of its own, until it is killed; ``session`` exceeds all earlier ones."""

    def __init__(self, host: str, session: int, owner_token: str, addresses: Sequence[str], nics: Nics) -> None:
        self.host = host
        self.process = Process(f"agent {host}")
        self._session = session
        self._owner_token = owner_token
        self._addresses = addresses
        self._nics = nics
        self._agent: HostAgent | None = None
        self.work = self.process.spawn(self._run())

    @property
    def status(self) -> AgentStatus | None:
        """Its status; None before it has started."""
        return None if self._agent is None else self._agent.status()

    async def _run(self) -> None:
        fabric = self._nics.emulated.fabric
        nics = [MemoryNic(self._nics, nic) for nic in fabric.nics[self.host]]
        for nic in nics:
            self.process.at_end(nic.stop_listening)
        rates_bps = {nic.address: fabric.links[nic.link].rate_bps for nic in nics}
        async with Connection(self._addresses, self._owner_token) as connection:
            agent = ProbeAgent(self.host, rates_bps, self._session, _PACE)
            self._agent = HostAgent(agent, nics, connection)
            await self._agent.run()
