"""Cables between nodes of Mininet, which fail as the emulator's do when ``link`` of Mininet's CLI takes them down.

A host's cable is a pair of interfaces: the switch's end goes down, and the host's end loses its carrier, as if the
cable had been pulled out. A cable between two switches of the emulator is inside it, and has no interfaces.
"""

import subprocess  # nosec B404 # runs iproute2, without a shell
from typing import Any

from mininet.link import Intf, Link

from topologies.mininet.switches import FabricSwitch
from topologies.namespaces.host_network import NetworkError

_STATES = ("up", "down")


class HostEnd(Intf):
    """A NIC: the host sets it up, and a cable that is taken down leaves it as it is."""

    def config(self, **_: Any) -> dict[str, Any]:
        """Leave it to the host."""
        return {}

    def ifconfig(self, *arguments: str) -> str:
        """Leave the interface up: it is the cable that goes down."""
        return "" if arguments in (("up",), ("down",)) else str(super().ifconfig(*arguments))

    def updateIP(self) -> str:  # noqa: N802 # Mininet's name
        """Return the address, which does not change."""
        return str(self.ip)


class SwitchEnd(Intf):
    """The switch's end of a host's cable."""

    def config(self, **_: Any) -> dict[str, Any]:
        """Take it up."""
        self.ifconfig("up")
        return {}

    def updateIP(self) -> None:  # noqa: N802 # Mininet's name
        """Say that it has no address."""


class InnerEnd(SwitchEnd):
    """An end of a cable between two switches: a port of the emulator, without an interface."""

    def config(self, **_: Any) -> dict[str, Any]:
        """Leave it up, as ports are when the emulator starts."""
        self._state = "up"
        return {}

    def ifconfig(self, *arguments: str) -> str:
        """Have the emulator enable or disable the port; return why it does not."""
        if len(arguments) != 1 or arguments[0] not in _STATES:
            return f"{self.name} is inside the emulator: expected up or down"
        try:
            self.node.set_port(self.node.ports[self], arguments[0])
        except NetworkError as error:
            return str(error)
        self._state = arguments[0]
        return ""

    def isUp(self, setUp: bool = False) -> bool:  # noqa: N802 # Mininet's names
        """Tell whether the port is enabled, or enable it."""
        return (not self.ifconfig("up")) if setUp else self._state == "up"

    def status(self) -> str:
        """Return what ``links`` of Mininet's CLI shows."""
        return self._state

    def delete(self) -> None:
        """Forget the port: no interface has to be removed."""
        self.node.delIntf(self)
        self.link = None


class Cable(Link):
    """A cable of a fabric, with interfaces for hosts and emulator, and none between two emulated switches.

    Args:
        node1: A node, the host if there is one.
        node2: The other one.
        mtu_bytes: The longest IP packet.
        parameters: As Mininet has them.
    """

    def __init__(self, node1: Any, node2: Any, *, mtu_bytes: int, **parameters: Any) -> None:
        self._mtu_bytes = mtu_bytes
        switches = [node for node in (node1, node2) if isinstance(node, FabricSwitch)]
        self._is_inner = len(switches) > 1 and switches[0].has_inner_cables
        inside = InnerEnd if self._is_inner else SwitchEnd
        classes = [inside if node in switches else HostEnd for node in (node1, node2)]
        super().__init__(node1, node2, cls1=classes[0], cls2=classes[1], **parameters)

    def makeIntfPair(  # noqa: N802 # Mininet's name
        self,
        name1: str,
        name2: str,
        _address1: str,
        _address2: str,
        node1: Any,
        node2: Any,
        **_: Any,
    ) -> None:
        """Make the interfaces, where there are to be any. Raises NetworkError where that fails."""
        if self._is_inner:
            return
        mtu = ("mtu", str(self._mtu_bytes))
        first = ("name", name1, *mtu, "netns", str(node1.pid))
        second = ("name", name2, *mtu, "netns", str(node2.pid))
        # From outside: nodes do not know each other's processes.
        done = subprocess.run(  # nosec B603 B607 # no shell
            ["ip", "link", "add", *first, "type", "veth", "peer", *second], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise NetworkError(f"no cable between {name1} and {name2}: {done.stderr.strip()}")
