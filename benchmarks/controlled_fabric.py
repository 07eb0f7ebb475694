"""An emulated fabric and a controller in this process, connected by P4Runtime and gNMI, with a scenario's jobs.

The fabric is unscaled and carries nothing else: test packets show whether it would carry a flow.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from ipaddress import IPv4Address

from controller.config import ControllerConfig
from controller.process.core import ControllerCore
from controller.southbound.gnmi import GnmiPortMonitor
from controller.southbound.p4runtime.switches import P4RuntimeSouthbound
from controller.switch_addresses import SwitchAddress
from emulator.compiler.program import compile_program
from emulator.fabric import PS_PER_S, EmulatedFabric
from emulator.observations import Capture
from emulator.p4runtime.pipeline import compiled_pipeline
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from experiments.scenarios.connections import open_connections
from experiments.scenarios.driven.clock import DrivenClock
from experiments.scenarios.in_process import flow_group_requests, job_request, task_graph_request
from hostlib.telemetry import Mark, Probe, parse_probe, probe_packet
from hostlib.telemetry.probes import ETHERNET_BYTES
from hostlib.types import FiveTuple as HostFiveTuple
from p4src import P4INFO, PROGRAM
from policies.flows import Flow
from topologies.addressing import FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.fabric import Path
from topologies.routing import Routing
from workloads.jobs import training_jobs
from workloads.scenario import Scenario

_ETHERNET = bytes(ETHERNET_BYTES - 2) + b"\x08\x00"
_LEASE_S = 1e6
_CROSSING_S = 0.0005
"""The time in which a packet crosses an idle fabric."""
_MOST_URGENT = 7
"""The level of test packets, which wait behind no transfer."""
_SESSION = 0
"""The session number of test packets; agents' sessions begin with 1."""


def ignore(_capture: Capture) -> None:
    """Do nothing with a packet."""


