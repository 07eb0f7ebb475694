"""Entries of the audit trail, read back from the database."""

from typing import ClassVar

from sqlalchemy import Connection, inspect, select

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


def newest_entries(number: int, connection: Connection) -> list[WriteEntry | CallEntry]:
    """The last entries of both kinds, in the order of their times. Raises DamagedRowError."""
    entries: list[WriteEntry | CallEntry] = []
    for model, table in ((WriteEntry, SWITCH_WRITE), (CallEntry, CALL)):
        if inspect(connection).has_table(table.name):  # which a database of version 2 does not have
            rows = connection.execute(select(table).order_by(table.c.id.desc()).limit(number)).all()
            entries += [checked_row(model, table.name, row.id, row) for row in reversed(rows)]
    return sorted(entries, key=lambda entry: entry.time_s)[-number:]
