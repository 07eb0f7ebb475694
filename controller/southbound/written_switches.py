"""What a southbound does in the same way whatever protocol it speaks: its switches are kept by writers."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Generic, Protocol

from controller.background import Worker
from controller.rules.flow_rules import RulesBySwitch
from controller.southbound.connection import OnChange
from controller.southbound.reachability import Reachability
from controller.southbound.reading_back import ReadingBack
from controller.southbound.southbound import SwitchStatus
from controller.southbound.states import EntryT, Meaning, State
from controller.southbound.statuses import status_of
from controller.southbound.switch_writer import SwitchWriter
from controller.southbound.switch_writers import SwitchWriters, all_of
from controller.southbound.write_outcomes import OnWrite
from controller.switch_addresses import SwitchAddress
from topologies.addressing import Address, MacAddress
from topologies.fabric import Fabric
from topologies.routing import Routing


class FabricStates(Protocol[EntryT]):
    """What the switches of one protocol are to hold on one fabric.

    Attributes:
        fabric: The fabric.
        fixed: The base entries of every switch that do not depend on dead links.
    """

    fabric: Fabric
    fixed: dict[str, State[EntryT]]

    def base(self, switch: str, routing: Routing, /) -> State[EntryT]:
        """Return the base entries of a switch."""

    def bases(self, routing: Routing, /) -> Mapping[str, State[EntryT]]:
        """Return the base entries of all switches."""

    def rules(self, rules: RulesBySwitch, routing: Routing, /) -> Mapping[str, State[EntryT]]:
        """Return the entries that carry out the rules of all switches."""

    def neighbours(self, switch: str, macs: Mapping[Address, MacAddress], /) -> State[EntryT]:
        """Return the base entries that stand in the place of others where these MACs were learned."""

    def unknown_neighbours(self, switch: str, /) -> State[EntryT]:
        """Return the base entries in whose place a neighbour may come."""

    def macs(self, switch: str, neighbours: State[EntryT], /) -> Iterable[tuple[Address, MacAddress]]:
        """Return the addresses and MACs of the NICs that entries of ``neighbours`` lead to."""

    def next_hops_into(self, links: Collection[int], /) -> Mapping[str, frozenset[int]]:
        """Return the next hops of every switch that leave by these links."""


class WrittenSwitches(ABC, Generic[EntryT]):
    """The part of a FabricSouthbound that is the same for all protocols; for ``patience_s`` see SwitchWriters."""

    def __init__(
        self,
        addresses: Sequence[SwitchAddress],
        routing: Routing,
        meaning: Meaning[EntryT],
        worker: Worker,
        on_write: OnWrite | None,
        on_change: OnChange,
        patience_s: float | None = None,
    ) -> None:
        self._addresses = tuple(addresses)
        self._routing = routing
        self._meaning = meaning
        self._worker = worker
        self._on_write = on_write
        self._on_change = on_change
        self._writers: SwitchWriters[EntryT] = SwitchWriters(patience_s)
        self._reading_back = ReadingBack()
        self._reachability = Reachability(addresses)
        self._states = self._states_of(addresses, routing)
        self._known_macs: Mapping[Address, MacAddress] = {}
        """The MACs that switches had for NICs on the fabric before."""
        self._is_rebased = True

    @abstractmethod
    def _states_of(self, addresses: Sequence[SwitchAddress], routing: Routing) -> FabricStates[EntryT]:
        """Return what these switches are to hold."""

    @abstractmethod
    def _add(self, addresses: Sequence[SwitchAddress]) -> None:
        """Have these switches too."""

    @abstractmethod
    def _remove(self, name: str) -> None:
        """Have a switch no longer."""

    def _meaning_of(self, name: str) -> Meaning[EntryT]:  # noqa: ARG002
        """What entries of a switch do, and how many it has room for."""
        return self._meaning

    def _problem(self, name: str) -> str:  # noqa: ARG002
        """What is wrong with a switch that neither its writer nor its connection tells; empty where nothing is."""
        return ""

    def _writer(self, name: str) -> SwitchWriter[EntryT]:
        """Make the writer of a switch."""
        base, unknown = self._states.base(name, self._routing), self._states.unknown_neighbours(name)
        return SwitchWriter(name, self._meaning_of(name), base, self._on_write, self._worker, unknown, self._on_change)

    async def write(self, rules: RulesBySwitch) -> None:
        """See Southbound."""
        await self._writers.set_rules(await self._rules(rules))

    async def reroute(self, rules: RulesBySwitch, routing: Routing) -> None:
        """See Southbound."""
        self._routing = routing
        bases = await asyncio.to_thread(self._states.bases, routing)
        await self._writers.reroute(await self._rules(rules), bases, self._states.next_hops_into(routing.dead))

    async def forget_found(self) -> None:
        """See Southbound."""
        await self._writers.forget_found()

    async def release(self) -> None:
        """See Southbound."""
        await self._writers.release()

    async def serve_levels(self) -> None:
        """See Southbound."""
        await self._writers.serve_levels()

    async def caught_up(self, down: Collection[str] = ()) -> None:
        """See Southbound."""
        await self._writers.caught_up(down)

    def statuses(self) -> tuple[SwitchStatus, ...]:
        """See Southbound."""
        return tuple(
            status_of(address, self._writers[address.name], self._reachability, self._problem(address.name))
            for address in self._addresses
        )

    def neighbours(self) -> Mapping[Address, MacAddress]:
        """See DiscoveringSouthbound."""
        if not self._is_rebased:
            return self._known_macs  # writers have the ports of the fabric before
        return {
            address: mac
            for name, writer in self._writers.items()
            for address, mac in self._states.macs(name, writer.neighbours)
        }

    async def set_neighbours(self, macs: Mapping[Address, MacAddress]) -> None:
        """See DiscoveringSouthbound."""
        states = self._states
        await self._writers.promptly(
            (name, writer.set_neighbours(states.neighbours(name, macs), states.fixed[name]))
            for name, writer in self._writers.items()
        )

    async def try_fabric(self, addresses: Sequence[SwitchAddress], routing: Routing) -> None:
        """See FabricSouthbound."""
        known = [address for address in addresses if address.name in self._writers]
        bases = await asyncio.to_thread(lambda: self._states_of(known, routing).bases(routing))
        await all_of(self._writers[name].try_base(base) for name, base in bases.items())

    async def keep_fabric(self) -> None:
        """See FabricSouthbound."""
        await self._writers.keep_base()

    async def use_fabric(self, addresses: Sequence[SwitchAddress], routing: Routing) -> None:
        """See FabricSouthbound."""
        states = await asyncio.to_thread(self._states_of, addresses, routing)
        self._known_macs, self._is_rebased = self.neighbours(), False
        self._states, self._routing = states, routing
        for name in [name for name in self._writers if name not in states.fixed]:
            self._remove(name)
        self._reachability.follow(addresses)
        self._addresses = tuple(addresses)
        self._add([address for address in addresses if address.name not in self._writers])

    async def rebase(self, routing: Routing) -> None:
        """See FabricSouthbound."""
        states, self._routing = self._states, routing
        bases = await asyncio.to_thread(states.bases, routing)
        dead = states.next_hops_into(routing.dead)
        try:
            await all_of(
                writer.rebase(
                    bases[name], states.neighbours(name, self._known_macs), states.unknown_neighbours(name), dead[name]
                )
                for name, writer in self._writers.items()
            )
        finally:
            self._is_rebased = True

    async def read_back(self) -> None:
        """See FabricSouthbound."""
        await self._reading_back.read_all(self._writers.values())

    async def _rules(self, rules: RulesBySwitch) -> Mapping[str, State[EntryT]]:
        """Return the rules of all switches as entries."""
        work = partial(self._states.rules, rules, self._routing)
        return await self._worker.run(work, sum(map(len, rules.values())))
