"""The grace of a new database: how long rules found on switches are kept, since their jobs may not be known yet.

It is stored as the time that is left, which runs down only while a controller runs: a date would depend on the clock.
"""

from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Connection, Row, delete, insert, select

from controller.store.rows import Finite, StoredRow, checked_row
from controller.store.schema import PROPERTY

_NAME = "grace_left_s"


class _PropertyRow(StoredRow):
    value: Finite


class _GraceRow(_PropertyRow):
    value: Annotated[float, Field(ge=0, allow_inf_nan=False)]


def decoded_property(row: Row[Any]) -> float:
    """Decode a single value, the grace among them. Raises DamagedRowError."""
    return checked_row(_GraceRow if row.name == _NAME else _PropertyRow, PROPERTY.name, row.name, row).value


def read_grace_s(lease_s: float, connection: Connection) -> float:
    """The grace that is left, never more than one lease; all of it for the first controller on a database."""
    row = connection.execute(select(PROPERTY.c.value).where(PROPERTY.c.name == _NAME)).one_or_none()
    return lease_s if row is None else min(lease_s, checked_row(_GraceRow, PROPERTY.name, _NAME, row).value)


def begin_grace(connection: Connection) -> None:
    """Have the next controller give all of the grace, as on a new database."""
    connection.execute(delete(PROPERTY).where(PROPERTY.c.name == _NAME))


def write_grace_s(left_s: float, connection: Connection) -> None:
    """Store the grace that is left."""
    begin_grace(connection)
    connection.execute(insert(PROPERTY), {"name": _NAME, "value": left_s})
