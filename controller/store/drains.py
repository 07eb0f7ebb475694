"""Drains in the database, so that they outlive the controller."""

from sqlalchemy import Connection, delete, insert, select

from controller.links.drains import Drain, DrainKind, DrainTarget
from controller.store.rows import Finite, StoredRow, Text, checked_row, naming
from controller.store.schema import DRAIN


class _DrainRow(StoredRow):
    kind: Text
    name: Text
    is_forced: bool
    since_s: Finite
    by: Text


def read_drains(connection: Connection) -> list[Drain]:
    """The drains, in the order in which they were asked for. Raises DamagedRowError."""
    return [
        decoded_drain(row)
        for row in connection.execute(select(DRAIN).order_by(DRAIN.c.since_s, DRAIN.c.kind, DRAIN.c.name))
    ]


def write_drain(drain: Drain, connection: Connection) -> None:
    """Store a drain, in the place of another one of the same target."""
    delete_drain(drain.target, connection)
    kind, name = str(drain.target.kind), drain.target.name
    values = {"kind": kind, "name": name, "is_forced": drain.is_forced, "since_s": drain.since_s, "by": drain.by}
    connection.execute(insert(DRAIN), values)


def delete_drain(target: DrainTarget, connection: Connection) -> None:
    """Delete the drain of a target."""
    connection.execute(delete(DRAIN).where((DRAIN.c.kind == str(target.kind)) & (DRAIN.c.name == target.name)))


def decoded_drain(row: object) -> Drain:
    """Decode a drain. Raises DamagedRowError."""
    key = f"{getattr(row, 'kind', None)} {getattr(row, 'name', None)}"
    read = checked_row(_DrainRow, DRAIN.name, key, row)
    with naming(DRAIN.name, key):
        return Drain(DrainTarget(DrainKind(read.kind), read.name), read.is_forced, read.since_s, read.by)
