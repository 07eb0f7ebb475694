"""Pauses and pins in the database, so that they outlive the controller."""

from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Connection, Row, delete, insert, select

from controller.planning.interventions import HandPin, Pause
from controller.store.rows import DamagedRowError, Finite, StoredRow, Text, checked_row, naming
from controller.store.schema import PAUSE, PIN

_ONLY = 1
"""The number of the row of the pause."""


class _PauseRow(StoredRow):
    since_s: Finite
    by: Text
    reason: Text
    is_released: bool


class _PinRow(StoredRow):
    target: Text
    level: Annotated[int, Field(ge=0, le=7)] | None
    path: Text | None
    since_s: Finite
    until_s: Finite
    by: Text


def read_interventions(connection: Connection) -> tuple[Pause | None, list[HandPin]]:
    """The pause, and the pins in the order in which they were made. Raises DamagedRowError."""
    paused = connection.execute(select(PAUSE).where(PAUSE.c.number == _ONLY)).one_or_none()
    pause = None if paused is None else decoded_pause(paused)
    pins = connection.execute(select(PIN).order_by(PIN.c.since_s, PIN.c.target))
    return pause, list(map(decoded_pin, pins))


def write_pause(pause: Pause | None, connection: Connection) -> None:
    """Store that planning is paused; None: that it is not."""
    connection.execute(delete(PAUSE))
    if pause is not None:
        values = {"since_s": pause.since_s, "by": pause.by, "reason": pause.reason, "is_released": pause.is_released}
        connection.execute(insert(PAUSE), {"number": _ONLY, **values})


def write_pin(pin: HandPin, connection: Connection) -> None:
    """Store a pin, in the place of another one of the same target and of all that have expired."""
    connection.execute(delete(PIN).where((PIN.c.target == pin.target) | (PIN.c.until_s <= pin.since_s)))
    values = {"level": pin.level, "path": pin.path, "since_s": pin.since_s, "until_s": pin.until_s, "by": pin.by}
    connection.execute(insert(PIN), {"target": pin.target, **values})


def delete_pin(target: str, connection: Connection) -> None:
    """Delete the pin of a target."""
    connection.execute(delete(PIN).where(PIN.c.target == target))


def decoded_pause(found: Row[Any]) -> Pause:
    """Decode a pause. Raises DamagedRowError."""
    row = checked_row(_PauseRow, PAUSE.name, found.number, found)
    return Pause(row.since_s, row.by, row.reason, row.is_released)


def decoded_pin(row: object) -> HandPin:
    """Decode a pin. Raises DamagedRowError."""
    key = getattr(row, "target", None)
    read = checked_row(_PinRow, PIN.name, key, row)
    pin = HandPin(read.target, read.level, read.path, read.since_s, read.until_s, read.by)
    with naming(PIN.name, key):
        is_of_flow = pin.flow is not None  # raises ValueError for a target that is none
    if (read.level is None) != is_of_flow:
        raise DamagedRowError(PIN.name, key, "level: a pin has a level or a path")
    return pin
