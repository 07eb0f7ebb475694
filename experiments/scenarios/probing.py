"""The agents of a run's hosts: their probes cross the emulator like any packet."""

from collections import Counter
from collections.abc import Iterable
from ipaddress import IPv4Address

from emulator.fabric import PS_PER_S, EmulatedFabric
from emulator.observations import Capture
from experiments.scenarios.controller_session import LiveSession
from hostlib.telemetry.probe_agent import ProbeAgent, ProbeExchange
from hostlib.telemetry.prober import Pace
from hostlib.telemetry.probes import ETHERNET_BYTES, probe_packet
from topologies.fabric import Fabric

_ETHERNET = bytes(ETHERNET_BYTES - 2) + b"\x08\x00"
"""Switches do not look at addresses that hosts give."""


_TURN_S = 0.002
"""Probes that are due within so long are sent together."""


class Probing:
    """Carries the probes of agents, each of which has a host of the fabric.

    A probe begins at the first switch: it does not wait at its host's NIC, whose queue is none of the fabric's.
    """

    def __init__(self, emulated: EmulatedFabric, agents: Iterable[ProbeAgent]) -> None:
        self.agents = {agent.host: agent for agent in agents}
        self._deaths: Counter[str] = Counter()
        self._emulated = emulated
        self._link_of = {IPv4Address(nic.address): nic.link for nic in emulated.fabric.nic_by_address.values()}

    @property
    def next_turn_s(self) -> float:
        """When agents are to have their next turn."""
        now_s = self._emulated.now_ps / PS_PER_S
        return max(now_s + _TURN_S, min((agent.next_s for agent in self.agents.values()), default=now_s))

    def lose(self, host: str) -> None:
        """A host's agent dies with it."""
        del self.agents[host]
        self._deaths[host] += 1

    def restore(self, host: str) -> None:
        """A host is back, with an agent that knows nothing."""
        self.agents[host] = agent_of(self._emulated.fabric, host, session=1 + self._deaths[host])

    def exchanges(self) -> list[tuple[ProbeAgent, ProbeExchange]]:
        """The agents for which it is time to speak to the controller, and what they have to say."""
        now_s = self._emulated.now_ps / PS_PER_S
        said = ((agent, agent.exchange(now_s)) for agent in self.agents.values())
        return [(agent, exchange) for agent, exchange in said if exchange is not None]

    def send(self) -> None:
        """Let the agents send what is due."""
        now_s = self._emulated.now_ps / PS_PER_S
        for agent in self.agents.values():
            for probe in agent.probes(now_s):
                link = self._link_of[probe.five_tuple.source_address]
                self._emulated.inject(link, _ETHERNET + probe_packet(probe))

    def receive(self) -> None:
        """Let the agents take in what has reached their hosts since the last call."""
        for capture in self._emulated.captured():
            self.take(capture)

    def take(self, capture: Capture) -> None:
        """Let the agent of a host take in a packet that has reached it, if there is one."""
        agent = self.agents.get(self._emulated.fabric.links[capture.link].destination)
        if agent is not None:
            agent.receive(capture.octets[ETHERNET_BYTES:], capture.time_ps / PS_PER_S)


class HostProbes:
    """The probes of a run's hosts, told to the controller of a live session."""

    def __init__(self, probing: Probing, session: LiveSession) -> None:
        self._probing = probing
        self._session = session

    @property
    def next_turn_s(self) -> float:
        """When agents are to have their next turn."""
        return self._probing.next_turn_s

    async def exchange(self, now_s: float) -> bool:
        """Tell the controller of the probes that have arrived; whether there was anything to tell, and a controller."""
        self._probing.receive()
        exchanges = self._probing.exchanges()
        if not (exchanges and self._session.is_open):
            return False
        await self._session.move_clocks(now_s)
        for agent, exchange in exchanges:
            agent.answered(await self._session.exchange_probes(exchange), now_s)
        return True

    def send(self) -> None:
        """Let the agents send what is due."""
        self._probing.send()

    def set_host(self, host: str, *, up: bool) -> None:
        """A host dies with its agent, or is back with one that knows nothing."""
        (self._probing.restore if up else self._probing.lose)(host)


def agents_of(fabric: Fabric, pace: Pace | None = None, session: int = 1, level: int = 0) -> list[ProbeAgent]:
    """An agent for every host of a fabric."""
    return [agent_of(fabric, host, session, pace, level) for host in fabric.hosts]


def agent_of(fabric: Fabric, host: str, session: int, pace: Pace | None = None, level: int = 0) -> ProbeAgent:
    """An agent for a host of a fabric."""
    rates_bps = {IPv4Address(nic.address): fabric.links[nic.link].rate_bps for nic in fabric.nics[host]}
    return ProbeAgent(host, rates_bps, session, pace, level)
