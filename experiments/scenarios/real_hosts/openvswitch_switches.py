"""Open vSwitch as the switches of a run: a bridge for every switch, each of which is started again where it ends."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from types import TracebackType
from typing import Self

from controller.switch_addresses import OpenFlowConfig, SwitchAddress
from experiments.scenarios.real_hosts.laboratory import Laboratory
from experiments.scenarios.real_hosts.switches import CountersAwayError, SwitchesError, SwitchPlaces
from topologies.description import described
from topologies.ecmp import FabricHash
from topologies.fabric import Fabric
from topologies.namespaces.host_network import NetworkError
from topologies.openflow_specification import OpenFlowSpecification
from topologies.openvswitch.bridges import fabric_bridges
from topologies.openvswitch.daemons import OpenVSwitch
from topologies.openvswitch.fabric_switches import OpenVSwitchFabric

_LOG = logging.getLogger(__name__)

_LOOKS_EVERY_S = 1.0
_STARTS_AGAIN_AFTER_S = 1.0
_MOST_FAILURES = 3
"""In a row."""


class OpenVSwitchSwitches:
    """The switches of a fabric, with real hosts, as an async context manager.

    They look for their controller at a Unix socket. A switch that has ended is started again with no flow entries, and
    its controller fills it.

    Args:
        fabric: The fabric, at rates that the machine carries.
        laboratory: The hosts.
        on_loss: Called with the reason where a switch cannot be started again.
    """

    def __init__(self, fabric: Fabric, laboratory: Laboratory, *, on_loss: Callable[[str], None]) -> None:
        self._fabric = fabric
        self._on_loss = on_loss
        self._switches = OpenVSwitchFabric(
            fabric_bridges(described(fabric), laboratory.switch_ends), laboratory.in_fabric, laboratory.mtu_bytes
        )
        self._ports_down: frozenset[tuple[str, int]] = frozenset()
        self._ports_wanted_down: frozenset[tuple[str, int]] = frozenset()
        self._has_wish = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._stack = ExitStack()

    async def __aenter__(self) -> Self:
        """Start them. Raises SwitchesError where Open vSwitch is not installed, or does not start."""
        await asyncio.to_thread(self._start)
        self._tasks = [asyncio.create_task(self._watch()), asyncio.create_task(self._set_ports())]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._stack.close)

    def places(self) -> SwitchPlaces:
        """See ``Switches``; the hash of Open vSwitch is not ours."""
        addresses = tuple(
            SwitchAddress(name=switch, openflow=OpenFlowSpecification(datapath_id=bridge.datapath_id))
            for switch, bridge in self._switches.bridges.items()
        )
        return SwitchPlaces(addresses, OpenFlowConfig(listen=self._controller), FabricHash.UNKNOWN)

    def want_links_down(self, links: frozenset[int]) -> None:
        """See ``Switches``."""
        leaving = (self._fabric.links[link] for link in links)
        self._ports_wanted_down = frozenset(
            (link.source, link.source_port) for link in leaving if link.source in self._fabric.switch_index
        )
        self._has_wish.set()

    def daemons(self, switch: str) -> OpenVSwitch:
        """Return the Open vSwitch of a switch."""
        return self._switches.daemons(switch)

    @asynccontextmanager
    async def counters(self) -> AsyncIterator["OpenVSwitchSwitches"]:
        """See ``Switches``."""
        yield self

    async def read(self) -> Mapping[tuple[str, int], list[tuple[int, int]]]:
        """See ``SwitchCounters``."""
        try:
            return await asyncio.to_thread(self._switches.queue_counts)
        except NetworkError as error:
            raise CountersAwayError(str(error)) from error

    @property
    def _controller(self) -> str:
        return f"unix:{self._switches.folder}/openflow.sock"

    def _start(self) -> None:
        try:
            with ExitStack() as stack:
                stack.enter_context(self._switches)
                self._switches.add_bridges(self._controller)
                self._stack = stack.pop_all()
        except NetworkError as error:
            raise SwitchesError(str(error)) from error

    async def _set_ports(self) -> None:
        """Take ports down and up as is wanted, whenever that changes."""
        while True:
            await self._has_wish.wait()
            self._has_wish.clear()
            wanted = self._ports_wanted_down
            try:
                await asyncio.to_thread(self._switches.set_ports, wanted - self._ports_down, up=False)
                await asyncio.to_thread(self._switches.set_ports, self._ports_down - wanted, up=True)
                self._ports_down = wanted
            except NetworkError as error:
                _LOG.warning("links are not set: %s", error)
                await asyncio.sleep(_STARTS_AGAIN_AFTER_S)
                self._has_wish.set()

    async def _watch(self) -> None:
        """Start switches again wherever they end by themselves."""
        failures, reason = 0, ""
        while failures < _MOST_FAILURES:
            await asyncio.sleep(_LOOKS_EVERY_S)
            ended = [switch for switch in self._switches.bridges if not self._switches.daemons(switch).runs]
            for switch in ended:
                _LOG.warning("switch %s has ended: it is started again without flow entries", switch)
                try:
                    await asyncio.to_thread(self._switches.daemons(switch).restart)
                    failures = 0
                except NetworkError as error:
                    failures += 1
                    _LOG.warning("switch %s has not been started again: %s", switch, error)
                    reason = f"switch {switch} has ended: {error}"
        self._on_loss(reason)
