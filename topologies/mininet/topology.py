"""The fabric of a topology file as a topology of Mininet."""

import re
from typing import Any

from mininet.topo import Topo

from topologies.mininet.cables import Cable
from topologies.mininet.emulator import Emulator
from topologies.mininet.nodes import FabricHost
from topologies.mininet.programs import ask
from topologies.namespaces.host_network import DEFAULT_MTU_BYTES, HostNic, NetworkError

_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
_LONGEST_INTERFACE = 15


class FabricTopo(Topo):
    """The fabric of a topology file, as ``mn --topo trainyard,FILE`` names it."""

    def build(self, file: str, mtu: int = DEFAULT_MTU_BYTES) -> None:
        """Describe the network to Mininet.

        Args:
            file: YAML with a ``topology:``.
            mtu: The longest IP packet in bytes.

        Raises:
            NetworkError: Trainyard refuses the file, or Mininet cannot have a name.
        """
        add_fabric(self, ask("topology", file), Emulator(file), mtu)


def add_fabric(
    topology: Topo, described: dict[str, Any], emulator: Emulator, mtu_bytes: int, hosts_file: str | None = None
) -> None:
    """Add the hosts, switches and cables of a fabric to a topology of Mininet, by their names in the fabric.

    Args:
        topology: Where to add them.
        described: The fabric, as ``topologies.description`` has it.
        emulator: What runs the switches.
        mtu_bytes: The longest IP packet.
        hosts_file: What hosts have as ``/etc/hosts``, without a name server; None: the machine's.

    Raises:
        NetworkError: Mininet cannot have a name.
    """
    for host in described["hosts"]:
        nics = tuple(
            HostNic(f"{host['name']}-eth{number}", nic["mac"], nic["address"], nic["rate_bps"], mtu_bytes)
            for number, nic in enumerate(host["nics"])
        )
        _require_usable(host["name"], len(nics) - 1)
        topology.addHost(host["name"], cls=FabricHost, nics=nics, hosts_file=hosts_file)
    for switch in described["switches"]:
        _require_usable(switch["name"], switch["num_ports"])
        topology.addSwitch(switch["name"], dpid=f"{switch['device_id']:x}", emulator=emulator)
    for cable in described["cables"]:
        (node1, port1), (node2, port2) = cable["ends"]
        topology.addLink(node1, node2, port1, port2, cls=Cable, mtu_bytes=mtu_bytes)


def _require_usable(name: str, last_port: int) -> None:
    if not _PLAIN.fullmatch(name) or len(f"{name}-eth{last_port}") > _LONGEST_INTERFACE:
        raise NetworkError(
            f"{name!r} cannot be a node of Mininet: expected letters, digits, '_', '.' and '-', and at most"
            f" {_LONGEST_INTERFACE} characters for an interface such as {name}-eth{last_port}"
        )
