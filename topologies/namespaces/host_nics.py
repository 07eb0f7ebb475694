"""The NICs of a fabric's hosts, as their network namespaces have them."""

from topologies.fabric import Fabric
from topologies.namespaces.host_network import HostNic


def host_nics(fabric: Fabric, host: str, interfaces: str, mtu_bytes: int) -> list[HostNic]:
    """Return the NICs of a host in order.

    Args:
        fabric: The fabric.
        host: Name of the host.
        interfaces: What the name of an interface begins with; the number of its NIC follows.
        mtu_bytes: The longest IP packet.
    """
    return [
        HostNic(
            f"{interfaces}{nic.index}",
            None if nic.mac is None else str(nic.mac),
            str(nic.address),
            fabric.links[nic.link].rate_bps,
            mtu_bytes,
        )
        for nic in fabric.nics[host]
    ]
