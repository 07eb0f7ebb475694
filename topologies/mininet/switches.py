"""P4 switches as nodes of Mininet, all of them run by one process of the emulator."""

from typing import Any

from mininet.log import error
from mininet.node import Switch

from topologies.mininet.controllers import TrainyardController
from topologies.mininet.nodes import OwnedNode
from topologies.mininet.programs import Program, alone, tell
from topologies.namespaces.host_network import NetworkError

_NO_IPV6 = "for kind in all default; do echo 1 > /proc/sys/net/ipv6/conf/$kind/disable_ipv6; done 2>/dev/null"


class Emulator:
    """The process that runs all switches of a fabric, and the network namespace with their ends of hosts' cables.

    Args:
        file: The file of the topology; None where ``start`` is not called, because something else passes frames.

    Attributes:
        first: The switch whose network namespace it is.
        addresses: The P4Runtime address of every switch, once they run.
    """

    def __init__(self, file: str | None = None) -> None:
        self.file = file
        self.first: EmulatedSwitch | None = None
        self.addresses: dict[str, str] = {}
        self._program: Program | None = None

    @property
    def namespace(self) -> str:
        """The file of the network namespace."""
        assert self.first is not None
        return f"/proc/{self.first.pid}/ns/net"

    def start(self, num_switches: int, wires: dict[str, str]) -> None:
        """Run the switches until ``stop``; return when they answer.

        Args:
            num_switches: How many there are.
            wires: By NIC, as ``h0.0``, the interface at the switch's end of its cable.

        Raises:
            NetworkError: The emulator refuses; the text has its complaint.
        """
        assert self.file is not None
        options = [option for nic, interface in wires.items() for option in ("--wire", f"{nic}={interface}")]
        self._program = program = Program(
            alone(),
            *("emulator", "--topology", self.file, "--netns", self.namespace),
            *("--listen", "127.0.0.1:0", "--port-per-switch", *options),
        )
        program.next_line()  # the heading
        for _ in range(num_switches):
            _, name, address = program.next_line().split()
            self.addresses[name] = address

    @property
    def runs(self) -> bool:
        """Whether the switches forward."""
        return self._program is not None and self._program.runs

    def set_port(self, switch: str, port: int, state: str) -> None:
        """Enable a port, for the state ``up``, or disable it. Raises NetworkError where the switch refuses."""
        tell("port", self.addresses[switch], switch, str(port), state)

    def stop(self) -> None:
        """End the process, and say so if it has ended before."""
        if self._program is not None:
            program, self._program = self._program, None
            if complaint := program.stop():
                error(f"*** {complaint}\n")


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
