"""Bridges of Open vSwitch as nodes of Mininet, which Trainyard's controller programs by OpenFlow."""

from typing import Any

from topologies.mininet.interfaces import interface_names
from topologies.mininet.switches import FabricSwitch
from topologies.namespaces.host_network import NetworkError
from topologies.openvswitch.bridges import Bridge, fabric_bridges
from topologies.openvswitch.fabric_switches import OpenVSwitchFabric


class OpenVSwitchBridge(FabricSwitch):
    """A bridge of a private Open vSwitch."""

    fabric: OpenVSwitchFabric | None = None
    """All bridges, while they run."""

    @classmethod
    def batchStartup(cls, switches: tuple["OpenVSwitchBridge", ...]) -> tuple["OpenVSwitchBridge", ...]:  # noqa: N802
        """Start Open vSwitch, have the controllers write to it, and return when hosts reach each other.

        Raises:
            NetworkError: Open vSwitch is not installed or does not start, or a controller refuses.
        """
        place = switches[0].place
        bridges = fabric_bridges(place.described, interface_names(place.described))
        fabric = OpenVSwitchFabric(bridges, place.inside, place.mtu_bytes)
        fabric.__enter__()
        for switch in switches:
            switch.fabric = fabric
        socket = f"unix:{fabric.folder}/openflow.sock"
        fabric.add_bridges(socket)
        for controller in switches[0].trainyard_controllers():
            controller.control(str(place.file), _configuration(bridges, socket))
        return switches

    @classmethod
    def batchShutdown(cls, switches: tuple["OpenVSwitchBridge", ...]) -> tuple["OpenVSwitchBridge", ...]:  # noqa: N802
        """End Open vSwitch."""
        if switches[0].fabric is not None:
            switches[0].fabric.close()
        return switches

    def connected(self) -> bool:
        """Tell whether the switch forwards."""
        return self.fabric is not None and self.fabric.daemons(self.name).runs

    def dpctl(self, *arguments: str) -> str:
        """Run ``ovs-ofctl``, such as ``dump-flows``, on the bridge; return what it says, or why it does not."""
        if self.fabric is None:
            return f"switch {self.name} does not run\n"
        command, *others = arguments
        try:
            return self.fabric.daemons(self.name).ofctl(command, self.fabric.bridges[self.name].name, *others)
        except NetworkError as error:
            return f"{error}\n"


def _configuration(bridges: dict[str, Bridge], socket: str) -> dict[str, Any]:
    """Return what the controller's configuration says of the bridges."""
    switches = [{"name": name, "openflow": {"datapath_id": bridge.datapath_id}} for name, bridge in bridges.items()]
    return {"switches": switches, "openflow": {"listen": socket}, "hash": "unknown"}
