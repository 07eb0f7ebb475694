"""Rows as they are read: checked, since a damaged database or another program may have put anything there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from controller.errors import DaemonError
from controller.registry.errors import InvalidFieldError

_SHOWN_CHARACTERS = 80

_ValueT = TypeVar("_ValueT")
_RowT = TypeVar("_RowT", bound="StoredRow")


class DamagedRowError(DaemonError, ValueError):
    """A row that cannot be what it claims; the message names its ``table``, the row and the column."""

    def __init__(self, table: str, row: object, problem: str) -> None:
        self.table = table
        super().__init__(f"table {table}, row {shown(row)}: {problem}")


class StoredRow(BaseModel):
    """A row with columns of exactly these types."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", from_attributes=True)


Finite = Annotated[float, Field(allow_inf_nan=False)]
"""A number; PostgreSQL also stores those that are none."""


def _encodable(text: str) -> str:
    text.encode()  # raises UnicodeEncodeError, which is a ValueError
    return text


Text = Annotated[str, AfterValidator(_encodable)]
"""Text that can be written out again."""


OnDamage = Callable[[DamagedRowError], None]


def raise_damage(error: DamagedRowError) -> None:
    """End at the first damaged row; who wants to know of all passes another function."""
    raise error


@contextmanager
def reported(on_damage: OnDamage) -> Iterator[None]:
    """Report a row that is damaged, and go on behind the block unless that raises."""
    try:
        yield
    except DamagedRowError as error:
        on_damage(error)


def checked_row(model: type[_RowT], table: str, key: object, row: object) -> _RowT:
    """Check a row of a table. Raises DamagedRowError."""
    with naming(table, key):
        return model.model_validate(row)


def checked_json(adapter: TypeAdapter[_ValueT], table: str, key: object, column: str, text: object) -> _ValueT:
    """Read a column that holds JSON. Raises DamagedRowError."""
    if not isinstance(text, str):
        raise DamagedRowError(table, key, f"{column}: is not text")
    with naming(table, key, f"{column}: "):
        return adapter.validate_json(text, strict=True)


@contextmanager
def naming(table: str, key: object, prefix: str = "") -> Iterator[None]:
    """Raise what goes wrong with a row's values as DamagedRowError, which names the row."""
    try:
        yield
    except DamagedRowError:
        raise
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = "".join(f"{part}: " if isinstance(part, str) else f"[{part}] " for part in fault["loc"])
        raise DamagedRowError(table, key, f"{prefix}{where}{_line(fault['msg'])}") from error
    except InvalidFieldError as error:
        raise DamagedRowError(table, key, f"{prefix}{_line(str(error))}") from error
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        raise DamagedRowError(table, key, f"{prefix}{type(error).__name__}: {_line(str(error))}") from error


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 2 * _SHOWN_CHARACTERS else f"{line[: 2 * _SHOWN_CHARACTERS]}…"


def shown(key: object) -> str:
    """The key of a row for messages: printable, and not too long."""
    text = ascii(key)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
