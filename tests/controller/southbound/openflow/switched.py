"""A fabric whose switches are bridges of a private Open vSwitch, and a southbound that programs them."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from controller.links.port_states import PortStateTable
from controller.southbound.fencing import Grant
from controller.southbound.openflow.switches import OpenFlowSouthbound
from controller.southbound.write_outcomes import SwitchWrite
from controller.switch_addresses import OpenFlowConfig, SwitchAddress
from tests.openvswitch import add_dummy_bridge
from topologies.fabric import Fabric
from topologies.openflow_specification import OpenFlowSpecification
from topologies.openvswitch.daemons import OpenVSwitch
from topologies.routing import Routing

LISTEN = OpenFlowConfig(listen="127.0.0.1:0")


def addresses_of(switches: Iterable[str], **keys: str) -> tuple[SwitchAddress, ...]:
    return tuple(
        SwitchAddress(name=name, openflow=OpenFlowSpecification.model_validate({"datapath_id": number, **keys}))
        for number, name in enumerate(switches, start=1)
    )


def add_bridges(openvswitch: OpenVSwitch, fabric: Fabric, *settings: str) -> None:
    """Add a bridge for every switch, without a controller."""
    for number, switch in enumerate(fabric.switches, start=1):
        ports = [link.source_port for link in fabric.links_from[switch]]
        add_dummy_bridge(openvswitch, switch, number, ports, *settings)


def use_controller(openvswitch: OpenVSwitch, switches: Iterable[str], place: str) -> None:
    for switch in switches:
        openvswitch.vsctl(
            *("set-controller", switch, f"tcp:{place}", "--", "set", "controller", switch, "max_backoff=1000")
        )


def flows_of(openvswitch: OpenVSwitch, switch: str) -> list[str]:
    """The flow entries of a bridge, as Open vSwitch tells them, without counters."""
    return sorted(line.strip() for line in openvswitch.ofctl("--no-stats", "dump-flows", switch).splitlines())


def groups_of(openvswitch: OpenVSwitch, switch: str) -> list[str]:
    lines = openvswitch.ofctl("dump-groups", switch).strip().splitlines()
    return sorted(line.strip() for line in lines if "group_id=" in line)


class Programmed:
    """A southbound, the ports that it hears of, and what it has written."""

    def __init__(
        self,
        routing: Routing,
        addresses: Sequence[SwitchAddress],
        config: OpenFlowConfig = LISTEN,
        grant: Grant | None = None,
    ) -> None:
        self.writes: list[SwitchWrite] = []
        self.ports = PortStateTable(address.name for address in addresses)
        self.southbound = OpenFlowSouthbound(addresses, routing, config, self.writes.append, grant)
        self.southbound._writers._patience_s = None  # a busy machine makes every switch slow

    @property
    def place(self) -> str:
        return self.southbound._connections.listens_at

    @property
    def num_written(self) -> int:
        return sum(write.inserted + write.modified + write.deleted for write in self.writes)

    @asynccontextmanager
    async def running(self, openvswitch: OpenVSwitch, switches: Iterable[str]) -> AsyncIterator[OpenFlowSouthbound]:
        """Be the controller of these bridges for as long as the context lasts."""
        async with self.southbound.hearing_ports(self.ports):
            use_controller(openvswitch, switches, self.place)
            async with self.southbound:
                yield self.southbound
