"""The hosts of a fabric as nodes of Mininet, for runs of real programs."""

import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from topologies.description import described
from topologies.fabric import Fabric
from topologies.mininet.interfaces import interface_names
from topologies.mininet.loading import load_mininet
from topologies.mininet.programs import alone, with_descendants
from topologies.namespaces.frame_counts import frame_bytes
from topologies.namespaces.host_network import DEFAULT_MTU_BYTES, NetworkError
from topologies.namespaces.hosts_file import hosts_file


class MininetNamespaces:
    """Hosts and cables that Mininet makes, as a context manager like ``FabricNamespaces``.

    Something has to pass frames between the interfaces ``wires``, in the namespace ``fabric_file``. All of it ends with
    the thread that has entered the context, even by SIGKILL.

    Args:
        fabric: Its hosts become hosts of Mininet; its rates limit what they send.
        mtu_bytes: The longest IP packet.
        has_switch_cables: Whether the cables between switches are pairs of interfaces, too, as Open vSwitch needs them;
            the emulator has them inside.
    """

    def __init__(self, fabric: Fabric, mtu_bytes: int = DEFAULT_MTU_BYTES, *, has_switch_cables: bool = False) -> None:
        self.fabric = fabric
        self.has_switch_cables = has_switch_cables
        self.mtu_bytes = mtu_bytes
        self._network: Any = None

    def __enter__(self) -> Self:
        """Make the network. Raises NetworkError where that is not permitted, or something is missing."""
        if os.geteuid() != 0:
            raise NetworkError("Mininet needs root")
        load_mininet()
        # They need Mininet, which cannot be imported before it is loaded.
        from mininet.net import Mininet
        from mininet.topo import Topo

        from topologies.mininet.switch_place import SwitchPlace
        from topologies.mininet.switches import EmulatedSwitch, FabricSwitch
        from topologies.mininet.topology import add_fabric

        Mininet.inited = True  # else it changes limits of the whole machine
        with tempfile.NamedTemporaryFile("w", prefix="trainyard-", encoding="utf-8") as file:
            file.write(hosts_file(self.fabric))
            file.flush()
            topology = Topo()
            add_fabric(topology, SwitchPlace(described(self.fabric), self.mtu_bytes), file.name)
            switch = FabricSwitch if self.has_switch_cables else EmulatedSwitch
            self._network = Mininet(topo=topology, switch=switch, controller=None, build=False)
            try:
                self._network.build()
            except NetworkError:
                self.close()
                raise
            except Exception as error:  # Mininet has no errors of its own
                self.close()
                raise NetworkError(f"Mininet: {error}") from error
            except BaseException:
                self.close()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the network, with all programs in hosts."""
        if self._network is not None:
            network, self._network = self._network, None
            network.stop()

    @property
    def wires(self) -> dict[tuple[str, int], str]:
        """The interface at the switch's end of each NIC's cable, by host and number of the NIC."""
        names = interface_names(described(self.fabric))
        links = {(nic.host, nic.index): nic.link for nics in self.fabric.nics.values() for nic in nics}
        ends = {nic: self.fabric.links[link] for nic, link in links.items()}
        return {nic: names[link.destination, link.destination_port] for nic, link in ends.items()}

    @property
    def switch_ends(self) -> dict[tuple[str, int], str]:
        """The interface of each port of a switch that has one, by switch and number of the port."""
        names, wires = interface_names(described(self.fabric)), set(self.wires.values())
        return {
            (node, port): name
            for (node, port), name in names.items()
            if node in self.fabric.switch_index and (self.has_switch_cables or name in wires)
        }

    @property
    def fabric_file(self) -> Path:
        """The file of the namespace of these interfaces, for programs that are started by ``outside``."""
        return Path(self._network.switches[0].place.namespace)

    def interface(self, host: str, nic: int) -> str:
        """Return the name that a NIC's interface has in its host."""
        return str(self._network.get(host).intfs[nic].name)

    def place(self, _host: str) -> None:
        """Return None: programs get into hosts by ``command`` alone."""

    def command(self, host: str, *arguments: str) -> list[str]:
        """Return a command line that runs a command in a host; it ends with the thread that starts it."""
        return ["mnexec", "-a", str(self._network.get(host).pid), *with_descendants(), *arguments]

    def outside(self, *arguments: str) -> list[str]:
        """Return a command line that runs a command outside all hosts, where it may use ``fabric_file``."""
        return [*alone(), *arguments]

    def in_fabric(self, *arguments: str) -> list[str]:
        """Return a command line that runs a command in the namespace with the switches' ends of all cables."""
        inside: list[str] = self._network.switches[0].place.inside(*arguments)
        return inside

    def frame_bytes(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Return the bytes that each NIC has sent and received so far, as interfaces count them.

        Raises:
            NetworkError: An interface is gone, or the node of the switches has been ended by somebody else.
        """
        return frame_bytes(self.fabric_file.parent.parent / "net/dev", self.wires)
