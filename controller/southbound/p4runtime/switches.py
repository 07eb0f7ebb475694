"""Program the switches of a fabric over P4Runtime, through finsy: connections, arbitration, pipeline and writes."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from finsy import (
    GRPCStatusCode,
    P4ActionProfileGroup,
    P4ActionProfileMember,
    P4ClientError,
    P4Schema,
    P4TableEntry,
    Switch,
    SwitchEvent,
    SwitchOptions,
)
from grpc.aio import UsageError

from controller.background import Worker
from controller.config import SwitchAddress
from controller.rules.flow_rules import FlowRule, RulesBySwitch
from controller.rules.job_rules import JobRule
from controller.southbound.p4runtime.counter_reading import (
    JOB_COUNTERS,
    CounterEntry,
    bytes_of_jobs,
    bytes_of_links,
    level_counters,
)
from controller.southbound.p4runtime.difference import State, Update, state_of
from controller.southbound.p4runtime.encoding import Encoder
from controller.southbound.p4runtime.entries import (
    SETTINGS,
    TABLES,
    Entity,
    EntityKey,
    fixed_entries,
    flow_entry,
    is_own,
    job_entry,
    key_of,
    route_entries,
)
from controller.southbound.p4runtime.fencing import ArbitrationBarrier, Grant, first_election_id, use_election_ids
from controller.southbound.p4runtime.reconnecting import ConnectionLostError, keep_connected
from controller.southbound.p4runtime.writer import SwitchAwayError, SwitchRefusalError, SwitchWrite, SwitchWriter
from controller.southbound.southbound import SwitchStatus
from topologies.routing import Routing

_LOG = logging.getLogger(__name__)

_AWAY = (GRPCStatusCode.UNAVAILABLE, GRPCStatusCode.CANCELLED)
_DEADLINE_S = 10.0
"""A switch that leaves a request unanswered for so long counts as away."""
_READ_AT_ONCE = 100
"""Entities that are read without letting others use the event loop."""


class P4RuntimeSouthbound:
    """A Southbound over P4Runtime, connected while its context is entered.

        async with P4RuntimeSouthbound(addresses, routing, pipeline, election_id=1) as southbound:
            await southbound.write(rules)

    A switch that is away is retried until it is back; the pipeline is pushed only where it differs. With a ``grant`` it
    writes only while the grant lasts, once it is primary at all switches, with election ids of the term from
    ``election_id`` on. Without one it bids ``election_id`` itself.
    """

    def __init__(
        self,
        addresses: Sequence[SwitchAddress],
        routing: Routing,
        pipeline: Path,
        election_id: int,
        on_write: Callable[[SwitchWrite], None] | None = None,
        grant: Grant | None = None,
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
        self._encoder = Encoder(P4Schema(p4info))
        self._grant = grant
        options = SwitchOptions(
            p4info=p4info,
            p4blob=pipeline / "trainyard.json",
            initial_election_id=election_id,
            ready_handler=self._on_ready,
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
        self._accesses: dict[str, _SwitchAccess] = {}
        self._connecting: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._connecting = [asyncio.create_task(keep_connected(switch)) for switch in self._switches]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for task in self._connecting:
            task.cancel()
        await asyncio.gather(*self._connecting, return_exceptions=True)
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
        return tuple(
            SwitchStatus(
                address.name, address.address, address.device_id, writer.condition, writer.problem, writer.num_rules
            )
            for address in self._addresses
            for writer in (self._writers[address.name],)
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
        if switch.is_primary:
            access = self._accesses[switch.name] = _SwitchAccess(switch, self._encoder, self._grant, self._worker)
            await self._writers[switch.name].connect(access)
        else:
            self._on_lost(switch)

    def _on_lost(self, switch: Switch) -> None:
        reason = f"lost to another controller, which has election id {switch.primary_id}"
        _LOG.error("switch %s: %s", switch.name, reason)
        self._accesses.pop(switch.name, None)
        self._writers[switch.name].mark_lost(reason)
        if self._grant is not None:
            self._grant.doubt()

    def _on_away(self, switch: Switch) -> None:
        self._accesses.pop(switch.name, None)
        self._writers[switch.name].disconnect()


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


class _SwitchAccess:
    """Access to a switch that finsy keeps connected; see Access."""

    def __init__(self, switch: Switch, encoder: Encoder, grant: Grant | None, worker: Worker) -> None:
        self._switch = switch
        self._encoder = encoder
        self._grant = grant
        self._worker = worker

    async def read(self) -> list[Entity]:
        """Read the controller's own entries, default entries, members and groups."""
        wanted = [
            *(P4TableEntry(table) for table in TABLES),
            *(P4TableEntry(table, is_default_action=True) for table in SETTINGS),
            P4ActionProfileMember(),
            P4ActionProfileGroup(),
        ]
        # finsy declares the overloads of this asynchronous generator as coroutines.
        entities = cast("AsyncIterator[Entity]", self._switch.read(wanted))
        found: list[Entity] = []
        async with self._own_errors():
            async for entity in entities:
                if is_own(entity):
                    found.append(entity)
                if len(found) % _READ_AT_ONCE == 0:
                    await asyncio.sleep(0)  # one message has many, and finsy decodes each of them here
        return found

    async def read_counters(self, wanted: Sequence[CounterEntry]) -> list[CounterEntry]:
        """Read counters.

        Raises:
            SwitchAwayError: The connection is lost.
            SwitchRefusalError: The switch has no such counters.
        """
        counters = cast("AsyncIterator[CounterEntry]", self._switch.read(wanted))
        async with self._own_errors():
            return [counter async for counter in counters]

    async def write(self, updates: Sequence[Update]) -> None:
        """Write all updates in one request."""
        messages = await self._worker.run(lambda: list(map(self._encoder.update, updates)), 10 * len(updates))
        if self._grant is not None:
            await self._grant.granted()
        async with self._own_errors():
            await self._switch.write(messages)

    @asynccontextmanager
    async def _own_errors(self) -> AsyncIterator[None]:
        """Translate errors of finsy and gRPC into those of Access; reconnect to a switch that is away."""
        try:
            async with asyncio.timeout(_DEADLINE_S):
                yield
        except P4ClientError as error:
            if error.code not in _AWAY:
                raise SwitchRefusalError(str(error)) from error
            self._reconnect()
            raise SwitchAwayError(str(error)) from error
        except TimeoutError as error:
            self._reconnect()
            raise SwitchAwayError(f"no answer within {_DEADLINE_S:g} s") from error
        except (AssertionError, UsageError) as error:
            # finsy and gRPC raise these when the connection is closed under a request.
            raise SwitchAwayError("the connection is closed") from error
        except asyncio.CancelledError as error:
            # gRPC raises this for a request already sent, though the task that waits for it was not cancelled.
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            raise SwitchAwayError("the connection is closed") from error

    def _reconnect(self) -> None:
        """End the stream and begin again: it may stand although requests fail."""

        async def fail() -> None:
            raise ConnectionLostError

        failing = fail()
        try:
            self._switch.create_task(failing)
        except AssertionError:
            failing.close()  # without a connection there is nothing to end
