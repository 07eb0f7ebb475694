"""Ordinary hosts reach each other: the controller finds out their MACs by ARP, and answers theirs.

No host has a neighbour that somebody has written down, and the fabric file has no MAC. TCP shows that frames come to a
NIC's own address: what comes by broadcast, the kernel does not take for TCP.
"""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from controller.config import ControllerConfig
from controller.switch_addresses import SwitchAddress
from experiments.scenarios.controller_process import ControllerProcess
from tests.integration.test_agents_over_wires import running
from tests.namespaces import Namespaces, namespaces
from tests.patience import PATIENCE_S
from workloads.loading import load_topology

pytestmark = pytest.mark.slow

HOSTS = {"h1": "192.168.7.11/26", "h2": "192.168.7.12/26", "h3": "172.16.5.9/24"}
FILE = """
topology:
  kind: fabric
  hosts:
    - {name: h1, nics: [{name: ens1, address: 192.168.7.11/26}]}
    - {name: h2, nics: [{name: ens1, address: 192.168.7.12/26}]}
    - {name: h3, nics: [{name: ens1, address: 172.16.5.9/24}]}
  switches:
    - {name: leaf-a, device_id: 1, ports: [{name: Ethernet0, number: 130}, {name: Ethernet4, number: 134}]}
    - {name: leaf-b, device_id: 2, ports: [{name: e1, number: 7}, {name: e2, number: 8}, {name: e3, number: 9}]}
  cables:
    - {ends: ["h1:ens1", "leaf-a:Ethernet0"], gbps: 0.2}
    - {ends: ["h2:ens1", "leaf-b:e1"], gbps: 0.2}
    - {ends: ["h3:ens1", "leaf-b:e2"], gbps: 0.2}
    - {ends: ["leaf-a:Ethernet4", "leaf-b:e3"], gbps: 0.2}
"""
OFFLOADS_OFF = "from topologies.namespaces.host_network import set_offloads_off; set_offloads_off('ens1')"
ANSWER = """
import socket
with socket.create_server(("", 5000)) as listening:
    while True:
        with listening.accept()[0] as connection:
            connection.sendall(connection.getpeername()[0].encode())
"""
ASK = """
import socket, sys, time
while True:
    try:
        with socket.create_connection((sys.argv[1], 5000), timeout=1) as connection:
            print(connection.recv(100).decode())
            break
    except OSError:
        time.sleep(0.1)
"""


@asynccontextmanager
async def emulator(made: Namespaces, file: Path) -> AsyncIterator[tuple[SwitchAddress, ...]]:
    """Run the switches, with the hosts' cables as wires."""
    wires = (word for host in HOSTS for word in ("--wire", f"{host}.0={host}"))
    options = ("--topology", str(file), "--listen", "127.0.0.1:0", "--netns", made.full_name("fabric"), *wires)
    async with running(sys.executable, "-m", "trainyard", "emulator", *options) as process:
        assert process.stdout is not None
        switches: list[SwitchAddress] = []
        while len(switches) < 2:
            line = (await process.stdout.readline()).decode()
            assert line, "the emulator has ended"
            if row := re.fullmatch(r"\s*(\d+)\s+(\S+)\s+(\S+:\d+)\s*", line):
                switches.append(SwitchAddress(name=row[2], address=row[3], device_id=int(row[1])))
        yield tuple(switches)


def test_hosts_without_neighbours_of_their_own_reach_each_other(tmp_path: Path) -> None:
    file = tmp_path / "fabric.yaml"
    file.write_text(FILE)

    async def scenario(made: Namespaces) -> None:
        async with emulator(made, file) as switches:
            config = ControllerConfig(
                listen=f"unix:{tmp_path / 'controller.sock'}", topology=load_topology(file), switches=switches
            )
            async with ControllerProcess(config):
                for host in HOSTS:
                    answering = await asyncio.create_subprocess_exec(*made.command(host, sys.executable, "-c", ANSWER))
                    ends.append(answering)
                for host, address in HOSTS.items():
                    for other, there in HOSTS.items():
                        if other != host:
                            ask = made.command(host, sys.executable, "-c", ASK, there.partition("/")[0])
                            process = await asyncio.create_subprocess_exec(*ask, stdout=asyncio.subprocess.PIPE)
                            said, _ = await process.communicate()
                            assert said.decode().strip() == address.partition("/")[0]
                neighbours = made.ip("h1", "neighbour", "show", "dev", "ens1")
                assert "PERMANENT" not in neighbours
                assert "192.168.7.12" in neighbours

    ends: list[asyncio.subprocess.Process] = []

    async def with_answers(made: Namespaces) -> None:
        try:
            await asyncio.wait_for(scenario(made), PATIENCE_S)
        finally:
            for process in ends:
                process.kill()
                await process.wait()

    with namespaces("fabric", *HOSTS) as made:
        for host, address in HOSTS.items():
            made.cable(("fabric", host), (host, "ens1"))
            made.run(host, sys.executable, "-c", OFFLOADS_OFF)
            made.ip(host, "address", "add", address, "dev", "ens1")
            subnet, _, _ = address.rpartition(".")
            made.ip(host, "route", "add", "default", "via", f"{subnet}.1", "dev", "ens1")
        asyncio.run(with_answers(made))
