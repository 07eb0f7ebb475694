"""The network of a run on the emulator, which carries transfers as packets."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from emulator.clock import Clock
from emulator.compiler.program import compile_program
from emulator.congestion import FIXED, CongestionControl
from emulator.congestion.registry import find_control
from emulator.engine.transport import MAX_WINDOW
from emulator.fabric import PS_PER_S, EmulatedFabric
from emulator.host_options import HostOptions
from experiments.scenarios.connections import Connections
from experiments.scenarios.outages import Outages
from experiments.scenarios.results import LoadSample
from experiments.scenarios.transfers import Instances, TransferEnd
from hostlib.types import Directives
from p4src import PROGRAM
from policies.model.tiers import host_queues
from topologies.fabric import Fabric
from topologies.routing import Routing
from workloads.jobs import TrainingJob
from workloads.replay import StartTransfer
from workloads.scenario import CongestionControlChoice

SLOWEST_LINK_BPS = 400e6
"""The rate of the slowest link after rates are divided by the default scale.

Twice the rate moves the utilisation of the testbed's mixes by 0.05 points at most (docs/emulator.md).
"""


class EmulatedNetwork:
    """The emulated fabric that carries a run's flows. Set ``clock`` before the first ``run``."""

    clock: Clock

    def __init__(
        self,
        routing: Routing,
        jobs: Sequence[TrainingJob],
        connections: Connections,
        scale: float,
        congestion: CongestionControlChoice | None = None,
    ) -> None:
        self.fabric = fabric = routing.fabric
        opened = [flow for groups in connections.values() for flows in groups.values() for flow in flows]
        hops = max((len(routing.hashed_path(five_tuple)) for five_tuple in opened), default=0)
        control = FIXED if congestion is None else chosen_control(congestion)
        options = HostOptions(window_packets=_window_packets(fabric, hops, scale), congestion_controls=(control,))
        program = compile_program(PROGRAM.read_text())
        self.emulated = EmulatedFabric(as_emulated(fabric), program, options, rate_scale=scale)
        self.scale = scale
        self._specifications = {(job.name, group.name): group.flows for job in jobs for group in job.graph.flow_groups}
        self._opened: dict[tuple[tuple[str, str], int, int], int] = {}
        self._owner: dict[int, tuple[tuple[str, str], int]] = {}
        self._templates = {key: connections[key[0]][key[1]] for key in self._specifications}
        self._flows = {
            key: [self._connect(key, number, five_tuple.source_port) for number, five_tuple in enumerate(five_tuples)]
            for key, five_tuples in self._templates.items()
        }
        self._instances = Instances(self._specifications)
        self._sampled_ps = 0
        self._sampled_bytes = self.emulated.sent_bytes()

    @property
    def now_ps(self) -> int:
        """Virtual time."""
        return self.emulated.now_ps

    def start(self, job: str, transfers: Sequence[StartTransfer]) -> None:
        """Start sending the flows of transfers now."""
        self._instances.start(job, transfers, self.emulated.now_ps / PS_PER_S)
        for transfer in transfers:
            key = job, transfer.group
            for number in transfer.flows:
                size_bytes = self._specifications[key][number].size_bytes
                self.emulated.start_transfer(self._flows[key][number], max(1, round(size_bytes / self.scale)))

    async def run(self, until_ps: int) -> list[TransferEnd]:
        """Advance time until flows arrive, at most to ``until_ps``; return the transfers that end then."""
        ends = []
        for completion in await self.clock.run(until_ps):
            key, number = self._owner[completion.flow]
            if (end := self._instances.arrive(key, number, completion.time_ps / PS_PER_S)) is not None:
                ends.append(end)
        return ends

    def apply(self, outages: Outages) -> None:
        """Take these elements down, and bring all others up."""
        dark = outages.dark_links
        for link in self.fabric.links:
            self.emulated.set_link(link.index, up=link.index not in dark)
        for switch in self.fabric.switches:
            self.emulated.set_switch(switch, up=switch not in outages.switches)

    @property
    def ports_down(self) -> list[tuple[str, int]]:
        """The ports that are down at switches with power."""
        switches = self.emulated.switches.values()
        return [
            (switch.name, port)
            for switch in switches
            if switch.power.is_on
            for port in switch.ports
            if not switch.ports.is_up(port)
        ]

    def follow(self, directives: Mapping[str, Directives]) -> None:
        """Have hosts send from the source ports of all jobs' directives, in their order at each NIC.

        A flow whose port changes uses a new connection from its next transfer on. The order appears in no packet.
        """
        orders, senders = {}, {}
        for job, own in directives.items():
            for directive in own.flows:
                key, number = (job, directive.flow_group), directive.flow
                flow = self._flows[key][number] = self._connect(key, number, directive.source_port)
                orders[flow] = directive.level, directive.order
                senders[flow] = self._templates[key][number].source_address
        for flow, queue in host_queues(orders, senders).items():
            self.emulated.set_flow_level(flow, queue)

    def _connect(self, key: tuple[str, str], number: int, source_port: int) -> int:
        """Return the emulated flow of a flow's connection from a source port; open it where there is none."""
        connection = key, number, source_port
        if connection not in self._opened:
            five_tuple = replace(self._templates[key][number], source_port=source_port)
            self._opened[connection] = self.emulated.add_flow(five_tuple)
            self._owner[self._opened[connection]] = key, number
        return self._opened[connection]

    def sample_loads(self) -> LoadSample:
        """Return the utilisation of every link by level since the last sample, and what waits for it now.

        The bytes that wait are in the sizes of the scenario: a packet stands for ``scale`` times as many.
        """
        now_ps, sent = self.emulated.now_ps, self.emulated.sent_bytes()
        busy_ps = (sent - self._sampled_bytes) * self.emulated.ps_per_byte[:, np.newaxis]
        utilisation = busy_ps / max(1, now_ps - self._sampled_ps)
        queued_bytes = self.emulated.queued_bytes() * self.scale
        sample = LoadSample(
            self._sampled_ps / PS_PER_S,
            now_ps / PS_PER_S,
            tuple(map(tuple, utilisation.tolist())),
            tuple(map(tuple, queued_bytes.tolist())),
        )
        self._sampled_ps, self._sampled_bytes = now_ps, sent
        return sample


