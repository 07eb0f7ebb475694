"""A fabric of running BMv2s in a network namespace, hosts in others, and Trainyard's own processes on all of it.

Hosts reach the controller by a management network beside the fabric, as they do in a cluster.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import yaml

from controller.config import ControllerConfig
from controller.switch_addresses import SwitchAddress
from tests.bmv2.session import CPU_PORT
from tests.namespaces import Namespaces, namespaces
from tests.patience import PATIENCE_S
from topologies.fabric import Fabric, Link
from topologies.specification import Topology

FABRIC = "fabric"
_PORT = 4790
_FIRST_SWITCH_PORT = 9559
_END_S = 10.0

_LOSES_EVERYTHING = ("tbf", "rate", "8kbit", "burst", "10b", "limit", "1000")
"""A token bucket for packets of at most 10 bytes."""


class LiveFabric:
    """Switches, hosts and cables of a topology; agents and a controller where they are asked for."""

    def __init__(self, topology: Topology, made: Namespaces, folder: Path) -> None:
        self.topology = topology
        self.fabric: Fabric = topology.build()
        self._made = made
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []

    def lay_cables(self) -> None:
        """Join switches, hosts and the management network; hosts know each other's addresses."""
        for cable in range(0, len(self.fabric.links), 2):
            link = self.fabric.links[cable]
            self._made.cable(
                self._end(link.source, link.source_port), self._end(link.destination, link.destination_port)
            )
        nics = [nic for nics in self.fabric.nics.values() for nic in nics]
        for number, host in enumerate(self.fabric.nics):
            self._made.cable((FABRIC, f"manage-{host}"), (host, "manage"))
            self._made.ip(FABRIC, "address", "add", f"172.31.{number}.1/30", "dev", f"manage-{host}")
            self._made.ip(host, "address", "add", f"172.31.{number}.2/30", "dev", "manage")
            for own in self.fabric.nics[host]:
                name = f"nic{own.index}"
                self._made.ip(host, "address", "add", f"{IPv4Address(own.address)}/8", "dev", name)
                for other in nics:
                    if other.host != host:
                        mac = other.mac.to_bytes(6, "big").hex(":")
                        neighbour = ("neighbour", "add", str(IPv4Address(other.address)), "lladdr", mac)
                        self._made.ip(host, *neighbour, "dev", name, "nud", "permanent")

    def start_switches(self, command: str) -> None:
        """A BMv2 for each switch, without a pipeline as yet."""
        for number, switch in enumerate(self.fabric.switches):
            ports = [link.source_port for link in self.fabric.links_from[switch]]
            interfaces = [f"--interface={port}@{self._end(switch, port)[1]}" for port in ports]
            general = ["--no-p4", "--device-id", "1", "--log-level", "off", *interfaces]
            target = ["--grpc-server-addr", f"127.0.0.1:{_FIRST_SWITCH_PORT + number}", "--cpu-port", str(CPU_PORT)]
            self.start(FABRIC, command, *general, "--", *target, "--priority-queues", "8")

    def start_controller(self, **settings: Any) -> None:
        """``trainyard controller``, which writes its pipeline and routes to the switches; returns when it listens."""
        addresses = [
            SwitchAddress(name=switch, address=f"127.0.0.1:{_FIRST_SWITCH_PORT + number}")
            for number, switch in enumerate(self.fabric.switches)
        ]
        config = ControllerConfig(
            listen=f"0.0.0.0:{_PORT}",
            insecure=True,
            agents=True,
            topology=self.topology,
            switches=tuple(addresses),
            **settings,
        )
        file = self._folder / "controller.yaml"
        file.write_text(yaml.safe_dump(config.model_dump(mode="json")))
        self.start(FABRIC, sys.executable, "-m", "trainyard", "controller", "--config", str(file))
        self._wait_until(lambda: "listening on " in self._logs()[-1])

    def start_agent(self, host: str, rate_gbps: float) -> subprocess.Popen[bytes]:
        """``trainyard agent`` for a host, which paces itself as if its NICs had this rate."""
        nics = [f"--nic=nic{nic.index}@{rate_gbps}" for nic in self.fabric.nics[host]]
        number = self.fabric.host_index[host]
        options = ["--host", host, *nics, "--controller", f"172.31.{number}.1:{_PORT}"]
        token = ["--owner-token-file", str(self._folder / f"{host}.token")]
        return self.start(host, sys.executable, "-m", "trainyard", "agent", *options, *token)

    def start(self, namespace: str, *command: str) -> subprocess.Popen[bytes]:
        """A process that is ended with the fabric; what it says goes to a file."""
        with self._log(len(self._processes)).open("wb") as log:
            process = subprocess.Popen(self._made.command(namespace, *command), stdout=log, stderr=log)
        self._processes.append(process)
        return process

    def show(self, what: str) -> list[dict[str, Any]]:
        """``trainyard show WHAT --json``."""
        command = (sys.executable, "-m", "trainyard", "show", what, "--json", "--controller", f"127.0.0.1:{_PORT}")
        shown = self._made.run(FABRIC, *command)
        answer: dict[str, list[dict[str, Any]]] = json.loads(shown)
        return answer[what]

    def wait_until_shown(self, what: str, holds: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """Ask until what is shown is so; returns it. Raises AssertionError where it does not become so."""
        shown: list[dict[str, Any]] = []

        def is_so() -> bool:
            nonlocal shown
            shown = self.show(what)
            return holds(shown)

        self._wait_until(is_so)
        return shown

    def cut(self, cable: Link) -> None:
        """Have a cable between switches lose every packet.

        Its interfaces stay up: a BMv2 whose interface goes down neither takes nor sends anything at any, until it is
        up again.
        """
        for interface in self._interfaces(cable):
            self._made.run(FABRIC, "tc", "qdisc", "add", "dev", interface, "root", *_LOSES_EVERYTHING)

    def mend(self, cable: Link) -> None:
        """Undo ``cut``."""
        for interface in self._interfaces(cable):
            self._made.run(FABRIC, "tc", "qdisc", "delete", "dev", interface, "root")

    def end(self) -> None:
        """End every process that was started."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _interfaces(self, cable: Link) -> tuple[str, str]:
        _, one = self._end(cable.source, cable.source_port)
        _, other = self._end(cable.destination, cable.destination_port)
        return one, other

    def _wait_until(self, holds: Callable[[], bool]) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < until_s, f"nothing comes; the processes said {self._logs()}"
            time.sleep(0.2)

    def _logs(self) -> list[str]:
        """The end of what each process has said, in the order in which they were started."""
        return [self._log(number).read_text(errors="replace")[-2000:] for number in range(len(self._processes))]

    def _log(self, number: int) -> Path:
        return self._folder / f"{number}.log"

    def _end(self, node: str, port: int) -> tuple[str, str]:
        """The namespace and name of a port's interface."""
        return (FABRIC, f"{node}-{port}") if node in self.fabric.switch_index else (node, f"nic{port}")


@contextmanager
def live_fabric(topology: Topology, command: str, folder: Path) -> Iterator[LiveFabric]:
    """A fabric of BMv2s for as long as the context lasts; skips the test where there are no namespaces."""
    with namespaces(FABRIC, *topology.build().nics) as made:
        live = LiveFabric(topology, made, folder)
        try:
            live.lay_cables()
            live.start_switches(command)
            yield live
        finally:
            live.end()
