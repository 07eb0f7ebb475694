"""Islands on hosts of an emulated fabric, for tests that do not run in a loop of their own."""

import asyncio
import threading
from collections.abc import Collection, Coroutine, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import pytest

import runtime as rt
from experiments.real_islands.network import IslandsNetwork, islands_network
from experiments.scenarios.backend import RunError
from tests.patience import PATIENCE_S
from topologies.specification import DumbbellSpecification

HOSTS = ("h0", "h2", "h1", "h3")
"""By the number of the island that each is."""
LINK_GBPS = 0.2
"""What a machine of two cores carries beside the hosts."""


class Islands:
    """A fabric of four hosts with a controller, whose parts fail when a test wants it."""

    def __init__(self, network: IslandsNetwork, loop: asyncio.AbstractEventLoop) -> None:
        self.network = network
        self._loop = loop

    def runtime(self, **given: Any) -> rt.LocalRuntime:
        """A runtime with an island on each host. Islands that follow each other are on either side of the link."""
        by_name = {host.name: host for host in self.network.hosts.values()}
        hosts = {number: by_name[name] for number, name in enumerate(HOSTS)}
        return rt.local(len(HOSTS), 1, network_hosts=hosts, controller=self.network.controller, **given)

    def cut_off(self, hosts: Collection[str]) -> None:
        """Take the links of these hosts down, and bring those of all others up."""
        self._loop.call_soon_threadsafe(self.network.want_cut_off, hosts)

    def kill_controller(self) -> None:
        """Kill it, as a crash would."""
        self._wait_for(self.network.process.kill())

    def restart_controller(self) -> None:
        """Start another one, at the same address."""
        self._wait_for(self.network.process.restart())

    def _wait_for(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE_S)


@contextmanager
def four_hosts(policy: str = "echelonflow") -> Iterator[Islands]:
    """Two hosts on either side of a link, and a controller; the test is skipped where hosts cannot be made."""
    specification = DumbbellSpecification(
        kind="dumbbell", hosts_per_side=len(HOSTS) // 2, host_link_gbps=LINK_GBPS, bottleneck_gbps=LINK_GBPS
    )
    started: SimpleQueue[Islands | BaseException] = SimpleQueue()
    loop = asyncio.new_event_loop()
    over = asyncio.Event()

    async def serve() -> None:
        try:
            async with islands_network(specification, policy) as network:
                started.put(Islands(network, loop))
                await over.wait()
        except BaseException as error:
            started.put(error)
            raise

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        made = started.get(timeout=PATIENCE_S)
        if isinstance(made, RunError):
            pytest.skip(f"no islands are tried on a fabric: {made}")
        if isinstance(made, BaseException):
            raise made
        yield made
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()
