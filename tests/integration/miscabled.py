"""Emulated fabrics in wall-clock time that are cabled otherwise than the file of their controller says."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from controller.clock import WallClock as ControllerClock
from controller.config import ControllerConfig
from controller.process.active_controller import active_controller
from controller.process.core import ControllerCore
from controller.switch_addresses import SwitchAddress
from emulator.compiler.program import compile_program
from emulator.engine.events import END_PS
from emulator.fabric import EmulatedFabric
from emulator.p4runtime.pipeline import compiled_pipeline
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from emulator.wall_clock import WallClock
from p4src import P4INFO, PROGRAM
from tests.patience import until
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.expanding import expanded
from topologies.fabric import Cable, Fabric, Nic
from topologies.routing import Routing


def exchanged(fabric: Fabric, first: int, second: int) -> Fabric:
    """Return a fabric in which the second ends of two cables, given as links out of their first ends, are exchanged."""
    cables = list(with_ports(fabric).cables)
    one, other = cables[first // 2], cables[second // 2]
    assert one.ports is not None
    assert other.ports is not None
    cables[first // 2] = _ending(one, other.ends[1], other.ports[1])
    cables[second // 2] = _ending(other, one.ends[1], one.ports[1])
    return replace(with_ports(fabric), cables=tuple(cables))


def with_ports(fabric: Fabric) -> Fabric:
    """Return the fabric with all port numbers at its cables."""
    return expanded(fabric).build()


def _ending(cable: Cable, node: str, port: int) -> Cable:
    assert cable.ports is not None
    return replace(cable, ends=(cable.ends[0], node), ports=(cable.ports[0], port))


@dataclass(frozen=True)
class RunningFabric:
    """An emulated fabric that runs in wall-clock time, and the addresses of its switches."""

    emulated: EmulatedFabric
    switches: tuple[SwitchAddress, ...]
    exclusive: asyncio.Lock

    async def set_cable(self, link: int, *, up: bool) -> None:
        """Take a cable of the real fabric down, or bring it up."""
        async with self.exclusive:
            for each in (link, link ^ 1):
                self.emulated.set_link(each, up=up)

    async def send(self, nic: Nic, octets: bytes) -> None:
        """Have a host send a frame."""
        async with self.exclusive:
            self.emulated.inject(nic.link, octets)

    async def received(self) -> list[tuple[int, bytes]]:
        """Return the frames of switches and other hosts that have come to hosts since the last call, by link."""
        async with self.exclusive:
            return [(capture.link, capture.octets) for capture in self.emulated.captured()]

    async def transfer(self, source: Nic, destination: Nic) -> None:
        """Wait until some packets have come from one host to another, and their acknowledgements back."""
        packets = 8
        five_tuple = FiveTuple(source.address, destination.address, UDP_PROTOCOL, 50_000, 4791)
        async with self.exclusive:
            flow = self.emulated.add_flow(five_tuple)
            self.emulated.start_transfer(flow, packets * self.emulated.options.mtu_bytes)
        await until(lambda: self.emulated.progress(flow).acknowledged == packets)


@asynccontextmanager
async def running(world: Fabric) -> AsyncIterator[RunningFabric]:
    """Run a fabric, with switches that have no pipeline yet."""
    emulated = EmulatedFabric(world, compile_program(PROGRAM.read_text()))
    emulated.run(0)  # else the first packets wait for its compiler
    pipeline = compiled_pipeline(P4INFO.read_text(), PROGRAM.read_bytes())
    exclusive = asyncio.Lock()

    def send(switch: str, octets: bytes) -> None:
        emulated.packet_out(switch, octets)
        clock.wake()

    service = P4RuntimeService(emulated.switches.values(), pipeline, exclusive, send)
    clock = WallClock(emulated, exclusive, service.deliver)

    async def run_for_ever() -> None:
        while True:  # each end of a transfer ends a call
            await clock.run(END_PS)

    passing = asyncio.create_task(run_for_ever())
    try:
        async with serve(service, set_port=emulated.set_port) as port:
            switches = tuple(
                SwitchAddress(name=switch.name, address=f"127.0.0.1:{port}", device_id=switch.device_id)
                for switch in emulated.switches.values()
            )
            yield RunningFabric(emulated, switches, exclusive)
    finally:
        passing.cancel()
        with suppress(asyncio.CancelledError):
            await passing


@asynccontextmanager
async def controlled(running_fabric: RunningFabric, file: Fabric) -> AsyncIterator[ControllerCore]:
    """Run a controller that believes a fabric file."""
    config = ControllerConfig(topology=expanded(file), switches=running_fabric.switches, policy_time_limit_s=None)
    fabric = config.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, config.hash_seed))
    async with active_controller(config, routing, ControllerClock()) as active:
        controller = active.core
        await controller.southbound.caught_up()
        yield controller
