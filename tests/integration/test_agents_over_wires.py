"""Agents of two real hosts probe through emulated switches, and the controller learns paths and loads from them.

Hosts and fabric share nothing but cables: the agents reach the controller at its Unix socket.
"""

import asyncio
import json
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from controller.config import ControllerConfig
from controller.switch_addresses import SwitchAddress
from experiments.scenarios.controller_process import ControllerProcess
from hostlib import Client, Flow, FlowGroup, Job, Nic, Profile
from tests.docs.pages import ROOT
from tests.namespaces import Namespaces, namespaces
from tests.patience import PATIENCE_S
from trainyard.cli.application import application
from workloads.loading import load_topology

pytestmark = pytest.mark.slow

FABRIC = ROOT / "docs/examples/real-hosts-fabric.yaml"
HOSTS = ("h0", "h1")
BOTH_WAYS = FlowGroup("both ways", (Flow(Nic("h0"), Nic("h1"), 10**6), Flow(Nic("h1"), Nic("h0"), 10**6)))
JOB = Job("gpt", HOSTS, 16, Profile(compute_s=1.0, comm_start=0.5, work=16.0))
MEASURED = {("t0", "t1"), ("t1", "h1"), ("t1", "t0"), ("t0", "h0")}
"""Links that probes of both directions leave a switch by."""
TRAFFIC = """
import socket, time

sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, 11, 1)  # SO_NO_CHECK: the cable has no hardware to compute checksums
while True:
    sender.sendto(bytes(1000), ("10.0.1.1", 9))
    time.sleep(0.001)
"""
BUSY_BPS = 1e6
"""Far more than probes alone."""

Rows = list[dict[str, Any]]


def cable_hosts(made: Namespaces) -> None:
    """Give each host its cable to the fabric, and what it needs to send there without ARP."""
    for number, host in enumerate(HOSTS):
        made.cable(("fabric", f"f{number}"), (host, "eth0"))
        made.ip(host, "link", "set", "eth0", "address", f"02:00:00:00:0{number}:01")
        made.ip(host, "address", "add", f"10.0.{number}.1/32", "dev", "eth0")
        gateway = ("10.255.255.254", "dev", "eth0")
        made.ip(host, "neighbour", "add", *gateway, "lladdr", "06:00:00:00:00:01", "nud", "permanent")
        made.ip(host, "route", "add", "10.0.0.0/8", "via", *gateway, "onlink")


@asynccontextmanager
async def running(*command: str, status: int = 0) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a command until the context ends; SIGTERM then has to end it with this status."""
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        yield process
        process.terminate()
        assert await process.wait() == status
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def emulator(made: Namespaces) -> AsyncIterator[tuple[SwitchAddress, ...]]:
    """Run the switches, with the hosts' cables as wires."""
    wires = (word for number, host in enumerate(HOSTS) for word in ("--wire", f"{host}.0=f{number}"))
    options = ("--topology", str(FABRIC), "--listen", "127.0.0.1:0", "--netns", made.full_name("fabric"), *wires)
    async with running(sys.executable, "-m", "trainyard", "emulator", *options) as process:
        yield await served_switches(process, 2)


async def served_switches(process: asyncio.subprocess.Process, number: int) -> tuple[SwitchAddress, ...]:
    """The switches that an emulator prints once it serves them."""
    assert process.stdout is not None
    switches: list[SwitchAddress] = []
    while len(switches) < number:
        line = (await process.stdout.readline()).decode()
        assert line, "the emulator has ended"
        if row := re.fullmatch(r"\s*(\d+)\s+(\S+)\s+(\S+:\d+)\s*", line):
            switches.append(SwitchAddress(name=row[2], address=row[3], device_id=int(row[1])))
    return tuple(switches)


async def shown(what: str, address: str, holds: Callable[[Rows], bool]) -> Rows:
    """Return what ``trainyard show`` shows once it holds."""
    while True:
        asked = await asyncio.to_thread(
            CliRunner().invoke, application, ["show", what, "--json", "--controller", address]
        )
        rows: Rows = json.loads(asked.stdout)[what]
        if holds(rows):
            return rows
        await asyncio.sleep(0.2)


def fresh_paths(pairs: Rows) -> set[tuple[str, ...]]:
    return {
        tuple(candidate["path"]["nodes"])
        for pair in pairs
        for candidate in pair["candidates"]
        if candidate["freshness"] == "FRESH"
    }


def loads(links: Rows) -> dict[tuple[str, str], float]:
    return {(link["source"], link["destination"]): link["load_bps"] for link in links}


def test_probes_cross_the_emulated_switches_and_show_paths_and_loads(tmp_path: Path) -> None:
    async def scenario(made: Namespaces) -> None:
        async with emulator(made) as switches, AsyncExitStack() as stack:
            config = ControllerConfig(
                listen=f"unix:{tmp_path / 'controller.sock'}",
                topology=load_topology(FABRIC),
                switches=switches,
                agents=True,
            )
            controller = await stack.enter_async_context(ControllerProcess(config))
            for host in HOSTS:
                options = ("--host", host, "--nic", "eth0@0.2", "--controller", controller.address)
                command = made.command(host, sys.executable, "-m", "trainyard", "agent", *options)
                await stack.enter_async_context(running(*command))
            client = await stack.enter_async_context(Client(controller.address))
            client.register_job(JOB)
            client.register_flow_groups(JOB.name, [BOTH_WAYS])
            there = ("h0", "t0", "t1", "h1")
            await shown("candidates", controller.address, lambda pairs: fresh_paths(pairs) == {there, there[::-1]})
            await shown("loads", controller.address, lambda links: loads(links).keys() == MEASURED)
            traffic = made.command("h0", sys.executable, "-c", TRAFFIC)
            await stack.enter_async_context(running(*traffic, status=-signal.SIGTERM))
            await shown("loads", controller.address, lambda links: loads(links)["t0", "t1"] > BUSY_BPS)

    with namespaces("fabric", *HOSTS) as made:
        cable_hosts(made)
        asyncio.run(asyncio.wait_for(scenario(made), PATIENCE_S))


def test_the_example_starts_hosts_switches_and_agents_of_a_fabric_file(tmp_path: Path) -> None:
    """It ends by SIGTERM, and takes everything with it."""
    rack, address = ROOT / "docs/examples/rack.yaml", f"unix:{tmp_path / 'controller.sock'}"
    command = (sys.executable, str(ROOT / "docs/examples/fabric_hosts.py"), str(rack), "--controller", address)
    nics = Nic("gpu-1"), Nic("gpu-3")

    async def scenario() -> None:
        async with running(*command, "--listen", "127.0.0.1:0") as process:
            topology, switches = load_topology(rack), await served_switches(process, 4)
            config = ControllerConfig(listen=address, topology=topology, switches=switches, agents=True)
            async with ControllerProcess(config), Client(address) as client:
                client.register_job(Job("gpt", ("gpu-1", "gpu-3"), 2, Profile(compute_s=1.0, comm_start=0.5, work=2.0)))
                client.register_flow_groups("gpt", [FlowGroup("there", (Flow(*nics, 10**6),))])
                paths = {("gpu-1", "leaf-1", spine, "leaf-2", "gpu-3") for spine in ("spine-1", "spine-2")}
                await shown("candidates", address, lambda pairs: fresh_paths(pairs) == paths)

    with namespaces("fabric"):
        asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
