"""The probe agents of a run's hosts, whose probes cross the emulator as packets."""

from collections import Counter
from collections.abc import Iterable
from ipaddress import IPv4Address

from emulator.fabric import PS_PER_S, EmulatedFabric
from emulator.observations import Capture
from experiments.scenarios.live_session import LiveSession
from hostlib.telemetry.probe_agent import ProbeAgent, ProbeExchange
from hostlib.telemetry.prober import Pace
from hostlib.telemetry.probes import ETHERNET_BYTES, probe_packet
from topologies.fabric import Fabric

_ETHERNET = bytes(ETHERNET_BYTES - 2) + b"\x08\x00"
"""Switches ignore the Ethernet addresses that hosts write."""

_ROUND_S = 0.002
"""Probes that are due within this time are sent together."""


class Probing:
    """Sends and receives the probes of agents, one for each host.

    A probe enters at the first switch. The queue of its host's NIC is not part of the fabric, and does not delay it.
    """

    def __init__(self, emulated: EmulatedFabric, agents: Iterable[ProbeAgent]) -> None:
        self.agents = {agent.host: agent for agent in agents}
        self._deaths: Counter[str] = Counter()
        self._emulated = emulated
        self._link_of = {IPv4Address(nic.address): nic.link for nic in emulated.fabric.nic_by_address.values()}

    @property
    def next_round_s(self) -> float:
        """When agents next send and receive probes."""
        now_s = self._emulated.now_ps / PS_PER_S
        return max(now_s + _ROUND_S, min((agent.next_s for agent in self.agents.values()), default=now_s))

    def remove_agent(self, host: str) -> None:
        """Remove the agent of a host that goes down."""
        del self.agents[host]
        self._deaths[host] += 1

    def add_agent(self, host: str) -> None:
        """Add an agent with an empty memory to a host that comes up."""
        self.agents[host] = agent_of(self._emulated.fabric, host, session=1 + self._deaths[host])

    def exchanges(self) -> list[tuple[ProbeAgent, ProbeExchange]]:
        """Return the agents that are due to report to the controller, with their reports."""
        now_s = self._emulated.now_ps / PS_PER_S
        reports = ((agent, agent.exchange(now_s)) for agent in self.agents.values())
        return [(agent, exchange) for agent, exchange in reports if exchange is not None]

    def send(self) -> None:
        """Send the probes that are due."""
        now_s = self._emulated.now_ps / PS_PER_S
        for agent in self.agents.values():
            for probe in agent.probes(now_s):
                link = self._link_of[probe.five_tuple.source_address]
                self._emulated.inject(link, _ETHERNET + probe_packet(probe))

    def receive(self) -> None:
        """Hand agents the packets that have reached their hosts since the last call."""
        for capture in self._emulated.captured():
            self.take(capture)

    def take(self, capture: Capture) -> None:
        """Hand a packet to the agent of the host that it has reached, if there is one."""
        agent = self.agents.get(self._emulated.fabric.links[capture.link].destination)
        if agent is not None:
            agent.receive(capture.octets[ETHERNET_BYTES:], capture.time_ps / PS_PER_S)


class HostProbes:
    """Reports the probes of a run's hosts to the controller of a live session."""

    def __init__(self, probing: Probing, session: LiveSession) -> None:
        self._probing = probing
        self._session = session

    @property
    def next_round_s(self) -> float:
        """When agents next send and receive probes."""
        return self._probing.next_round_s

    async def exchange(self, now_s: float) -> bool:
        """Report the probes that have arrived; return whether there were any, and a controller."""
        self._probing.receive()
        exchanges = self._probing.exchanges()
        if not (exchanges and self._session.is_open):
            return False
        await self._session.move_clocks(now_s)
        for agent, exchange in exchanges:
            agent.answered(await self._session.exchange_probes(exchange), now_s)
        return True

    def send(self) -> None:
        """Send the probes that are due."""
        self._probing.send()

    def set_host(self, host: str, *, up: bool) -> None:
        """Take a host down with its agent, or bring it up with an agent that has an empty memory."""
        (self._probing.add_agent if up else self._probing.remove_agent)(host)


def agents_of(fabric: Fabric, pace: Pace | None = None, session: int = 1, level: int = 0) -> list[ProbeAgent]:
    """Return an agent for every host of a fabric."""
    return [agent_of(fabric, host, session, pace, level) for host in fabric.hosts]


def agent_of(fabric: Fabric, host: str, session: int, pace: Pace | None = None, level: int = 0) -> ProbeAgent:
    """Return an agent for one host of a fabric."""
    rates_bps = {IPv4Address(nic.address): fabric.links[nic.link].rate_bps for nic in fabric.nics[host]}
    return ProbeAgent(host, rates_bps, session, pace, level)
