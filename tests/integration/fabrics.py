"""Small emulated fabrics with a P4Runtime server and a controller process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from controller.config import ControllerConfig
from controller.switch_addresses import SwitchAddress
from emulator.clock import VirtualClock
from emulator.compiler.program import compile_program
from emulator.fabric import EmulatedFabric
from emulator.host_options import HostOptions
from emulator.p4runtime.pipeline import compiled_pipeline
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from experiments.scenarios.controller_process import ControllerProcess
from p4src import P4INFO, PROGRAM
from tests.patience import until
from topologies.specification import DumbbellSpecification, Topology

DUMBBELL = DumbbellSpecification(kind="dumbbell", hosts_per_side=2, host_link_gbps=4, bottleneck_gbps=1)


@dataclass(frozen=True)
class ServedFabric:
    """An emulated fabric and the address of its P4Runtime server; ``clock`` hands PacketIns to their controllers.

    The server and the clock hold ``exclusive`` while they have the fabric.
    """

    emulated: EmulatedFabric
    address: str
    clock: VirtualClock
    exclusive: asyncio.Lock

    def addresses(self) -> tuple[SwitchAddress, ...]:
        """Its switches as a controller's configuration has them."""
        return tuple(
            SwitchAddress(name=switch.name, address=self.address, device_id=switch.device_id)
            for switch in self.emulated.switches.values()
        )


def served_dumbbell(trace_rows: int = 0) -> AbstractAsyncContextManager[ServedFabric]:
    """Serve the dumbbell, with switches that have no pipeline yet."""
    return served_fabric(DUMBBELL, trace_rows)


@asynccontextmanager
async def served_fabric(topology: Topology, trace_rows: int = 0) -> AsyncIterator[ServedFabric]:
    """Serve a fabric, with switches that have no pipeline yet."""
    program = compile_program(PROGRAM.read_text())
    emulated = EmulatedFabric(topology.build(), program, HostOptions(window_packets=40), trace_rows=trace_rows)
    pipeline = compiled_pipeline(P4INFO.read_text(), PROGRAM.read_bytes())
    exclusive = asyncio.Lock()
    service = P4RuntimeService(emulated.switches.values(), pipeline, exclusive, emulated.packet_out)
    async with serve(service, set_port=emulated.set_port) as port:
        clock = VirtualClock(emulated, exclusive, service.deliver)
        yield ServedFabric(emulated, f"127.0.0.1:{port}", clock, exclusive)


@asynccontextmanager
async def controlled(served: ServedFabric, lease_s: float = 30.0, **options: Any) -> AsyncIterator[ControllerProcess]:
    """Run a controller process in wall-clock time over a served fabric, with more configuration options."""
    async with ControllerProcess(configuration(served, lease_s, **options)) as process:
        yield process


def configuration(
    served: ServedFabric, lease_s: float = 30.0, topology: Topology = DUMBBELL, **options: Any
) -> ControllerConfig:
    """Return the configuration of a controller over a served fabric."""
    return ControllerConfig(
        listen="127.0.0.1:0", topology=topology, switches=served.addresses(), lease_s=lease_s, hash_seed=1, **options
    )


async def base_routing(emulated: EmulatedFabric) -> None:
    """Wait until a controller has written routes to every host into every switch."""
    switches, expected = emulated.switches.values(), len(emulated.fabric.hosts)
    await until(lambda: all(len(list(switch.entries("ingress.routing"))) == expected for switch in switches))
