"""The fabric of a topology file as a topology of Mininet."""

import re
from typing import Any

from mininet.topo import Topo

from topologies.mininet.cables import Cable
from topologies.mininet.nodes import FabricHost
from topologies.mininet.programs import ask
from topologies.mininet.switches import Emulator
from topologies.namespaces.host_network import HostNic, NetworkError

DEFAULT_MTU_BYTES = 9000
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
_LONGEST_INTERFACE = 15


class FabricTopo(Topo):
    """Hosts, switches and cables of a topology file, by their names there."""

    def build(self, file: str, mtu: int = DEFAULT_MTU_BYTES) -> None:
        """Describe the network to Mininet.

        Args:
            file: YAML with a ``topology:``.
            mtu: The longest IP packet in bytes.

        Raises:
            NetworkError: Trainyard refuses the file, or Mininet cannot have a name.
        """
        described = ask("topology", file)
        emulator = Emulator(file)
        for host in described["hosts"]:
            nics = tuple(
                HostNic(f"{host['name']}-eth{number}", nic["mac"], nic["address"], nic["rate_bps"], mtu)
                for number, nic in enumerate(host["nics"])
            )
            self._require_usable(host["name"], len(nics) - 1)
            self.addHost(host["name"], cls=FabricHost, nics=nics)
        for switch in described["switches"]:
            self._require_usable(switch["name"], switch["num_ports"])
            self.addSwitch(switch["name"], dpid=f"{switch['device_id']:x}", emulator=emulator)
        for cable in described["cables"]:
            (node1, port1), (node2, port2) = cable["ends"]
            self.addLink(node1, node2, port1, port2, cls=Cable, mtu_bytes=mtu)

    def _require_usable(self, name: str, last_port: int) -> None:
        if not _PLAIN.fullmatch(name) or len(f"{name}-eth{last_port}") > _LONGEST_INTERFACE:
            raise NetworkError(
                f"{name!r} cannot be a node of Mininet: expected letters, digits, '_', '.' and '-', and at most"
                f" {_LONGEST_INTERFACE} characters for an interface such as {name}-eth{last_port}"
            )
