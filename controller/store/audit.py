"""The audit trail: requests to switches and calls of identities, written in the background.

A write that fails is tried again until the database commits it.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection, Table, and_, bindparam, delete, func, insert, select

from controller.background import BackgroundTask
from controller.clock import Clock
from controller.errors import StoreError, UnknownOutcomeError
from controller.events import EventKind, log_event
from controller.southbound.write_outcomes import SwitchWrite
from controller.store.batches import ROWS_PER_TRANSACTION, execute
from controller.store.database import Database
from controller.store.schema import CALL, SWITCH_WRITE

_LOG = logging.getLogger(__name__)

_GATHER_S = 0.05
"""A Plan's requests to all switches fall within this time, and are written together."""
_RETRY_S = 1.0
_CLOSING_S = 2.0
_MOST_WAITING = 10_000
"""The most entries that wait for the database: some megabytes."""
MOST_CALLS = 1_000_000
"""The most calls that are kept: some hundred megabytes. Beyond, the oldest make room."""
_PRUNED_EVERY = 10_000
_NO_ZERO = "\N{REPLACEMENT CHARACTER}"
_LONGEST_TEXT = 1_000
"""Characters; what clients send is cut off here."""

_Values = dict[str, Any]
_Entry = tuple[Table, _Values]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an identity: its method, what it is about (a job's name, for example) and how it ended."""

    identity: str
    tenant: str
    role: str
    method: str
    subject: str
    outcome: str
    problem: str = ""


class AuditTrail:
    """Records requests to switches, under the Plan of ``plan_number``, and calls.

    ``num_lost`` counts what is not recorded, since too much waited for the database when it came.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self.plan_number = 0
        self.num_lost = 0
        self._database = database
        self._clock = clock
        self._waiting: list[_Entry] = []
        self._num_since_pruned = 0
        self._num_uncertain = 0
        """How many of the first waiting entries the database may have already."""
        self._writing = BackgroundTask(self._write_all)

    @property
    def num_waiting(self) -> int:
        """How many entries wait for the database."""
        return len(self._waiting)

    def record(self, write: SwitchWrite) -> None:
        """Record a request that has been answered, or will not be."""
        self._record(SWITCH_WRITE, {"time_s": self._clock.now_s(), "plan": self.plan_number, **asdict(write)})

    def record_call(self, call: Call) -> None:
        """Record a call that has been answered."""
        values = {name: value[:_LONGEST_TEXT] for name, value in asdict(call).items()}
        self._record(CALL, {"time_s": self._clock.now_s(), **values})

    async def flush(self) -> None:
        """Wait until all that was recorded is in the database."""
        await self._writing.join()

    async def close(self) -> None:
        """Write what waits, if the database takes it soon; log how much is lost."""
        await self._writing.stop(_CLOSING_S)
        if lost := self.num_lost + len(self._waiting):
            words = "%d entries are not in the audit trail"
            log_event(_LOG, logging.ERROR, EventKind.RECORD_GAP, words, lost, lost=lost)

    def _record(self, table: Table, values: _Values) -> None:
        if len(self._waiting) >= _MOST_WAITING:
            if self.num_lost == 0:
                words = "entries are not in the audit trail: %d wait for the database"
                log_event(_LOG, logging.ERROR, EventKind.RECORD_GAP, words, _MOST_WAITING)
            self.num_lost += 1
            return
        # PostgreSQL keeps no zero bytes, which clients may send; one entry would keep all others waiting for ever.
        stored = {
            name: value.replace("\0", _NO_ZERO) if isinstance(value, str) else value for name, value in values.items()
        }
        self._waiting.append((table, stored))
        self._writing.start()

    async def _write_all(self) -> None:
        pause_s = _GATHER_S
        while self._waiting:
            await asyncio.sleep(pause_s)
            entries = tuple(self._waiting[: max(ROWS_PER_TRANSACTION, self._num_uncertain)])
            try:
                await self._database.write(partial(_write, entries[: self._num_uncertain], entries))
            except StoreError as error:
                if isinstance(error, UnknownOutcomeError):
                    self._num_uncertain = len(entries)
                pause_s = _RETRY_S
            else:
                del self._waiting[: len(entries)]
                self._num_uncertain, pause_s = 0, _GATHER_S
                self._num_since_pruned += len(entries)
                if self._num_since_pruned >= _PRUNED_EVERY:
                    await self._prune_calls()

    async def _prune_calls(self) -> None:
        self._num_since_pruned = 0
        try:
            while await self._database.write(_prune_calls):
                pass
        except StoreError as error:
            _LOG.error("the audit trail is not pruned: %s", error)


def _write(uncertain: Sequence[_Entry], entries: Sequence[_Entry], connection: Connection) -> None:
    """Add entries; those of them that are ``uncertain`` may be there already, and are replaced."""
    for table in (SWITCH_WRITE, CALL):
        there = [{f"of_{name}": value for name, value in values.items()} for of, values in uncertain if of is table]
        recorded = [column for column in table.c if column.name != "id"]
        same = delete(table).where(and_(*(column == bindparam(f"of_{column.name}") for column in recorded)))
        execute(connection, same, there)
        execute(connection, insert(table), [values for of, values in entries if of is table])


def writes_between(after: int, last: int, connection: Connection) -> Iterator[_Values]:
    """The requests for Plans with numbers from ``after + 1`` to ``last``, in the order of their answers."""
    is_wanted = (SWITCH_WRITE.c.plan > after) & (SWITCH_WRITE.c.plan <= last)
    rows = connection.execute(select(SWITCH_WRITE).where(is_wanted).order_by(SWITCH_WRITE.c.id))
    for row in rows.mappings():
        yield {name: value for name, value in row.items() if name != SWITCH_WRITE.c.id.name}


def _prune_calls(connection: Connection) -> bool:
    """Delete the oldest calls beyond MOST_CALLS, or a bounded part of them; returns whether more is left to delete."""
    newest = connection.scalar(select(func.max(CALL.c.id))) or 0
    beyond = select(CALL.c.id).where(CALL.c.id <= newest - MOST_CALLS).limit(ROWS_PER_TRANSACTION)
    old = list(connection.scalars(beyond))
    connection.execute(delete(CALL).where(CALL.c.id.in_(old)))
    return len(old) == ROWS_PER_TRANSACTION


def prune(before_s: float, connection: Connection) -> bool:
    """Delete the entries before a time, or a bounded part of them; returns whether more is left to delete."""
    is_more = False
    for table in (SWITCH_WRITE, CALL):
        old = list(connection.scalars(select(table.c.id).where(table.c.time_s < before_s).limit(ROWS_PER_TRANSACTION)))
        connection.execute(delete(table).where(table.c.id.in_(old)))
        is_more = is_more or len(old) == ROWS_PER_TRANSACTION
    return is_more
