"""P4 switches as nodes of Mininet."""

from typing import Any

from mininet.node import Switch

from topologies.mininet.controllers import TrainyardController
from topologies.mininet.emulator import Emulator
from topologies.mininet.nodes import OwnedNode
from topologies.namespaces.host_network import NetworkError

_NO_IPV6 = "for kind in all default; do echo 1 > /proc/sys/net/ipv6/conf/$kind/disable_ipv6; done 2>/dev/null"


class EmulatedSwitch(OwnedNode, Switch):
    """A P4 switch of the emulator, without a namespace of its own.

    Args:
        name: The name of the switch in the topology.
        emulator: What runs all switches of the network.
        parameters: As Mininet has them.
    """

    def __init__(self, name: str, emulator: Emulator, **parameters: Any) -> None:
        self.emulator = emulator
        self.controlIntf = None
        self._controllers: list[Any] = []
        super().__init__(name, **{**parameters, "inNamespace": True})
        if emulator.first is None:
            emulator.first = self
            self.cmd(_NO_IPV6)

    def _popen(self, cmd: list[str], **parameters: Any) -> Any:
        """Start the shells of all switches in the network namespace of the first."""
        first = self.emulator.first
        if first is not None and cmd[1] == "-cdn":
            cmd = ["mnexec", "-cda", str(first.pid), *cmd[2:]]
        return super()._popen(cmd, **parameters)

    def start(self, controllers: list[Any]) -> None:
        """Note the controllers: all switches start at once."""
        self._controllers = controllers

    @classmethod
    def batchStartup(cls, switches: tuple["EmulatedSwitch", ...]) -> tuple["EmulatedSwitch", ...]:  # noqa: N802
        """Start the emulator, have the controllers write to it, and return when hosts reach each other.

        Raises:
            NetworkError: The emulator or a controller refuses.
        """
        emulator = switches[0].emulator
        emulator.start(len(switches), dict(wire for switch in switches for wire in switch._wires()))
        for controller in switches[0]._controllers:
            if isinstance(controller, TrainyardController):
                controller.control(str(emulator.file), emulator.addresses)
        return switches

    @classmethod
    def batchShutdown(cls, switches: tuple["EmulatedSwitch", ...]) -> tuple["EmulatedSwitch", ...]:  # noqa: N802
        """Stop the emulator."""
        switches[0].emulator.stop()
        return switches

    def connected(self) -> bool:
        """Tell whether the switch forwards."""
        return self.emulator.runs

    def set_port(self, port: int, state: str) -> None:
        """Enable a port, for the state ``up``, or disable it. Raises NetworkError where the switch refuses."""
        if not self.emulator.runs:
            raise NetworkError(f"switch {self.name} does not run")
        self.emulator.set_port(self.name, port, state)

    def _wires(self) -> list[tuple[str, str]]:
        """Return the NICs that are cabled to this switch, each with the interface at this end."""
        found = []
        for interface in self.intfList():
            ends = (interface.link.intf1, interface.link.intf2)
            far = ends[0] if ends[1] is interface else ends[1]
            if not isinstance(far.node, EmulatedSwitch):
                found.append((f"{far.node.name}.{far.node.ports[far]}", interface.name))
        return found
