"""The seal of a backup: a table in it that has the number of rows and a digest of every other table.

A backup that was changed, by a disk or by somebody, is told by it. No database that is written to has one.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import NamedTuple

from sqlalchemy import (
    Column,
    Connection,
    Integer,
    MetaData,
    Table,
    Text,
    insert,
    inspect,
    quoted_name,
    select,
    table,
    text,
)
from sqlalchemy.sql.ddl import CreateTable

from controller.store.files import BACKUP_ID
from controller.store.rows import shown

SEAL = Table(
    "backup",
    MetaData(),
    Column("name", Text, primary_key=True),
    Column("num_rows", Integer, nullable=False),
    Column("sha256", Text, nullable=False),
)


class _Contents(NamedTuple):
    num_rows: int
    sha256: str


def is_sealed(connection: Connection) -> bool:
    """Whether the database is a backup."""
    return inspect(connection).has_table(SEAL.name)


def seal(connection: Connection) -> Mapping[str, int]:
    """Seal what an SQLite database holds, which cannot be opened to be written then; returns the rows by table."""
    contents = _contents(connection)
    connection.execute(CreateTable(SEAL))
    rows = [{"name": name, **of_table._asdict()} for name, of_table in contents.items()]
    connection.execute(insert(SEAL), rows)
    connection.exec_driver_sql(f"PRAGMA application_id = {int.from_bytes(BACKUP_ID)}").close()
    return {name: of_table.num_rows for name, of_table in contents.items()}


def unseal(connection: sqlite3.Connection) -> None:
    """Take the seal off a copy of a backup."""
    connection.execute(f"DROP TABLE IF EXISTS {SEAL.name}").close()
    connection.execute("PRAGMA application_id = 0").close()


def broken_seals(connection: Connection) -> Iterator[str]:
    """What a backup holds otherwise than when it was made."""
    sealed = {row.name: _Contents(row.num_rows, row.sha256) for row in connection.execute(select(SEAL)).all()}
    found = _contents(connection)
    for name in sorted(sealed.keys() | found.keys()):
        before, now = sealed.get(name), found.get(name)
        if before is None:
            yield f"table {shown(name)}: is no part of the backup"
        elif now is None:
            yield f"table {shown(name)}: is missing"
        elif now.num_rows != before.num_rows:
            yield f"table {shown(name)}: has {now.num_rows:,} rows, where {before.num_rows:,} were backed up"
        elif now != before:
            yield f"table {shown(name)}: is not what was backed up"


def _contents(connection: Connection) -> dict[str, _Contents]:
    names = sorted(set(inspect(connection).get_table_names()) - {SEAL.name})
    with text_read_by(bytes, connection):
        return {name: _contents_of(name, connection) for name in names}


def _contents_of(name: str, connection: Connection) -> _Contents:
    digest, num_rows = sha256(), 0
    # In the order of their rowids, which a file that is copied or moved keeps.
    of_table = table(quoted_name(name, quote=True))
    rows = connection.execute(select(text("*")).select_from(of_table).order_by(text("rowid")))
    digest.update(repr(tuple(rows.keys())).encode())
    for row in rows:
        digest.update(repr(tuple(row)).encode())
        num_rows += 1
    return _Contents(num_rows, digest.hexdigest())


@contextmanager
def text_read_by(read: Callable[[bytes], str | bytes], connection: Connection) -> Iterator[None]:
    """Have a function read text of an SQLite database meanwhile, which need not be UTF-8; others only store that."""
    driver = connection.connection.driver_connection
    if isinstance(driver, sqlite3.Connection):
        driver.text_factory = read
    try:
        yield
    finally:
        if isinstance(driver, sqlite3.Connection):
            driver.text_factory = str
