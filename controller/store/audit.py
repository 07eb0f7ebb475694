"""The audit trail: every request to a switch, written in the background.

A write that fails is tried again until the database commits it.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, insert, select

from controller.background import BackgroundTask
from controller.clock import Clock
from controller.errors import StoreError, UnknownOutcomeError
from controller.southbound.p4runtime.writer import SwitchWrite
from controller.store.database import Database
from controller.store.schema import SWITCH_WRITE

_LOG = logging.getLogger(__name__)

_GATHER_S = 0.05
"""A Plan's requests to all switches fall within this time, and are written together."""
_RETRY_S = 1.0
_CLOSING_S = 2.0
_MOST_WAITING = 10_000
"""The most requests that wait for the database: some megabytes."""

_Row = dict[str, Any]

_RECORDED = [column for column in SWITCH_WRITE.c if column is not SWITCH_WRITE.c.id]
_SAME = delete(SWITCH_WRITE).where(and_(*(column == bindparam(f"of_{column.name}") for column in _RECORDED)))


class AuditTrail:
    """Records requests to switches, under the Plan of ``plan_number``.

    ``num_lost`` counts the requests that are not recorded, since too many waited for the database when they came.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self.plan_number = 0
        self.num_lost = 0
        self._database = database
        self._clock = clock
        self._waiting: list[_Row] = []
        self._num_uncertain = 0
        """How many of the first waiting rows the database may have already."""
        self._writing = BackgroundTask(self._write_all)

    def record(self, write: SwitchWrite) -> None:
        """Record a request that has been answered, or will not be."""
        if len(self._waiting) == _MOST_WAITING:
            if self.num_lost == 0:
                _LOG.error("requests to switches are not in the audit trail: %d wait for the database", _MOST_WAITING)
            self.num_lost += 1
            return
        self._waiting.append({"time_s": self._clock.now_s(), "plan": self.plan_number, **asdict(write)})
        self._writing.start()

    async def flush(self) -> None:
        """Wait until all recorded requests are in the database."""
        await self._writing.join()

    async def close(self) -> None:
        """Write what waits, if the database takes it soon; log how many requests are lost."""
        await self._writing.stop(_CLOSING_S)
        if lost := self.num_lost + len(self._waiting):
            _LOG.error("%d requests to switches are not in the audit trail", lost)

    async def _write_all(self) -> None:
        pause_s = _GATHER_S
        while self._waiting:
            await asyncio.sleep(pause_s)
            rows = tuple(self._waiting)
            try:
                await self._database.write(partial(_write, rows[: self._num_uncertain], rows))
            except StoreError as error:
                if isinstance(error, UnknownOutcomeError):
                    self._num_uncertain = len(rows)
                pause_s = _RETRY_S
            else:
                del self._waiting[: len(rows)]
                self._num_uncertain, pause_s = 0, _GATHER_S


def _write(uncertain: Sequence[_Row], rows: Sequence[_Row], connection: Connection) -> None:
    """Add rows; those of them that are ``uncertain`` may be there already, and are replaced."""
    if uncertain:
        connection.execute(_SAME, [{f"of_{name}": value for name, value in row.items()} for row in uncertain])
    connection.execute(insert(SWITCH_WRITE), rows)


def writes_between(after: int, last: int, connection: Connection) -> Iterator[_Row]:
    """The requests for Plans with numbers from ``after + 1`` to ``last``, in the order of their answers."""
    is_wanted = (SWITCH_WRITE.c.plan > after) & (SWITCH_WRITE.c.plan <= last)
    rows = connection.execute(select(SWITCH_WRITE).where(is_wanted).order_by(SWITCH_WRITE.c.id))
    for row in rows.mappings():
        yield {name: value for name, value in row.items() if name != SWITCH_WRITE.c.id.name}


def prune(before_s: float, connection: Connection) -> None:
    """Delete the requests before a time."""
    connection.execute(delete(SWITCH_WRITE).where(SWITCH_WRITE.c.time_s < before_s))
