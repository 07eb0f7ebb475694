"""Two network namespaces over two emulated switches and their controller; h0 pings h1. No root is needed.

Run it from the checkout: ``python docs/examples/namespaces.py``.
"""

import subprocess
import sys

from topologies.namespaces.fabric_namespaces import FabricNamespaces
from topologies.specification import DumbbellSpecification

# That of the two files.
FABRIC = DumbbellSpecification(kind="dumbbell", hosts_per_side=1, host_link_gbps=0.2, bottleneck_gbps=0.2).build()
EMULATOR = ("emulator", "--topology", "docs/examples/real-hosts-fabric.yaml")
CONTROLLER = ("controller", "--config", "docs/examples/real-hosts-controller.yaml")
TRAINYARD = (sys.executable, "-m", "trainyard")


def main() -> None:
    """Make the namespaces, join them by emulated switches, and ping."""
    with FabricNamespaces(FABRIC, mtu_bytes=1500) as namespaces:
        wires = [f"--wire={host}.{nic}={interface}" for (host, nic), interface in namespaces.wires.items()]
        place = ("--netns", str(namespaces.fabric_file))
        emulator = subprocess.Popen(namespaces.outside(*TRAINYARD, *EMULATOR, *place, *wires))
        controller = subprocess.Popen([*TRAINYARD, *CONTROLLER])
        try:
            # It pings until three answers have come: the controller has to write base routing first.
            subprocess.run(namespaces.command("h0", "ping", "-c", "3", "-w", "300", "h1"), check=True)
        finally:
            for process in (controller, emulator):
                process.terminate()
                process.wait()


if __name__ == "__main__":
    main()
