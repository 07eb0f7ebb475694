"""Run inside private namespaces: makes the hosts of a run with Mininet, says what they have, and waits to be ended."""

import json
import subprocess
import sys

from emulator.interfaces import Interfaces
from topologies.clos import DumbbellSpecification
from topologies.mininet.mininet_namespaces import MininetNamespaces

FABRIC = DumbbellSpecification(kind="dumbbell", hosts_per_side=1, host_link_gbps=0.1, bottleneck_gbps=0.1).build()


def _run(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


with MininetNamespaces(FABRIC) as namespaces:
    interfaces = Interfaces(namespaces.fabric_file)
    before = namespaces.frame_bytes()
    _run(namespaces.command("h0", "ping", "-c", "1", "-W", "0.1", "h1"))
    said = {
        "name": _run(namespaces.command("h0", "getent", "hosts", "h1")).split(),
        "route": _run(namespaces.command("h0", "ip", "route", "get", "10.0.1.1")).split()[:5],
        "is_up": interfaces.is_up("t0-eth1"),
        "mtu_bytes": interfaces.mtu_bytes("t0-eth1"),
        "has_sent": namespaces.frame_bytes()["h0", 0][0] > before["h0", 0][0],
        "interface": namespaces.interface("h0", 0),
        "wires": sorted(namespaces.wires.values()),
        "outside": _run(namespaces.outside("readlink", str(namespaces.fabric_file))).startswith("net:"),
    }
    # One that waits, and one that has left its parents behind.
    running = subprocess.Popen(namespaces.command("h0", "sh", "-c", "setsid sleep 4712 & sleep 4712"))
    print(json.dumps(said), flush=True)
    sys.stdin.read()
