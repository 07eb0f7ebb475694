"""Real hosts of a topology over the emulator, under a controller that writes base routing, for measurements."""

import asyncio
import json
import logging
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from ipaddress import IPv4Address
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.real_hosts import host_traffic
from benchmarks.real_hosts.processes import processor_s
from controller.config import ControllerConfig
from controller.switch_addresses import SwitchAddress
from emulator.real_time import free_core
from experiments.scenarios.controller_process import ControllerProcess
from experiments.scenarios.real_hosts.emulator_process import EmulatorProcess
from topologies.namespaces.fabric_namespaces import FabricNamespaces
from topologies.namespaces.host_network import DEFAULT_MTU_BYTES
from topologies.specification import Topology

_LOG = logging.getLogger(__name__)


class WiredHosts:
    """The hosts, as an async context manager; on entry the first one reaches all others.

    Args:
        topology: The fabric, at rates that the machine carries.
        mtu_bytes: The longest IP packet.
        is_real_time: Whether the emulator is to ask for real-time priority.
    """

    def __init__(self, topology: Topology, *, mtu_bytes: int = DEFAULT_MTU_BYTES, is_real_time: bool) -> None:
        self.fabric = topology.build()
        self._topology = topology
        self._is_real_time = is_real_time
        self.namespaces = FabricNamespaces(self.fabric, mtu_bytes, receiving_core=free_core() if is_real_time else None)
        self._emulator: EmulatorProcess
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="trainyard-"))
            stack.enter_context(self.namespaces)
            emulator = EmulatorProcess(
                self.fabric, self.namespaces, is_real_time=self._is_real_time, on_loss=_LOG.error
            )
            self._emulator = await stack.enter_async_context(emulator)
            switches = tuple(
                SwitchAddress(name=name, address=emulator.address, device_id=device_id)
                for name, device_id in self.fabric.device_ids.items()
            )
            listen = f"unix:{Path(folder, 'controller.sock')}"
            config = ControllerConfig(listen=listen, topology=self._topology, switches=switches, policy="ecmp")
            await stack.enter_async_context(ControllerProcess(config))
            first, *others = self.fabric.hosts
            await self.run(first, "reach", *map(self.address, others))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def address(self, host: str) -> str:
        """Return the address of a host's first NIC."""
        return str(IPv4Address(self.fabric.nics[host][0].address))

    async def run(self, host: str, *arguments: object) -> dict[str, Any]:
        """Run ``host_traffic.py`` in a host and return what it prints. Raises RuntimeError where it fails."""
        program = (sys.executable, "-I", "-S", host_traffic.__file__, *map(str, arguments))
        process = await asyncio.create_subprocess_exec(
            *self.namespaces.command(host, *program), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        printed, complaint = await process.communicate()
        if process.returncode:
            raise RuntimeError(f"{arguments[0]} at {host} has failed: {complaint.decode(errors='replace').strip()}")
        found: dict[str, Any] = json.loads(printed)
        return found

    async def emulator_cores(self, begin_s: float, end_s: float) -> float:
        """Return how many cores the emulator takes between two times of the machine's monotonic clock."""
        await asyncio.sleep(begin_s - time.monotonic())
        before_s, from_s = processor_s(self._emulator.pid), time.monotonic()
        await asyncio.sleep(end_s - from_s)
        return (processor_s(self._emulator.pid) - before_s) / (time.monotonic() - from_s)
