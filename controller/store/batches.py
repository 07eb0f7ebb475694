"""Bounded batches: what goes to the database in one statement, and in one transaction."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Executable

ROWS_PER_TRANSACTION = 250
"""A transaction of so many rows keeps the next one waiting for some hundredths of a second."""
BYTES_PER_TRANSACTION = 4 << 20
_ROWS_PER_STATEMENT = 500
_BYTES_PER_STATEMENT = 256 << 10

_Row = Mapping[str, Any]


def execute(connection: Connection, statement: Executable, rows: Sequence[_Row]) -> None:
    """Execute a statement for every row, in messages of bounded size: a client may hang while it sends one."""
    for batch in batches(rows, _ROWS_PER_STATEMENT, _BYTES_PER_STATEMENT):
        connection.execute(statement, batch)


def batches(rows: Iterable[_Row], most_rows: int, most_bytes: int) -> Iterator[list[_Row]]:
    """Split rows into batches of at most so many rows and bytes; a row that is larger has one of its own."""
    batch: list[_Row] = []
    num_bytes = 0
    for row in rows:
        size_bytes = _size_bytes(row)
        if batch and (len(batch) == most_rows or num_bytes + size_bytes > most_bytes):
            yield batch
            batch, num_bytes = [], 0
        batch.append(row)
        num_bytes += size_bytes
    if batch:
        yield batch


def _size_bytes(row: _Row) -> int:
    """About what a row takes in a message."""
    return sum(len(value) if isinstance(value, str) else 8 for value in row.values())
