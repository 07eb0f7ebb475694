"""All switches of a fabric, each an Open vSwitch of its own in the network namespace of the cables' ends."""

import subprocess  # nosec B404 # runs tc and ip, without a shell
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from topologies.namespaces.host_network import NetworkError
from topologies.openvswitch.bridges import Bridge, bridge_commands
from topologies.openvswitch.daemons import OpenVSwitch, openvswitch_folder
from topologies.openvswitch.port_queues import port_queue_commands
from topologies.openvswitch.queue_counts import count_commands, queue_counts


class OpenVSwitchFabric:
    """The switches of a fabric as a context manager.

        with FabricNamespaces(fabric, has_switch_cables=True) as namespaces:
            bridges = fabric_bridges(described(fabric), namespaces.switch_ends)
            with OpenVSwitchFabric(bridges, namespaces.in_fabric, namespaces.mtu_bytes) as switches:
                switches.add_bridges(f"unix:{switches.folder}/openflow.sock")

    Each port sends at its cable's rate, the more urgent packets first.

    Args:
        bridges: The bridge of each switch.
        in_fabric: Turns a command line into one that runs in the namespace of these interfaces, and ends with this
            process.
        mtu_bytes: The longest IP packet.

    Attributes:
        folder: Where all sockets are, while they run. A controller's Unix socket has to be there, too.
    """

    def __init__(self, bridges: Mapping[str, Bridge], in_fabric: Callable[..., list[str]], mtu_bytes: int) -> None:
        self.bridges = bridges
        self.folder = Path()
        self._in_fabric = in_fabric
        self._mtu_bytes = mtu_bytes
        self._daemons: dict[str, OpenVSwitch] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start the daemons. Raises NetworkError where Open vSwitch is not installed, or does not start."""
        with ExitStack() as stack:
            self.folder = stack.enter_context(openvswitch_folder())
            for switch, bridge in self.bridges.items():
                # ``dummy``: the userspace datapath without an interface of its own, for which root is not needed.
                daemons = OpenVSwitch(self._in_fabric(), has_dummies=True, folder=self.folder, name=bridge.name)
                self._daemons[switch] = stack.enter_context(daemons)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all daemons."""
        self._stack.close()
        self._daemons.clear()

    def add_bridges(self, controller: str | None = None) -> None:
        """Add the bridges and their queues. ``controller`` is where Open vSwitch finds it, None: there is none.

        Raises:
            NetworkError: Open vSwitch or tc refuses.
        """
        commands = []
        for switch, bridge in self.bridges.items():
            self._daemons[switch].vsctl(*bridge_commands(bridge, controller, datapath="dummy"))
            for port in bridge.ports.values():
                commands += port_queue_commands(port.interface, port.rate_bps, self._mtu_bytes)
        self.run_in_fabric("tc", "-batch", "-", given="".join(f"{command}\n" for command in commands))

    def daemons(self, switch: str) -> OpenVSwitch:
        """Return the Open vSwitch of a switch, while it runs."""
        return self._daemons[switch]

    def set_ports(self, ports: Iterable[tuple[str, int]], *, up: bool) -> None:
        """Take ports up or down, each by its switch and number, as if their cables were plugged in or pulled out.

        Raises:
            NetworkError: An interface is gone.
        """
        interfaces = [self.bridges[switch].ports[number].interface for switch, number in ports]
        lines = "".join(f"link set {interface} {'up' if up else 'down'}\n" for interface in interfaces)
        self.run_in_fabric("ip", "-batch", "-", given=lines)

    def queue_counts(self) -> dict[tuple[str, int], list[tuple[int, int]]]:
        """Return the bytes and packets that each port has sent, by level. Raises NetworkError where tc refuses."""
        ports = {
            (switch, number): port.interface
            for switch, bridge in self.bridges.items()
            for number, port in bridge.ports.items()
        }
        interfaces = list(ports.values())
        printed = self.run_in_fabric("tc", "-statistics", "-batch", "-", given=count_commands(interfaces))
        counts = queue_counts(printed, interfaces)
        return {port: counts[interface] for port, interface in ports.items()}

    def run_in_fabric(self, *command: str, given: str = "") -> str:
        """Run a command where the interfaces are; return what it says. Raises NetworkError with its complaint."""
        done = subprocess.run(  # nosec B603 # no shell
            self._in_fabric(*command), input=given, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise NetworkError(f"{' '.join(command)}: {done.stderr.strip() or f'exit status {done.returncode}'}")
        return done.stdout
