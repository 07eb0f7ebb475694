"""Entries of the audit trail, read back from the database."""

from typing import Any, ClassVar, TypeVar

from sqlalchemy import Connection, Row, Table, inspect, select

from controller.store.rows import Finite, StoredRow, Text, checked_row
from controller.store.schema import CALL, SWITCH_WRITE


class WriteEntry(StoredRow):
    """A request to a switch."""

    kind: ClassVar = "write"

    time_s: Finite
    plan: int
    switch: Text
    inserted: int
    modified: int
    deleted: int
    outcome: Text
    problem: Text


class CallEntry(StoredRow):
    """A call of an identity."""

    kind: ClassVar = "call"

    time_s: Finite
    identity: Text
    tenant: Text
    role: Text
    method: Text
    subject: Text
    outcome: Text
    problem: Text


_EntryT = TypeVar("_EntryT", WriteEntry, CallEntry)


def newest_entries(number: int, connection: Connection) -> list[WriteEntry | CallEntry]:
    """The last entries of both kinds, in the order of their times. Raises DamagedRowError."""
    writes = _newest(WriteEntry, SWITCH_WRITE, number, connection)
    calls = _newest(CallEntry, CALL, number, connection)
    entries: list[WriteEntry | CallEntry] = [*writes, *calls]
    return sorted(entries, key=lambda entry: entry.time_s)[-number:]


def _newest(model: type[_EntryT], table: Table, number: int, connection: Connection) -> list[_EntryT]:
    if not inspect(connection).has_table(table.name):  # version 2 has no calls
        return []
    rows = connection.execute(select(table).order_by(table.c.id.desc()).limit(number)).all()
    return [_entry(model, table, row) for row in reversed(rows)]


def decoded_write(row: Row[Any]) -> WriteEntry:
    """Decode a request to a switch. Raises DamagedRowError."""
    return _entry(WriteEntry, SWITCH_WRITE, row)


def decoded_call(row: Row[Any]) -> CallEntry:
    """Decode a call. Raises DamagedRowError."""
    return _entry(CallEntry, CALL, row)


def _entry(model: type[_EntryT], table: Table, row: Row[Any]) -> _EntryT:
    return checked_row(model, table.name, row.id, row)
