"""The NICs of a fabric's hosts, as their network namespaces have them."""

from topologies.fabric import Fabric
from topologies.namespaces.host_network import HostNic


def host_nics(fabric: Fabric, host: str, interfaces: str, mtu_bytes: int, *, are_plain: bool = False) -> list[HostNic]:
    """Return the NICs of a host in order.

    Args:
        fabric: The fabric.
        host: Name of the host.
        interfaces: What the name of an interface begins with; the number of its NIC follows.
        mtu_bytes: The longest IP packet.
        are_plain: Whether they have the addresses of their subnets, and nothing else.
    """
    return [
        HostNic(
            f"{interfaces}{nic.index}",
            None if nic.mac is None else str(nic.mac),
            str(nic.address),
            fabric.links[nic.link].rate_bps,
            mtu_bytes,
            nic.subnet.length if are_plain else None,
        )
        for nic in fabric.nics[host]
    ]
