"""The switches of a fabric over P4Runtime: connections, arbitration, pipeline and writes, through finsy."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from finsy import (
    Controller,
    GRPCStatusCode,
    P4ActionProfileGroup,
    P4ActionProfileMember,
    P4ClientError,
    P4TableEntry,
    Switch,
    SwitchEvent,
    SwitchOptions,
)
from finsy.proto import p4r
from grpc.aio import UsageError

from controller.config import SwitchAddress
from controller.southbound.difference import Update, UpdateKind
from controller.southbound.entries import SETTINGS, TABLES, Entity, base_entries, flow_entry
from controller.southbound.rules import RulesBySwitch
from controller.southbound.southbound import SwitchStatus
from controller.southbound.writer import SwitchAwayError, SwitchRefusalError, SwitchWriter
from topologies.routing import Routing

_LOG = logging.getLogger(__name__)

_AWAY = (GRPCStatusCode.UNAVAILABLE, GRPCStatusCode.CANCELLED)

_UPDATE_TYPES = {
    UpdateKind.INSERT: p4r.Update.INSERT,
    UpdateKind.MODIFY: p4r.Update.MODIFY,
    UpdateKind.DELETE: p4r.Update.DELETE,
}


class P4RuntimeSouthbound:
    """A Southbound over P4Runtime, as an async context manager: connected while entered.

    A switch that is away is retried until it is back; the pipeline is pushed only where it differs.
    """

    def __init__(self, addresses: Sequence[SwitchAddress], routing: Routing, pipeline: Path, election_id: int) -> None:
        self._fabric = routing.fabric
        self._addresses = tuple(addresses)
        self._writers = {
            address.name: SwitchWriter(address.name, base_entries(address.name, routing)) for address in addresses
        }
        options = SwitchOptions(
            p4info=pipeline / "trainyard.p4info.txtpb",
            p4blob=pipeline / "trainyard.json",
            initial_election_id=election_id,
            ready_handler=self._on_ready,
        )
        switches = [
            Switch(address.name, address.address, options(device_id=address.device_id)) for address in addresses
        ]
        for switch in switches:
            switch.ee.on(SwitchEvent.CHANNEL_DOWN, self._on_away)
            switch.ee.on(SwitchEvent.BECOME_BACKUP, self._on_lost)
        self._controller = Controller(switches)

    async def __aenter__(self) -> Self:
        await self._controller.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._controller.__aexit__(kind, error, traceback)

    async def write(self, rules: RulesBySwitch) -> None:
        """See Southbound."""
        outcomes = await asyncio.gather(
            *(
                writer.hold(flow_entry(rule, self._fabric) for rule in rules.get(name, ()))
                for name, writer in self._writers.items()
            ),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    async def caught_up(self) -> None:
        """See Southbound."""
        for writer in self._writers.values():
            await writer.caught_up()

    def statuses(self) -> tuple[SwitchStatus, ...]:
        """See Southbound."""
        return tuple(
            SwitchStatus(address.name, address.address, address.device_id, writer.condition, writer.problem)
            for address in self._addresses
            for writer in (self._writers[address.name],)
        )

    async def _on_ready(self, switch: Switch) -> None:
        if not switch.is_primary:
            self._on_lost(switch)
            return
        await self._writers[switch.name].connect(_SwitchAccess(switch))

    def _on_lost(self, switch: Switch) -> None:
        problem = f"lost to another controller, which has election id {switch.primary_id}"
        _LOG.error("switch %s: %s", switch.name, problem)
        self._writers[switch.name].lose(problem)

    def _on_away(self, switch: Switch) -> None:
        self._writers[switch.name].disconnect()


class _SwitchAccess:
    """Access to a switch that finsy keeps connected."""

    def __init__(self, switch: Switch) -> None:
        self._switch = switch

    async def read(self) -> list[Entity]:
        """All that is the controller's: entries, default entries, members and groups."""
        wanted = [
            *(P4TableEntry(table) for table in TABLES),
            *(P4TableEntry(table, is_default_action=True) for table in SETTINGS),
            P4ActionProfileMember(),
            P4ActionProfileGroup(),
        ]
        # finsy declares the overloads of this asynchronous generator as coroutines.
        entities = cast("AsyncIterator[Entity]", self._switch.read(wanted))
        with _own_errors():
            return [entity async for entity in entities]

    async def write(self, updates: Sequence[Update]) -> None:
        """All updates in one request."""
        schema = self._switch.p4info
        messages = [
            p4r.Update(type=_UPDATE_TYPES[update.kind], entity=update.entity.encode(schema)) for update in updates
        ]
        with _own_errors():
            await self._switch.write(messages)


@contextmanager
def _own_errors() -> Iterator[None]:
    """Errors of finsy and gRPC as those of Access."""
    try:
        yield
    except P4ClientError as error:
        raise (SwitchAwayError if error.code in _AWAY else SwitchRefusalError)(str(error)) from error
    except (AssertionError, UsageError) as error:
        # How finsy and gRPC say that the connection was closed under a request.
        raise SwitchAwayError("the connection is closed") from error
