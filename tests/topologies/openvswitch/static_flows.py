"""Flow entries that forward by destination, for fabrics of Open vSwitch without a controller."""

from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.openvswitch.fabric_switches import OpenVSwitchFabric
from topologies.routing import Routing


def add_static_flows(fabric: Fabric, switches: OpenVSwitchFabric) -> None:
    """Forward every NIC's packets along its first path."""
    routing = Routing(fabric, hash_multipliers(fabric.switches, 1))
    for switch, bridge in switches.bridges.items():
        for nics in fabric.nics.values():
            for nic in nics:
                port = fabric.links[routing.next_links(switch, nic)[0]].source_port
                entry = f"ip,nw_dst={nic.address},actions=dec_ttl,mod_dl_dst={nic.mac},output:{port}"
                switches.daemons(switch).ofctl("add-flow", bridge.name, entry)
