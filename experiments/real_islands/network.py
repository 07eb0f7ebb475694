"""A fabric with real hosts and a controller, for islands: namespaces, the emulator, and one policy at a time."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from controller.config import ControllerConfig, SwitchAddress
from experiments.scenarios.backend import RunError
from experiments.scenarios.controller_process import ControllerProcess
from experiments.scenarios.real_hosts.emulator_process import EmulatorProcess
from runtime.substrates.interface import NetworkHost
from topologies.namespaces.fabric_namespaces import FabricNamespaces
from topologies.namespaces.host_network import NetworkError
from topologies.specification import DumbbellSpecification

_CONNECTED_WITHIN_S = 60


@dataclass(frozen=True, slots=True)
class IslandsNetwork:
    """Where a controller listens, and the hosts of the fabric in order, as the runtime takes them."""

    controller: str
    hosts: dict[int, NetworkHost]


@asynccontextmanager
async def islands_network(specification: DumbbellSpecification, policy: str) -> AsyncIterator[IslandsNetwork]:
    """Serve a fabric whose controller ranks by a policy.

    Raises:
        RunError: This machine makes no hosts, or they do not reach each other.
    """
    built = specification.build()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trainyard-islands-")))
        try:
            namespaces = stack.enter_context(FabricNamespaces(built))
        except NetworkError as error:
            raise RunError(f"hosts of the islands: {error}") from error
        losses: list[str] = []
        emulator = await stack.enter_async_context(
            EmulatorProcess(built, namespaces, is_real_time=False, on_loss=losses.append)
        )
        switches = tuple(
            SwitchAddress(name=name, address=emulator.address, device_id=number)
            for number, name in enumerate(built.switches, start=1)
        )
        config = ControllerConfig(
            listen=f"unix:{folder}/controller", topology=specification, switches=switches, policy=policy
        )
        controller = await stack.enter_async_context(ControllerProcess(config))
        names = list(built.hosts)
        await _connected(namespaces.command(names[0], *_ping(names[-1])), names)
        yield IslandsNetwork(
            controller.address,
            {
                number: NetworkHost(name, f"10.0.{number}.1", tuple(namespaces.command(name)))
                for number, name in enumerate(names)
            },
        )
        if losses:
            raise RunError(f"the emulator was lost: {losses[0]}")


def _ping(host: str) -> tuple[str, ...]:
    return "ping", "-c", "1", "-w", str(_CONNECTED_WITHIN_S), host


async def _connected(ping: list[str], names: list[str]) -> None:
    """Wait until the controller has written base routing: no ping is answered before."""
    process = await asyncio.create_subprocess_exec(
        *ping, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    if await process.wait():
        raise RunError(f"{names[0]} does not reach {names[-1]} within {_CONNECTED_WITHIN_S} s")
