"""Program the switches of a fabric over P4Runtime, through finsy: connections, arbitration, pipeline and writes."""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from finsy import P4Schema, Switch, SwitchEvent, SwitchOptions

from controller.access.tls_files import TlsFiles
from controller.background import Worker
from controller.config import SwitchAddress
from controller.rules.flow_rules import FlowRule, RulesBySwitch
from controller.rules.job_rules import JobRule
from controller.southbound.p4runtime.access import SwitchAccess
from controller.southbound.p4runtime.counter_reading import (
    JOB_COUNTERS,
    CounterEntry,
    bytes_of_jobs,
    bytes_of_links,
    level_counters,
)
from controller.southbound.p4runtime.difference import State, state_of
from controller.southbound.p4runtime.encoding import Encoder
from controller.southbound.p4runtime.entries import (
    Entity,
    EntityKey,
    fixed_entries,
    flow_entry,
    job_entry,
    key_of,
    route_entries,
)
from controller.southbound.p4runtime.fencing import ArbitrationBarrier, Grant, first_election_id, use_election_ids
from controller.southbound.p4runtime.reading import EntityReader
from controller.southbound.p4runtime.reconnecting import ConnectionLostError, keep_connected
from controller.southbound.p4runtime.writer import SwitchAwayError, SwitchRefusalError, SwitchWrite, SwitchWriter
from controller.southbound.reachability import Reachability
from controller.southbound.southbound import SouthboundError, SwitchCondition, SwitchStatus
from controller.southbound.tls import finsy_credentials
from topologies.routing import Routing

_LOG = logging.getLogger(__name__)


