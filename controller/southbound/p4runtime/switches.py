"""Program the switches of a fabric over P4Runtime, through finsy: connections, arbitration, pipeline and writes."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Self

from finsy import Switch, SwitchEvent

from controller.access.tls_files import TlsFiles
from controller.background import Worker
from controller.config import BaseRouting
from controller.links.port_states import PortStateTable
from controller.southbound.connection import OnChange, nothing_waits
from controller.southbound.fencing import Grant, TakeoverBarrier
from controller.southbound.p4runtime.access import SwitchAccess
from controller.southbound.p4runtime.counters import SwitchCounters
from controller.southbound.p4runtime.entries import Entity
from controller.southbound.p4runtime.fabric_states import FabricStates
from controller.southbound.p4runtime.finsy_switches import FinsySwitches
from controller.southbound.p4runtime.given_tables import GivenTables
from controller.southbound.p4runtime.packets import PacketGate
from controller.southbound.p4runtime.programs import Programs
from controller.southbound.p4runtime.reconnecting import ConnectionLostError, keep_connected
from controller.southbound.p4runtime.states import MEANING
from controller.southbound.southbound import SouthboundError, SwitchCondition
from controller.southbound.states import Meaning
from controller.southbound.switch_access import SwitchAwayError, SwitchRefusalError
from controller.southbound.write_outcomes import SwitchWrite
from controller.southbound.written_switches import WrittenSwitches
from controller.switch_addresses import SwitchAddress
from topologies.routing import Routing
from topologies.targets import Target


class P4RuntimeSouthbound(WrittenSwitches[Entity]):
    """A Southbound over P4Runtime, connected while its context is entered.

        async with P4RuntimeSouthbound(addresses, routing, pipeline, election_id=1) as southbound:
            await southbound.write(rules)

    A switch that is away is retried until it is back. The program of its target (``topologies.targets``) is loaded only
    where it differs, into Tofino only with a ``device_config``; a switch with another one counts as away. With a
    ``grant`` it writes only while the grant lasts, once it is primary at all switches, with election ids of the term
    from ``election_id`` on. Without one it bids ``election_id`` itself. Every ``read_back_s`` it reads each switch back
    and repairs what somebody else has changed; None: it does not.

    With ``base_routing`` of others it writes in a role of its own, sets no pipeline, and leaves base tables alone;
    ``given`` has these as they were read.

    Attributes:
        packets: The frames from and to the ports of switches.
    """

    def __init__(
        self,
        addresses: Sequence[SwitchAddress],
        routing: Routing,
        pipeline: Path,
        election_id: int,
        on_write: Callable[[SwitchWrite], None] | None = None,
        grant: Grant | None = None,
        read_back_s: float | None = None,
        tls: TlsFiles | None = None,
        base_routing: BaseRouting = BaseRouting.OURS,
        barrier: TakeoverBarrier | None = None,
        on_change: OnChange = nothing_waits,
        device_config: Path | None = None,
    ) -> None:
        worker = Worker("switches")
        self._programs = Programs(pipeline, device_config)
        self.given = GivenTables(routing.fabric, worker) if base_routing is BaseRouting.OTHER else None
        super().__init__(addresses, routing, MEANING, worker, on_write, on_change)
        self._grant = grant
        self._finsy = FinsySwitches(
            barrier or TakeoverBarrier(address.name for address in addresses),
            self._programs,
            election_id,
            grant,
            tls,
            worker,
            self._on_ready,
            is_beside_others=self.given is not None,
        )
        self.packets = PacketGate()
        self._accesses: dict[str, SwitchAccess] = {}
        self._read_back_s = read_back_s
        self._counters = SwitchCounters(self._writers, self._accesses)
        self._switches: dict[str, Switch] = {}
        self._add(addresses)
        self._tasks: list[asyncio.Task[None]] = []
        self._tasks_of: dict[str, list[asyncio.Task[None]]] = {}
        """The tasks of every switch."""
        self._ending: list[asyncio.Task[None]] = []
        """Those of switches that the fabric does not have any longer."""

    def _states_of(self, addresses: Sequence[SwitchAddress], routing: Routing) -> FabricStates:
        return FabricStates([address.name for address in addresses], routing, self.given)

    def _target(self, name: str) -> Target:
        return self._states.fabric.identity[name].target

    def _meaning_of(self, name: str) -> Meaning[Entity]:
        return replace(MEANING, overflow=self._programs.of(self._target(name)).overflow)

    def _add(self, addresses: Sequence[SwitchAddress]) -> None:
        """Have these switches too, not connected yet."""
        for address in addresses:
            name = address.name
            self._writers[name] = self._writer(name)
            switch = self._finsy.make(address, self._target(name))
            switch.ee.on(SwitchEvent.CHANNEL_DOWN, self._on_away)
            self.packets.follow(switch)
            self._switches[name] = switch

    def hearing_ports(self, ports: PortStateTable | None) -> AbstractAsyncContextManager[None]:  # noqa: ARG002
        """See FabricSouthbound. GnmiPortMonitor hears of the ports of such switches."""
        return nullcontext()

    async def __aenter__(self) -> Self:
        works = [self._reachability.run()]
        if self.given is not None:
            works.append(self.given.tell_problems())
        self._tasks = [asyncio.create_task(work) for work in works]
        # Spread over the period, so that switches and controller are never busy with all at once.
        for number, name in enumerate(self._switches, start=1):
            self._keep(name, number / len(self._switches))
        return self

    def _keep(self, name: str, read_back_share: float) -> None:
        """Keep a switch connected, and read it back, first after this share of the period."""
        works = [keep_connected(self._switches[name], partial(self._reachability.away, name))]
        if (period_s := self._read_back_s) is not None:
            works.append(self._reading_back.keep_reading(self._writers[name], read_back_share * period_s, period_s))
        self._tasks_of[name] = [asyncio.create_task(work) for work in works]

    async def use_fabric(self, addresses: Sequence[SwitchAddress], routing: Routing) -> None:
        """See FabricSouthbound."""
        await super().use_fabric(addresses, routing)
        for name in [name for name in self._switches if name not in self._tasks_of]:
            self._keep(name, 1.0)

    def _remove(self, name: str) -> None:
        """Have the connection to a switch closed, and forget it."""
        for task in self._tasks_of.pop(name, ()):
            task.cancel()
            self._ending.append(task)
        for known in (self._switches, self._writers, self._accesses):
            known.pop(name, None)
        self.packets.disconnect(name)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        tasks = [*self._tasks, *self._ending, *chain.from_iterable(self._tasks_of.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._worker.close()

    async def job_bytes(self, switches: Collection[str]) -> Mapping[tuple[int, str], int] | None:
        """See Counters."""
        return await self._counters.job_bytes(switches, self._states.fabric)

    async def level_bytes(self, level: int) -> Mapping[int, int] | None:
        """See Counters."""
        return await self._counters.level_bytes(level, self._states.fabric)

    async def link_bytes(self, links: Collection[int]) -> Mapping[int, int]:
        """See LinkCounters."""
        return await self._counters.link_bytes(links, self._states.fabric)

    def _problem(self, name: str) -> str:
        return "" if self.given is None else self.given.problem(name)

    async def _on_ready(self, switch: Switch) -> None:
        if switch is not self._switches.get(switch.name):
            return
        if not switch.is_primary:
            self._on_lost(switch)
            return
        on_base = None if self.given is None else partial(self.given.take, switch.name)
        access = self._accesses[switch.name] = self._finsy.access(switch, on_base)
        writer = self._writers[switch.name]
        try:
            if not switch.p4info.is_authoritative:
                await access.require_pipeline()
        except (SwitchAwayError, SwitchRefusalError) as error:
            raise ConnectionLostError(str(error)) from error
        try:
            await writer.connect(access)
        except SouthboundError as error:
            # It is read and written anew over the next connection.
            raise ConnectionLostError(writer.problem) from error
        self.packets.connect(switch)
        if writer.condition is SwitchCondition.CAUGHT_UP:
            self._reachability.reached(switch.name)

    def _on_lost(self, switch: Switch) -> None:
        reason = f"lost to another controller, which has election id {switch.primary_id}"
        self._accesses.pop(switch.name, None)
        self.packets.disconnect(switch.name)
        self._writers[switch.name].mark_lost(reason)
        self._reachability.taken(switch.name, reason)
        if self._grant is not None:
            self._grant.doubt()

    def _on_away(self, switch: Switch) -> None:
        if switch is not self._switches.get(switch.name):
            return  # the fabric does not have it any longer
        self._accesses.pop(switch.name, None)
        self.packets.disconnect(switch.name)
        self._writers[switch.name].disconnect()


def given_tables(southbound: object) -> GivenTables | None:
    """Return the base tables of others that a southbound reads, where somebody else fills them."""
    return southbound.given if isinstance(southbound, P4RuntimeSouthbound) else None
