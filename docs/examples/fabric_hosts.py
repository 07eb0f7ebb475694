"""Hosts of a fabric file as network namespaces over emulated switches, each with an agent, until Ctrl-C.

Run it from the checkout; its controller runs beside it, and listens at a Unix socket, which all namespaces reach:

    python docs/examples/fabric_hosts.py docs/examples/rack.yaml --controller unix:/tmp/trainyard.sock
"""

import signal
import subprocess
import sys
from argparse import ArgumentParser
from contextlib import suppress
from pathlib import Path

from topologies.namespaces.fabric_namespaces import FabricNamespaces
from workloads.loading import load_topology

TRAINYARD = (sys.executable, "-m", "trainyard")


def main() -> None:
    """Make the namespaces, start the switches and the agents, and wait for the end."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("fabric", type=Path, help="fabric file")
    parser.add_argument("--controller", required=True, help="unix:/PATH at which the controller listens")
    parser.add_argument("--listen", default="127.0.0.1:9559", help="HOST:PORT of the emulated switches")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    fabric = load_topology(options.fabric).build()
    with FabricNamespaces(fabric) as namespaces, suppress(KeyboardInterrupt):
        for host, name in namespaces.names.items():
            print(f"{host} is the namespace {name}", flush=True)
        wires = [f"--wire={host}.{nic}={interface}" for (host, nic), interface in namespaces.wires.items()]
        emulator = (*TRAINYARD, "emulator", "--topology", str(options.fabric), "--listen", options.listen)
        started = [subprocess.Popen(namespaces.outside(*emulator, "--netns", str(namespaces.fabric_file), *wires))]
        try:
            for host, nics in fabric.nics.items():
                given = [
                    f"--nic={namespaces.interface(host, nic.index)}@{fabric.links[nic.link].rate_bps / 1e9:g}"
                    for nic in nics
                ]
                agent = (*TRAINYARD, "agent", "--host", host, "--controller", options.controller, *given)
                started.append(subprocess.Popen(namespaces.command(host, *agent)))
            started[0].wait()
        finally:
            for process in started:
                process.terminate()
            for process in started:
                process.wait()


if __name__ == "__main__":
    main()
