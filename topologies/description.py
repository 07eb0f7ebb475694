"""A fabric in words that JSON has, for programs that cannot read topology files."""

from typing import Any

from topologies.fabric import Fabric
from topologies.namespaces.host_nics import host_nics


def described(fabric: Fabric) -> dict[str, Any]:
    """Return the hosts, switches and cables of a fabric, with ports as switches number them and ids as P4Runtime does.

    A cable's ends are pairs of a node and its port; a host's ports are its NICs.
    """
    return {
        "hosts": [
            {
                "name": host,
                "nics": [
                    {"mac": nic.mac, "address": nic.address, "rate_bps": nic.rate_bps}
                    for nic in host_nics(fabric, host, "eth", mtu_bytes=0)
                ],
            }
            for host in fabric.hosts
        ],
        "switches": [
            {"name": switch, "device_id": device_id, "num_ports": len(fabric.links_from[switch])}
            for switch, device_id in fabric.device_ids.items()
        ],
        "cables": [
            {
                "ends": [[link.source, link.source_port], [link.destination, link.destination_port]],
                "rate_bps": link.rate_bps,
            }
            for link in fabric.links[::2]
        ],
    }
