"""The NICs of a fabric's hosts, as their network namespaces have them."""

from ipaddress import IPv4Address

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
            ":".join(f"{octet:02x}" for octet in nic.mac.to_bytes(6, "big")),
            str(IPv4Address(nic.address)),
            fabric.links[nic.link].rate_bps,
            mtu_bytes,
        )
        for nic in fabric.nics[host]
    ]
