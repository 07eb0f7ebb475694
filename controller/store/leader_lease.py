"""The leader's lease as a row of the database, changed by compare-and-swap."""

from functools import partial
from typing import Any, Self

from sqlalchemy import ColumnElement, Connection, insert, select, update

from controller.errors import OutOfTermError
from controller.leadership.lease import VACANT, LeaseRecord
from controller.store.database import Database
from controller.store.schema import LEADERSHIP


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
        """See LeaseTable."""
        return await self.database.write(partial(_take, seen, record))

    async def renew(self, term: int) -> bool:
        """See LeaseTable."""
        return await self.database.write(partial(_change, term, {"renewals": LEADERSHIP.c.renewals + 1}))

    async def give_back(self, term: int) -> None:
        """See LeaseTable."""
        await self.database.write(partial(_change, term, {"lease_s": 0.0}))


def require_term(term: int, connection: Connection) -> None:
    """Let this transaction commit only in this term; raises OutOfTermError where another controller has the lease.

    It writes the row of the lease, as a controller does that takes it: one of the two waits for the other.
    """
    if not _change(term, {"term": term}, connection):
        raise OutOfTermError(f"another controller has taken the lease since term {term}")


def _read(connection: Connection) -> LeaseRecord:
    row = connection.execute(select(LEADERSHIP)).one_or_none()
    return VACANT if row is None else LeaseRecord(row.holder, row.term, row.renewals, row.lease_s)


def _take(seen: LeaseRecord, record: LeaseRecord, connection: Connection) -> bool:
    values = {"holder": record.holder, "term": record.term, "renewals": record.renewals, "lease_s": record.lease_s}
    if seen == VACANT:
        # Of two controllers that are the first, the key of the row lets one.
        connection.execute(insert(LEADERSHIP), {"number": 1, **values})
        return True
    is_seen = (LEADERSHIP.c.term == seen.term) & (LEADERSHIP.c.renewals == seen.renewals)
    return _update(is_seen, values, connection)


def _change(term: int, values: dict[str, Any], connection: Connection) -> bool:
    return _update(LEADERSHIP.c.term == term, values, connection)


def _update(where: ColumnElement[bool], values: dict[str, Any], connection: Connection) -> bool:
    """Update a row; returns whether there was one."""
    return connection.execute(update(LEADERSHIP).where(where).values(values)).rowcount == 1
