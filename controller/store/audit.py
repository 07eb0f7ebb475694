"""The audit trail: every request to a switch, written in the background."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from controller.clock import Clock
from controller.southbound.writer import SwitchWrite
from controller.store.database import Database
from controller.store.errors import StoreError
from controller.store.schema import SWITCH_WRITE

_LOG = logging.getLogger(__name__)

_GATHER_S = 0.05
"""A Plan's requests to all switches come together."""

_Row = dict[str, Any]


class AuditTrail:
    """Takes note of requests to switches; ``plan_number`` is that of the Plan for which they are made."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.plan_number = 0
        self._database = database
        self._clock = clock
        self._waiting: list[_Row] = []
        self._writing: asyncio.Task[None] | None = None

    def note(self, write: SwitchWrite) -> None:
        """A request has been answered, or will not be."""
        self._waiting.append({"time_s": self._clock.now_s(), "plan": self.plan_number, **asdict(write)})
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())

    async def written(self) -> None:
        """Return once all that was noted is in the database, or could not be."""
        if self._writing is not None:
            await self._writing

    async def _write_all(self) -> None:
        try:
            await asyncio.sleep(_GATHER_S)
            while self._waiting:
                rows, self._waiting = self._waiting, []
                await self._database.write(partial(_insert, rows))
        except StoreError as error:
            _LOG.error("requests to switches are not in the audit trail: %s", error)
        finally:
            self._writing = None


def _insert(rows: Sequence[_Row], connection: Connection) -> None:
    connection.execute(insert(SWITCH_WRITE), rows)


def writes_between(after: int, last: int, connection: Connection) -> Iterator[_Row]:
    """The requests for the Plans after one up to another, by number, in the order of their answers."""
    is_asked = (SWITCH_WRITE.c.plan > after) & (SWITCH_WRITE.c.plan <= last)
    rows = connection.execute(select(SWITCH_WRITE).where(is_asked).order_by(SWITCH_WRITE.c.id))
    for row in rows.mappings():
        yield {name: value for name, value in row.items() if name != SWITCH_WRITE.c.id.name}


def prune(before_s: float, connection: Connection) -> None:
    """Forget what was before a time."""
    connection.execute(delete(SWITCH_WRITE).where(SWITCH_WRITE.c.time_s < before_s))
