"""The grace of a new database: how long rules found on switches are kept, since their jobs may not be known yet.

It is stored as the time that is left, which runs down only while a controller runs: a date would depend on the clock.
"""

from typing import Annotated

from pydantic import Field
from sqlalchemy import Connection, delete, insert, select

from controller.store.rows import StoredRow, checked_row
from controller.store.schema import PROPERTY

_NAME = "grace_left_s"


class _GraceRow(StoredRow):
    value: Annotated[float, Field(ge=0, allow_inf_nan=False)]


def read_grace_s(lease_s: float, connection: Connection) -> float:
    """The grace that is left, never more than one lease; all of it for the first controller on a database."""
    row = connection.execute(select(PROPERTY.c.value).where(PROPERTY.c.name == _NAME)).one_or_none()
    return lease_s if row is None else min(lease_s, checked_row(_GraceRow, PROPERTY.name, _NAME, row).value)


def write_grace_s(left_s: float, connection: Connection) -> None:
    """Store the grace that is left."""
    connection.execute(delete(PROPERTY).where(PROPERTY.c.name == _NAME))
    connection.execute(insert(PROPERTY), {"name": _NAME, "value": left_s})
