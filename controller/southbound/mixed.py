"""The switches of a fabric of which some speak P4Runtime, and some OpenFlow."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import chain
from types import TracebackType
from typing import Any, Self

from controller.links.port_states import PortStateTable
from controller.rules.flow_rules import RulesBySwitch
from controller.southbound.fabric_southbound import FabricSouthbound
from controller.southbound.mixed_packets import MixedPackets
from controller.southbound.southbound import SwitchStatus
from controller.southbound.switch_writers import all_of
from controller.switch_addresses import SwitchAddress
from topologies.addressing import Address, MacAddress
from topologies.routing import Routing


class MixedSouthbound:
    """One southbound of two, each for the switches that speak its protocol; see FabricSouthbound.

    What is asked of it, both do at once, to their ends; then the first error is raised.

    Attributes:
        packets: The frames from and to the ports of all switches.
    """

    def __init__(self, p4runtime: FabricSouthbound, openflow: FabricSouthbound) -> None:
        self._p4runtime = p4runtime
        self._openflow = openflow
        self._both = (p4runtime, openflow)
        self.packets = MixedPackets(p4runtime.packets, openflow.packets)
        self._stack = AsyncExitStack()

    @asynccontextmanager
    async def hearing_ports(self, ports: PortStateTable | None) -> AsyncIterator[None]:
        """See FabricSouthbound."""
        async with self._p4runtime.hearing_ports(ports), self._openflow.hearing_ports(ports):
            yield

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as entering:
            for each in self._both:
                await entering.enter_async_context(each)
            self._stack = entering.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def write(self, rules: RulesBySwitch) -> None:
        """See Southbound."""
        await all_of(each.write(rules) for each in self._both)

    async def reroute(self, rules: RulesBySwitch, routing: Routing) -> None:
        """See Southbound."""
        await all_of(each.reroute(rules, routing) for each in self._both)

    async def forget_found(self) -> None:
        """See Southbound."""
        await all_of(each.forget_found() for each in self._both)

    async def release(self) -> None:
        """See Southbound."""
        await all_of(each.release() for each in self._both)

    async def serve_levels(self) -> None:
        """See Southbound."""
        await all_of(each.serve_levels() for each in self._both)

    async def caught_up(self, down: Collection[str] = ()) -> None:
        """See Southbound."""
        await asyncio.gather(*(each.caught_up(down) for each in self._both))

    async def read_back(self) -> None:
        """See FabricSouthbound."""
        await all_of(each.read_back() for each in self._both)

    def statuses(self) -> tuple[SwitchStatus, ...]:
        """See Southbound."""
        return tuple(chain.from_iterable(each.statuses() for each in self._both))

    async def job_bytes(self, switches: Collection[str]) -> Mapping[tuple[int, str], int] | None:
        """See Counters."""
        one, other = await asyncio.gather(*(each.job_bytes(switches) for each in self._both))
        return None if one is None or other is None else {**one, **other}

    async def level_bytes(self, level: int) -> Mapping[int, int] | None:
        """See Counters."""
        one, other = await asyncio.gather(*(each.level_bytes(level) for each in self._both))
        return None if one is None or other is None else {**one, **other}

    async def link_bytes(self, links: Collection[int]) -> Mapping[int, int]:
        """See LinkCounters."""
        one, other = await asyncio.gather(*(each.link_bytes(links) for each in self._both))
        return {**one, **other}

    def neighbours(self) -> Mapping[Address, MacAddress]:
        """See DiscoveringSouthbound."""
        return {**self._p4runtime.neighbours(), **self._openflow.neighbours()}

    async def set_neighbours(self, macs: Mapping[Address, MacAddress]) -> None:
        """See DiscoveringSouthbound."""
        await all_of(each.set_neighbours(macs) for each in self._both)

    async def try_fabric(self, addresses: Sequence[SwitchAddress], routing: Routing) -> None:
        """See FabricSouthbound."""
        await self._with_both(addresses, lambda each, own: each.try_fabric(own, routing))

    async def keep_fabric(self) -> None:
        """See FabricSouthbound."""
        await all_of(each.keep_fabric() for each in self._both)

    async def use_fabric(self, addresses: Sequence[SwitchAddress], routing: Routing) -> None:
        """See FabricSouthbound."""
        await self._with_both(addresses, lambda each, own: each.use_fabric(own, routing))

    async def rebase(self, routing: Routing) -> None:
        """See FabricSouthbound."""
        await all_of(each.rebase(routing) for each in self._both)

    async def _with_both(
        self,
        addresses: Sequence[SwitchAddress],
        work: Callable[[FabricSouthbound, Sequence[SwitchAddress]], Coroutine[Any, Any, None]],
    ) -> None:
        """Do work with each southbound and the switches that speak its protocol."""
        speaking = [address for address in addresses if address.openflow is not None]
        others = [address for address in addresses if address.openflow is None]
        await all_of(work(each, own) for each, own in zip(self._both, (others, speaking), strict=True))
