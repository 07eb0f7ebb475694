"""The leader's lease as a row of the database, changed by compare-and-swap."""

from functools import partial
from typing import Annotated, Any, Self

from pydantic import Field
from sqlalchemy import ColumnElement, Connection, Row, delete, insert, select, update

from controller.errors import LockedError, OutOfTermError
from controller.leadership.lease import VACANT, LeaseRecord
from controller.store.database import Database
from controller.store.engine import BUSY_TIMEOUT_MS, limit_lock_wait
from controller.store.fencing import fence, is_running
from controller.store.process_mark import OWN_MARK
from controller.store.rows import StoredRow, Text, checked_row
from controller.store.schema import LEADERSHIP

_LAST_TERM = (1 << 31) - 1
_LONGEST_LEASE_S = 3600.0
_TERMS_AFTER_BACKUP = 100_000
_LOCK_WAIT_S = 0.5
"""How long a take-over waits for the lock before it fences the controller whose lease has ended."""


class DatabaseLease:
    """A LeaseTable in a database, by a connection of its own, so that it never waits for other writes."""

    def __init__(self, database: Database) -> None:
        self.database = database

    @classmethod
    def open(cls, address: str) -> Self:
        """Open the lease in the database at an address; see ``Database.open``."""
        return cls(Database.open(address))

    def close(self) -> None:
        """Close the connection."""
        self.database.close()

    async def read(self) -> LeaseRecord:
        """See LeaseTable."""
        return await self.database.write(_read)

    async def take(self, seen: LeaseRecord, record: LeaseRecord) -> bool:
        """See LeaseTable. The controller of the record ``seen`` is fenced where it still holds the lock."""
        take = partial(_take, seen, record)
        try:
            return await self.database.write(take)
        except LockedError:
            await self.database.write(partial(fence, seen.session))
            return await self.database.write(take)

    async def renew(self, term: int) -> bool:
        """See LeaseTable."""
        return await self.database.write(partial(_change, term, {"renewals": LEADERSHIP.c.renewals + 1}))

    async def give_back(self, term: int) -> None:
        """See LeaseTable."""
        await self.database.write(partial(_change, term, {"lease_s": 0.0}))

    async def is_running(self, record: LeaseRecord) -> bool:
        """Whether the controller of a record is known to be running, even without a lease that it renews."""
        return await self.database.write(partial(is_running, record.session))


def require_term(term: int, connection: Connection) -> None:
    """Let this transaction commit only in this term; raises OutOfTermError where another controller has the lease.

    It writes the row of the lease, as a controller does that takes it: one of the two waits for the other.
    """
    if not _change(term, {"term": term}, connection):
        raise OutOfTermError(f"another controller has taken the lease since term {term}")


class _LeaseRow(StoredRow):
    holder: Text
    term: Annotated[int, Field(ge=0, lt=_LAST_TERM)]
    renewals: Annotated[int, Field(ge=0)]
    lease_s: Annotated[float, Field(ge=0, le=_LONGEST_LEASE_S)]
    session: Text


def _read(connection: Connection) -> LeaseRecord:
    found = connection.execute(select(LEADERSHIP).order_by(LEADERSHIP.c.number).limit(1)).one_or_none()
    if found is None:
        return VACANT
    return lease_record(found)


def lease_record(found: Row[Any]) -> LeaseRecord:
    """Read a row of the lease. Raises DamagedRowError."""
    row = checked_row(_LeaseRow, LEADERSHIP.name, found.number, found)
    return LeaseRecord(row.holder, row.term, row.renewals, row.lease_s, row.session)


def continue_terms(least_term: int, connection: Connection) -> None:
    """Have the lease that was restored be free, and terms go on after ``least_term`` and far after its own.

    Switches refuse terms before those that they have seen, which may be of controllers after the backup.
    """
    record = _read(connection)
    term = min(max(least_term, record.term) + _TERMS_AFTER_BACKUP, _LAST_TERM - 1)
    connection.execute(delete(LEADERSHIP))
    values = {"holder": record.holder, "term": term, "renewals": 0, "lease_s": 0.0, "session": ""}
    connection.execute(insert(LEADERSHIP), {"number": 1, **values})


def _take(seen: LeaseRecord, record: LeaseRecord, connection: Connection) -> bool:
    limit_lock_wait(_LOCK_WAIT_S, connection)
    values = {"holder": record.holder, "term": record.term, "renewals": record.renewals, "lease_s": record.lease_s}
    values["session"] = OWN_MARK
    try:
        if seen == VACANT:
            # Of two controllers that are the first, the key of the row lets one.
            connection.execute(insert(LEADERSHIP), {"number": 1, **values})
            return True
        is_seen = (LEADERSHIP.c.term == seen.term) & (LEADERSHIP.c.renewals == seen.renewals)
        return _update(is_seen, values, connection)
    finally:
        if connection.dialect.name == "sqlite":
            limit_lock_wait(BUSY_TIMEOUT_MS / 1e3, connection)


def _change(term: int, values: dict[str, Any], connection: Connection) -> bool:
    return _update(LEADERSHIP.c.term == term, values, connection)


def _update(where: ColumnElement[bool], values: dict[str, Any], connection: Connection) -> bool:
    """Update a row; returns whether there was one."""
    return connection.execute(update(LEADERSHIP).where(where).values(values)).rowcount == 1
