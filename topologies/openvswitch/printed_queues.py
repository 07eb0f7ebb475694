"""The queues of an Open vSwitch as a shell script, for operators who run switches of their own."""

from topologies.fabric import Fabric
from topologies.namespaces.host_network import DEFAULT_MTU_BYTES, queue_commands
from topologies.openvswitch.bridges import is_interface_name
from topologies.openvswitch.port_queues import USUAL_BUFFER_BYTES, port_queue
from topologies.printable import printable
from topologies.sonic_qos import UnnamedPortError


def openvswitch_queues(fabric: Fabric, switch: str) -> str:
    """Return a script that gives the ports of a switch that have cables their rate and eight queues, by DSCP.

    A packet of DSCP class n waits in queue n, whatever its lower bits say. Queue 7 is served first. The names of ports
    are those of their interfaces. The script may run again, and has to after a start of the machine.

    Raises:
        UnnamedPortError: The fabric does not say what a port is called, or by a name that no interface has.
    """
    links = fabric.links_from[switch]
    names = fabric.port_names[switch]
    for link in links:
        if not is_interface_name(names.get(link.source_port, "")):
            raise UnnamedPortError(switch, link.source_port, "Open vSwitch")
    queue = port_queue(DEFAULT_MTU_BYTES, USUAL_BUFFER_BYTES)
    lines = [
        "#!/bin/sh -e",
        f"# {printable(switch)}: eight queues by DSCP at every port, 7 served first, for packets of up to",
        f"# {DEFAULT_MTU_BYTES} bytes. Queues are short, as ports of the userspace datapath send from one buffer of",
        f"# {USUAL_BUFFER_BYTES} bytes (net.core.wmem_default).",
        "# Open vSwitch leaves queues alone (linux-noop).",
    ]
    for link in links:
        port = names[link.source_port]
        lines.append(f"ovs-vsctl -- --id=@none create qos type=linux-noop -- set port {port} qos=@none")
        lines.append(f"tc qdisc delete dev {port} root 2>/dev/null || :")
    lines.append("tc -batch - <<'END'")
    for link in links:
        lines += queue_commands(names[link.source_port], link.rate_bps, DEFAULT_MTU_BYTES, queue)
    return "\n".join((*lines, "END", ""))