class ControlledFabric:
    """A controller, its switches, and the flows of its jobs; ``controlled`` creates one."""

    def __init__(
        self,
        emulated: EmulatedFabric,
        routing: Routing,
        controller: ControllerCore,
        southbound: P4RuntimeSouthbound,
        clock: DrivenClock,
    ) -> None:
        self.emulated = emulated
        self.routing = routing
        self.controller = controller
        self._southbound = southbound
        self._clock = clock
        self._sequence = 0
        self._senders: dict[FiveTuple, int] = {}
        self.take: Callable[[Capture], None] = ignore
        """Called with the packets that arrive besides test packets."""

    @property
    def now_s(self) -> float:
        """Virtual time."""
        return self.emulated.now_ps / PS_PER_S

    @property
    def flows(self) -> list[Flow]:
        """The flows of the Plan in force."""
        assert self.controller.planner.decision is not None
        return [flow for job in self.controller.planner.decision.snapshot.jobs for flow in job.flows]

    def path(self, flow: Flow) -> Path:
        """Return the path of a flow under the Plan in force."""
        assert self.controller.planner.decision is not None
        return self.controller.planner.decision.plan.flows[flow.key].path or flow.hashed_path

    def set_cable(self, cable: int, *, up: bool) -> None:
        """Take both directions of a cable down, or bring them up."""
        for link in (2 * cable, 2 * cable + 1):
            self.emulated.set_link(link, up=up)

    def soon_s(self, delay_s: float) -> float:
        """Return the time after a delay, in whole nanoseconds, which the fabric's clock can reach exactly."""
        return round(self.now_s + delay_s, 9)

    def wait(self, until_s: float) -> None:
        """Advance time to ``until_s``."""
        until_ps = max(self.emulated.now_ps, round(until_s * PS_PER_S))
        while self.emulated.run(until_ps):
            pass

    async def report_ports(self) -> None:
        """Report all ports to the controller, which does not act yet."""
        switches = self.emulated.switches.values()
        down = [(switch.name, port) for switch in switches for port in switch.ports if not switch.ports.is_up(port)]
        await self.controller.ports.caught_up(down)
        self._clock.advance_to(self.now_s)
        self.controller.planner.links.set_port_states(self.controller.ports.states, self.now_s)

    async def leave_dead_links(self) -> None:
        """Have the controller remove rules over dead links and reroute; wait until all switches hold the changes."""
        await self.controller.planner.leave_dead_links()
        await self._southbound.caught_up()

    async def settle(self) -> None:
        """Have the controller avoid dead links and plan changes, and wait until all switches hold them."""
        self._clock.advance_to(self.now_s)
        await self.controller.planner.settle()
        await self._southbound.caught_up()

    def sender(self, five_tuple: FiveTuple) -> int:
        """Return the emulator's number of a flow's connection; open it where there is none."""
        if five_tuple not in self._senders:
            self._senders[five_tuple] = self.emulated.add_flow(five_tuple)
        return self._senders[five_tuple]

    def carried(self, five_tuples: Iterable[FiveTuple]) -> set[FiveTuple]:
        """Return the flows of which a test packet sent now arrives; this takes half a millisecond of virtual time."""
        sent = {}
        for five_tuple in five_tuples:
            self._sequence += 1
            sent[self._sequence] = five_tuple
            host = HostFiveTuple(
                IPv4Address(five_tuple.source_address),
                IPv4Address(five_tuple.destination_address),
                five_tuple.protocol,
                five_tuple.source_port,
                five_tuple.destination_port,
            )
            packet = probe_packet(Probe(host, _MOST_URGENT, Mark(_SESSION, self._sequence, 0, 0)))
            link = self.emulated.fabric.nic_by_address[five_tuple.source_address].link
            if self.emulated.is_up(link):
                self.emulated.inject(link, _ETHERNET + packet)
        self.wait(self.now_s + _CROSSING_S)
        arrived = set()
        for capture in self.emulated.captured():
            mark = parse_probe(capture.octets[ETHERNET_BYTES:]).mark
            if mark.session == _SESSION:
                arrived.add(sent[mark.sequence])
            else:
                self.take(capture)
        return arrived


@asynccontextmanager
async def controlled(scenario: Scenario, policy: str, seed: int) -> AsyncIterator[ControlledFabric]:
    """Yield a scenario's fabric with all its jobs registered and planned for, without damping of flapping links."""
    fabric = scenario.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, seed))
    emulated = EmulatedFabric(fabric, compile_program(PROGRAM.read_text()))
    program = compiled_pipeline(P4INFO.read_text(), PROGRAM.read_bytes())
    service = P4RuntimeService(emulated.switches.values(), program, asyncio.Lock(), emulated.packet_out)
    async with serve(service) as port:
        addresses = tuple(
            SwitchAddress(name=switch.name, address=f"127.0.0.1:{port}", device_id=switch.device_id)
            for switch in emulated.switches.values()
        )
        config = ControllerConfig(
            agents=True,
            topology=scenario.topology,
            switches=addresses,
            hash_seed=seed,
            policy=policy,
            seed=seed,
            lease_s=_LEASE_S,
            policy_time_limit_s=None,
            damping=None,
        )
        southbound = P4RuntimeSouthbound(addresses, routing, config.pipeline, config.election_id)
        clock = DrivenClock()
        controller = ControllerCore(config, routing, southbound, clock)
        jobs = training_jobs(scenario, fabric)
        connections = open_connections(jobs, fabric)
        for job in jobs:
            controller.registry.register_job(job_request(job), 0.0)
            groups = flow_group_requests(job, connections, assigned=False)
            controller.registry.register_flow_groups(job.name, groups, task_graph_request(job))
        controller.planner.mark_changed()
        async with southbound, GnmiPortMonitor(addresses, controller.ports):
            found = ControlledFabric(emulated, routing, controller, southbound, clock)
            await southbound.caught_up()
            await found.report_ports()
            await found.settle()
            yield found
