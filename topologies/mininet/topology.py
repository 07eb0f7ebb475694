"""The fabric of a topology file as a topology of Mininet."""

import re

from mininet.topo import Topo

from topologies.mininet.cables import Cable
from topologies.mininet.interfaces import interface_names
from topologies.mininet.nodes import FabricHost
from topologies.mininet.programs import ask
from topologies.mininet.switch_place import SwitchPlace
from topologies.namespaces.host_network import DEFAULT_MTU_BYTES, HostNic, NetworkError

_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")


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
        add_fabric(self, SwitchPlace(ask("topology", file), mtu, file))


def add_fabric(topology: Topo, place: SwitchPlace, hosts_file: str | None = None) -> None:
    """Add the hosts, switches and cables of a fabric to a topology of Mininet, by their names in the fabric.

    Args:
        topology: Where to add them.
        place: Where its switches are.
        hosts_file: What hosts have as ``/etc/hosts``, without a name server; None: the machine's.

    Raises:
        NetworkError: Mininet cannot have a name.
    """
    described = place.described
    names = interface_names(described)
    for host in described["hosts"]:
        nics = tuple(
            HostNic(names[host["name"], number], nic["mac"], nic["address"], nic["rate_bps"], place.mtu_bytes)
            for number, nic in enumerate(host["nics"])
        )
        _require_usable(host["name"])
        topology.addHost(host["name"], cls=FabricHost, nics=nics, hosts_file=hosts_file)
    for switch in described["switches"]:
        _require_usable(switch["name"])
        topology.addSwitch(switch["name"], dpid=f"{switch['device_id']:x}", place=place)
    for cable in described["cables"]:
        (node1, port1), (node2, port2) = cable["ends"]
        interfaces = {"intfName1": names[node1, port1], "intfName2": names[node2, port2]}
        topology.addLink(node1, node2, port1, port2, cls=Cable, mtu_bytes=place.mtu_bytes, **interfaces)


def _require_usable(name: str) -> None:
    if not _PLAIN.fullmatch(name):
        raise NetworkError(f"{name!r} cannot be a node of Mininet: expected letters, digits, '_', '.' and '-'")
