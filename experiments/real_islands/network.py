"""A fabric with real hosts and a controller, for islands: namespaces, the emulator, and one policy at a time."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from controller.config import ControllerConfig
from controller.switch_addresses import SwitchAddress
from experiments.scenarios.backend import RunError
from experiments.scenarios.controller_process import ControllerProcess
from experiments.scenarios.real_hosts.emulator_process import EmulatorProcess
from runtime.substrates.interface import NetworkHost
from topologies.fabric import Fabric
from topologies.namespaces.fabric_namespaces import FabricNamespaces
from topologies.namespaces.host_network import NetworkError
from topologies.specification import Topology

_CONNECTED_WITHIN_S = 60


@dataclass(frozen=True, slots=True)
class IslandsNetwork:
    """A controller, the switches of ``fabric``, and its hosts in order, as the runtime takes them."""

    hosts: dict[int, NetworkHost]
    fabric: Fabric
    process: ControllerProcess
    emulator: EmulatorProcess

    @property
    def controller(self) -> str:
        """Where the controller listens."""
        return self.process.address

    def want_cut_off(self, hosts: Collection[str]) -> None:
        """Take the links of these hosts down, and bring those of all others up, in a moment."""
        links = self.fabric.links
        ends = ((number, {link.source, link.destination}) for number, link in enumerate(links))
        self.emulator.want_links_down(frozenset(number for number, end in ends if not end.isdisjoint(hosts)))


@asynccontextmanager
async def islands_network(specification: Topology, policy: str) -> AsyncIterator[IslandsNetwork]:
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
            SwitchAddress(name=name, address=emulator.address, device_id=device_id)
            for name, device_id in built.device_ids.items()
        )
        config = ControllerConfig(
            listen=f"unix:{folder}/controller", topology=specification, switches=switches, policy=policy
        )
        controller = await stack.enter_async_context(ControllerProcess(config))
        names = list(built.hosts)
        await _connected(namespaces.command(names[0], *_ping(names[-1])), names)
        yield IslandsNetwork(
            {
                number: NetworkHost(name, str(built.nics[name][0].address), tuple(namespaces.command(name)))
                for number, name in enumerate(names)
            },
            built,
            controller,
            emulator,
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
