"""An emulated fabric whose switches answer P4Runtime and gNMI in memory, each at an address of its own."""

import asyncio
from functools import cache

from finsy.proto import gnmi_grpc, p4r, p4r_grpc

from controller.switch_addresses import SwitchAddress
from emulator.compiler.program import Program, compile_program
from emulator.fabric import EmulatedFabric
from emulator.p4runtime.gnmi import InterfaceService
from emulator.p4runtime.pipeline import Pipeline, compiled_pipeline
from emulator.p4runtime.service import P4RuntimeService
from p4src import P4INFO, PROGRAM
from tests.chaos.channels import MemoryChannel, MemoryServer
from tests.chaos.network import Network
from tests.chaos.processes import Process
from topologies.fabric import Fabric


@cache
def program() -> Program:
    """Return our P4 program, compiled."""
    return compile_program(PROGRAM.read_text())


@cache
def _pipeline() -> Pipeline:
    return compiled_pipeline(P4INFO.read_text(), PROGRAM.read_bytes())


class Switches:
    """The switches of an emulated fabric at ``PREFIXNAME:1``, each a process of the network."""

    def __init__(self, emulated: EmulatedFabric, network: Network, prefix: str = "") -> None:
        self.emulated = emulated
        self._network = network
        self._prefix = prefix
        service = P4RuntimeService(emulated.switches.values(), _pipeline(), asyncio.Lock(), emulated.packet_out)
        for switch in service.switches:
            server = MemoryServer()
            p4r_grpc.add_P4RuntimeServicer_to_server(service.alone(switch), server)
            gnmi_grpc.add_gNMIServicer_to_server(InterfaceService([switch], service.exclusive), server)
            network.listen(self._address(switch.name), Process(prefix + switch.name), server.handlers)

    @property
    def addresses(self) -> tuple[SwitchAddress, ...]:
        """The switches as a controller's configuration has them."""
        return tuple(
            SwitchAddress(name=switch.name, address=self._address(switch.name), device_id=switch.device_id)
            for switch in self.emulated.switches.values()
        )

    async def held(self) -> dict[str, frozenset[bytes]]:
        """Return all entries that P4Runtime reads from every switch with power."""
        return {
            name: await self._held(name, switch.device_id)
            for name, switch in self.emulated.switches.items()
            if switch.power.is_on
        }

    async def _held(self, name: str, device_id: int) -> frozenset[bytes]:
        wanted = [
            p4r.Entity(table_entry=p4r.TableEntry()),
            p4r.Entity(table_entry=p4r.TableEntry(is_default_action=True)),
            p4r.Entity(action_profile_member=p4r.ActionProfileMember()),
            p4r.Entity(action_profile_group=p4r.ActionProfileGroup()),
        ]
        channel = MemoryChannel(self._network, self._address(name))
        try:
            responses = p4r_grpc.P4RuntimeStub(channel).Read(p4r.ReadRequest(device_id=device_id, entities=wanted))
            return frozenset(
                [entity.SerializeToString(deterministic=True) async for page in responses for entity in page.entities]
            )
        finally:
            await channel.close()

    def _address(self, switch: str) -> str:
        return f"{self._prefix}{switch}:1"


def emulated_fabric(fabric: Fabric) -> EmulatedFabric:
    """Return a fabric that runs our program, with empty switches."""
    return EmulatedFabric(fabric, program())
