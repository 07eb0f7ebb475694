"""Emulated fabrics whose hosts probe and report to a controller's telemetry, all in virtual time and one process."""

from collections.abc import Iterable

import numpy as np

from controller.telemetry.telemetry import PairView, Telemetry
from emulator.entries import ActionCall
from emulator.fabric import PS_PER_S, EmulatedFabric
from experiments.scenarios.probing import Probing, agents_of
from hostlib.telemetry.messages import answer_from_wire, exchange_to_wire
from hostlib.telemetry.prober import Pace
from hostlib.wire import trainyard_pb2 as wire
from tests.controller.telemetry.reports import exchange
from tests.emulator.fabrics import emulated, routing_of
from tests.p4src.packets import Ipv4
from topologies.addressing import FLOW_DESTINATION_PORT, UDP_PROTOCOL, FiveTuple
from topologies.fabric import Fabric, Nic, Path

TICK_S = 0.002
TOKEN = "token"


class ProbedFabric:
    """A fabric with its hosts' agents, the controller's telemetry, and a clock for all of them."""

    def __init__(self, fabric: Fabric, *, pace: Pace | None = None, level: int = 0, stale_after_s: float = 5.0) -> None:
        self.fabric = fabric
        self.routing = routing_of(fabric)
        self.emulated = emulated(fabric)
        for number, (name, switch) in enumerate(self.emulated.switches.items()):
            switch.set_default("egress.node_id", ActionCall("egress.set_node_id", (number + 1,)))
            for group, ports in switch.groups("ingress.ecmp").items():
                switch.modify_group("ingress.ecmp", group, ports, {port: port for port in ports})
            assert name == fabric.switches[number]
        self.telemetry = Telemetry(self.routing, lease_s=30.0, stale_after_s=stale_after_s)
        self.probing = Probing(self.emulated, agents_of(fabric, pace, level=level))
        self.control_bytes = 0
        self._ticks = 0

    @property
    def now_s(self) -> float:
        return self.emulated.now_ps / PS_PER_S

    def watch(self, pairs: Iterable[tuple[Nic, Nic]]) -> None:
        """Have one flow between each of these pairs."""
        self.telemetry.set_probe_targets([flow_between(source, destination) for source, destination in pairs])

    def run(self, until_s: float) -> None:
        """Let time pass; agents do what is due every 2 ms."""
        while self.now_s < until_s:
            self._ticks = max(self._ticks, int(self.now_s / TICK_S)) + 1
            advance(self.emulated, round(self._ticks * TICK_S * PS_PER_S))
            self.probing.receive()
            now_s = self.now_s
            for agent in self.probing.agents.values():
                told = agent.exchange(now_s)
                if told is not None:
                    request = exchange_to_wire(told, TOKEN).SerializeToString()
                    answer = self.exchange(request)
                    self.control_bytes += len(request) + answer.ByteSize()
                    agent.answered(answer_from_wire(answer), now_s)
            self.probing.send()
        # So that nothing is under way.
        advance(self.emulated, self.emulated.now_ps + PS_PER_S // 10_000)
        self.probing.receive()

    def exchange(self, request: bytes) -> wire.ExchangeProbesResponse:
        """One exchange at the controller."""
        message = wire.ExchangeProbesRequest.FromString(request)
        self.telemetry.reporters.authorise(message.host, message.owner_token, self.now_s)
        return exchange(self.telemetry, message, self.now_s)

    def pairs(self) -> tuple[PairView, ...]:
        return self.telemetry.pairs(self.now_s)

    def run_until_complete(self, at_most_s: float) -> float:
        """Let time pass until all candidate paths of all pairs are known; returns when that was."""
        while not all(pair.is_complete for pair in self.pairs()):
            assert self.now_s < at_most_s, f"not complete after {at_most_s} s"
            self.run(self.now_s + 0.01)
        return self.now_s

    def true_path(self, flow: FiveTuple) -> Path | None:
        """The links that a data packet of a flow crosses now, by the emulator's own counters; None where it is lost.

        Nothing else may be under way.
        """
        before = self.emulated.sent_bytes().sum(axis=1)
        source = self.fabric.nic_by_address[flow.source_address]
        packet = Ipv4(
            source=flow.source_address,
            destination=flow.destination_address,
            source_port=flow.source_port,
            destination_port=flow.destination_port,
        )
        self.emulated.inject(source.link, packet.octets())
        self.emulated.run(self.emulated.now_ps + PS_PER_S // 10_000)
        if not self.emulated.captured():
            return None
        crossed = {int(link) for link in np.flatnonzero(self.emulated.sent_bytes().sum(axis=1) - before)}
        path = [source.link]
        while crossed:
            node = self.fabric.links[path[-1]].destination
            [link] = [link for link in crossed if self.fabric.links[link].source == node]
            crossed.remove(link)
            path.append(link)
        return tuple(path)


def advance(result: EmulatedFabric, until_ps: int) -> None:
    """Let time pass up to a moment, whatever completes."""
    while result.now_ps < until_ps:
        result.run(until_ps)


def flow_between(source: Nic, destination: Nic, source_port: int = 49152) -> FiveTuple:
    return FiveTuple(source.address, destination.address, UDP_PROTOCOL, source_port, FLOW_DESTINATION_PORT)