def chosen_control(choice: CongestionControlChoice) -> CongestionControl | str:
    """Return the congestion control that a scenario names.

    Raises:
        ValueError: It is not registered, or has no such parameter.
    """
    if choice.name == FIXED and not choice.parameters:
        return FIXED
    return find_control(choice.name).with_parameters(choice.parameters)


def as_emulated(fabric: Fabric) -> Fabric:
    """Return the fabric with every NIC's cable at most as fast as the PCIe link behind it.

    A PCIe switch with one NIC has the same effect.

    Raises:
        ValueError: A PCIe switch has several NICs, and the emulator's hosts have nothing that NICs share.
    """
    if fabric.pcie is None:
        return fabric
    if fabric.pcie.nics_per_switch > 1:
        raise ValueError(f"the emulator supports PCIe switches with one NIC, not with {fabric.pcie.nics_per_switch}")
    fastest_bps = fabric.pcie.rate_bps
    cables = tuple(
        replace(cable, rate_bps=min(cable.rate_bps, fastest_bps)) if fabric.host_index.keys() & cable.ends else cable
        for cable in fabric.cables
    )
    return replace(fabric, cables=cables, pcie=None)


def default_scale(fabric: Fabric) -> float:
    """Return the divisor of rates, at least 1, with which a packet stays short and a run takes little time."""
    return max(1.0, min(link.rate_bps for link in fabric.links) / SLOWEST_LINK_BPS)


def _window_packets(fabric: Fabric, hops: int, scale: float) -> int:
    """Return a window that just fills the fastest link over a path of so many hops.

    Every hop stores and forwards packets, and one acknowledgement answers several of them.
    """
    options = HostOptions()
    fastest_bps = max(link.rate_bps for link in fabric.links) / scale
    round_trip_s = 2 * hops * max(link.delay_s for link in fabric.links)
    in_flight = round_trip_s * fastest_bps / (8 * options.mtu_bytes)
    return min(MAX_WINDOW, hops + 2 * options.acknowledge_every + math.ceil(in_flight))