class P4RuntimeSouthbound:
    """A Southbound over P4Runtime, connected while its context is entered.

        async with P4RuntimeSouthbound(addresses, routing, pipeline, election_id=1) as southbound:
            await southbound.write(rules)

    A switch that is away is retried until it is back; the pipeline is pushed only where it differs. With a ``grant`` it
    writes only while the grant lasts, once it is primary at all switches, with election ids of the term from
    ``election_id`` on. Without one it bids ``election_id`` itself. Every ``read_back_s`` it reads each switch back and
    repairs what somebody else has changed; None: it does not.
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
    ) -> None:
        self._fabric = routing.fabric
        self._addresses = tuple(addresses)
        self._rules: dict[str, dict[FlowRule | JobRule, tuple[EntityKey, Entity]]] = {
            address.name: {} for address in addresses
        }
        self._fixed = {address.name: state_of(fixed_entries(address.name, routing)) for address in addresses}
        self._worker = Worker("switches")
        self._writers = {
            name: SwitchWriter(name, base, on_write, self._worker) for name, base in self._bases(routing).items()
        }
        p4info = pipeline / "trainyard.p4info.txtpb"
        schema = P4Schema(p4info)
        self._encoder = Encoder(schema)
        self._reader = EntityReader(schema, self._encoder, self._worker)
        self._grant = grant
        options = SwitchOptions(
            p4info=p4info,
            p4blob=pipeline / "trainyard.json",
            initial_election_id=election_id,
            ready_handler=self._on_ready,
            channel_credentials=finsy_credentials(tls),
        )
        self._switches = [
            Switch(address.name, address.address, options(device_id=address.device_id)) for address in addresses
        ]
        if grant is not None:
            barrier = ArbitrationBarrier(self._writers)
            for switch in self._switches:
                use_election_ids(switch, first_election_id(election_id, grant.term), barrier)
        for switch in self._switches:
            switch.ee.on(SwitchEvent.CHANNEL_DOWN, self._on_away)
        self._accesses: dict[str, SwitchAccess] = {}
        self._reachability = Reachability(addresses)
        self._read_back_s = read_back_s
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        works = [keep_connected(switch, partial(self._reachability.away, switch.name)) for switch in self._switches]
        works.append(self._reachability.run())
        if (period_s := self._read_back_s) is not None:
            # Spread over the period, so that switches and controller are never busy with all at once.
            works += [
                self._read_back(writer, number * period_s / len(self._writers), period_s)
                for number, writer in enumerate(self._writers.values(), start=1)
            ]
        self._tasks = [asyncio.create_task(work) for work in works]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._worker.close()

    async def write(self, rules: RulesBySwitch) -> None:
        """See Southbound."""
        states = await self._states(rules)
        await _all(writer.set_rules(states[name]) for name, writer in self._writers.items())

    async def reroute(self, rules: RulesBySwitch, routing: Routing) -> None:
        """See Southbound."""
        bases = await asyncio.to_thread(self._bases, routing)
        states = await self._states(rules)
        await _all(
            writer.reroute(
                states[name],
                bases[name],
                {link.source_port for link in self._fabric.links_from[name] if link.index in routing.dead},
            )
            for name, writer in self._writers.items()
        )

    async def forget_found(self) -> None:
        """See Southbound."""
        await _all(writer.forget_found() for writer in self._writers.values())

    async def caught_up(self, down: Collection[str] = ()) -> None:
        """See Southbound."""
        for name, writer in self._writers.items():
            await (writer.away() if name in down else writer.caught_up())

    async def job_bytes(self, switches: Collection[str]) -> Mapping[tuple[int, str], int] | None:
        """See Counters."""
        counted: dict[tuple[int, str], int] = {}
        for answer in await self._read_counters(dict.fromkeys(switches, JOB_COUNTERS)):
            if answer is None:
                return None
            counted.update(bytes_of_jobs(answer[1], self._fabric))
        return counted

    async def level_bytes(self, level: int) -> Mapping[int, int] | None:
        """See Counters."""
        wanted = {name: level_counters(name, level, self._fabric) for name in self._writers}
        counted: dict[int, int] = {}
        for answer in await self._read_counters(wanted):
            if answer is None:
                return None
            counted.update(bytes_of_links(answer[1], answer[0], self._fabric))
        return counted

    async def _read_counters(
        self, wanted: Mapping[str, Sequence[CounterEntry]]
    ) -> list[tuple[str, list[CounterEntry]] | None]:
        """Read counters from all switches at once; None for each switch that does not answer."""

        async def read(name: str) -> tuple[str, list[CounterEntry]] | None:
            access = self._accesses.get(name)
            if access is None:
                return None
            with suppress(SwitchAwayError, SwitchRefusalError):
                return name, await access.read_counters(wanted[name])
            return None

        return await asyncio.gather(*map(read, wanted))

    def statuses(self) -> tuple[SwitchStatus, ...]:
        """See Southbound."""
        return tuple(map(self._status, self._addresses))

    def _status(self, address: SwitchAddress) -> SwitchStatus:
        name = address.name
        writer, reachability = self._writers[name], self._reachability
        return SwitchStatus(
            name,
            address.address,
            address.device_id,
            writer.condition,
            writer.problem or reachability.reason(name),
            writer.num_rules,
            reachability.changed_ago_s(name),
            writer.num_drifted,
        )

    def _bases(self, routing: Routing) -> dict[str, State]:
        """Return the base entries of all switches; unchanged ones are not made again."""
        return {name: fixed | state_of(route_entries(name, routing)) for name, fixed in self._fixed.items()}

    async def _states(self, rules: RulesBySwitch) -> Mapping[str, State]:
        """Return the rules of all switches as entities."""

        def states() -> Mapping[str, State]:
            return {name: self._state(name, rules.get(name, ())) for name in self._writers}

        return await self._worker.run(states, sum(map(len, rules.values())))

    def _state(self, name: str, rules: Sequence[FlowRule | JobRule]) -> State:
        """Return the rules of a switch as entities; those it had before are not made again."""
        known = self._rules[name]
        self._rules[name] = entries = {}
        for rule in rules:
            entry = known.get(rule)
            if entry is None:
                entity = job_entry(rule, self._fabric) if isinstance(rule, JobRule) else flow_entry(rule, self._fabric)
                entry = key_of(entity), entity
            entries[rule] = entry
        return dict(entries.values())

    async def _on_ready(self, switch: Switch) -> None:
        if not switch.is_primary:
            self._on_lost(switch)
            return
        access = self._accesses[switch.name] = SwitchAccess(
            switch, self._encoder, self._reader, self._grant, self._worker
        )
        writer = self._writers[switch.name]
        try:
            await writer.connect(access)
        except SouthboundError as error:
            # It is read and written anew over the next connection.
            raise ConnectionLostError(writer.problem) from error
        if writer.condition is SwitchCondition.CAUGHT_UP:
            self._reachability.reached(switch.name)

    def _on_lost(self, switch: Switch) -> None:
        reason = f"lost to another controller, which has election id {switch.primary_id}"
        self._accesses.pop(switch.name, None)
        self._writers[switch.name].mark_lost(reason)
        self._reachability.taken(switch.name, reason)
        if self._grant is not None:
            self._grant.doubt()

    def _on_away(self, switch: Switch) -> None:
        self._accesses.pop(switch.name, None)
        self._writers[switch.name].disconnect()

    async def _read_back(self, writer: SwitchWriter, first_s: float, period_s: float) -> None:
        """Read one switch back every ``period_s``, until cancelled."""
        problem = ""
        await asyncio.sleep(first_s)
        while True:
            try:
                drift = await writer.read_back()
            except SouthboundError as error:
                if str(error) != problem:
                    _LOG.warning("not read back: %s", error)
                problem = str(error)
            except Exception:
                _LOG.exception("switch %s: not read back", writer.name)
            else:
                problem = ""
                if drift is not None:
                    _LOG.warning("switch %s: drift repaired: %s entries", writer.name, drift)
            await asyncio.sleep(period_s)


async def _all(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run everything to its end, then raise the first error.

    Each coroutine starts, and sends its request, before the next one is created.
    """
    async with asyncio.TaskGroup() as tasks:
        outcomes = []
        for work in works:
            outcomes.append(tasks.create_task(_outcome(work)))
            await asyncio.sleep(0)
    for outcome in outcomes:
        if error := outcome.result():
            raise error


async def _outcome(work: Coroutine[Any, Any, None]) -> Exception | None:
    try:
        await work
    except Exception as error:
        return error
    return None
