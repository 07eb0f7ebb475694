"""Switches as nodes of Mininet: those of the emulator."""

from typing import Any

from mininet.node import Switch

from topologies.mininet.controllers import TrainyardController
from topologies.mininet.emulator import Emulator
from topologies.mininet.nodes import OwnedNode
from topologies.mininet.switch_place import SwitchPlace
from topologies.namespaces.host_network import NetworkError

_NO_IPV6 = "for kind in all default; do echo 1 > /proc/sys/net/ipv6/conf/$kind/disable_ipv6; done 2>/dev/null"


class FabricSwitch(OwnedNode, Switch):
    """A switch of a fabric, without a namespace of its own.

    Args:
        name: The name of the switch in the topology.
        place: Where all switches are.
        parameters: As Mininet has them.
    """

    has_inner_cables = False
    """Whether cables between two switches have no interfaces."""

    def __init__(self, name: str, place: SwitchPlace, **parameters: Any) -> None:
        self.place = place
        self.controlIntf = None
        self._controllers: list[Any] = []
        super().__init__(name, **{**parameters, "inNamespace": True})
        if place.first is None:
            place.first = self
            self.cmd(_NO_IPV6)

    def _popen(self, cmd: list[str], **parameters: Any) -> Any:
        """Start the shells of all switches in the network namespace of the first."""
        first = self.place.first
        if first is not None and cmd[1] == "-cdn":
            cmd = ["mnexec", "-cda", str(first.pid), *cmd[2:]]
        return super()._popen(cmd, **parameters)

    def start(self, controllers: list[Any]) -> None:
        """Note the controllers: all switches start at once."""
        self._controllers = controllers

    def trainyard_controllers(self) -> list[TrainyardController]:
        """Return the controllers that are ours."""
        return [each for each in self._controllers if isinstance(each, TrainyardController)]


class EmulatedSwitch(FabricSwitch):
    """A P4 switch of the emulator."""

    has_inner_cables = True
    emulator: Emulator | None = None

    @classmethod
    def batchStartup(cls, switches: tuple["EmulatedSwitch", ...]) -> tuple["EmulatedSwitch", ...]:  # noqa: N802
        """Start the emulator, have the controllers write to it, and return when hosts reach each other.

        Raises:
            NetworkError: The emulator or a controller refuses.
        """
        place = switches[0].place
        assert place.file is not None
        emulator = Emulator(place.file, place.namespace)
        for switch in switches:
            switch.emulator = emulator
        emulator.start(len(switches), dict(wire for switch in switches for wire in switch._wires()))
        ids = {each["name"]: each["device_id"] for each in place.described["switches"]}
        addresses = [
            {"name": name, "address": address, "device_id": ids[name]} for name, address in emulator.addresses.items()
        ]
        for controller in switches[0].trainyard_controllers():
            controller.control(place.file, {"switches": addresses})
        return switches

    @classmethod
    def batchShutdown(cls, switches: tuple["EmulatedSwitch", ...]) -> tuple["EmulatedSwitch", ...]:  # noqa: N802
        """Stop the emulator."""
        if switches[0].emulator is not None:
            switches[0].emulator.stop()
        return switches

    def connected(self) -> bool:
        """Tell whether the switch forwards."""
        return self.emulator is not None and self.emulator.runs

    def set_port(self, port: int, state: str) -> None:
        """Enable a port, for the state ``up``, or disable it. Raises NetworkError where the switch refuses."""
        if self.emulator is None or not self.emulator.runs:
            raise NetworkError(f"switch {self.name} does not run")
        self.emulator.set_port(self.name, port, state)

    def _wires(self) -> list[tuple[str, str]]:
        """Return the NICs that are cabled to this switch, each with the interface at this end."""
        found = []
        for interface in self.intfList():
            ends = (interface.link.intf1, interface.link.intf2)
            far = ends[0] if ends[1] is interface else ends[1]
            if not isinstance(far.node, FabricSwitch):
                found.append((f"{far.node.name}.{far.node.ports[far]}", interface.name))
        return found
