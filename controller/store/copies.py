"""Copies of a database in files of SQLite, each of one state, also where a controller writes to the database."""

import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Connection, MetaData, Table, insert, select
from sqlalchemy.engine import URL

from controller.errors import StoreError
from controller.store.batches import execute
from controller.store.database import Database
from controller.store.engine import engine_of
from controller.store.migration import (
    FIRST_REVISION,
    Access,
    UnfitSchemaError,
    run_revisions,
    stored_version,
)
from controller.store.schema import METADATA, SCHEMA_VERSION
from controller.store.seal import unseal

_ROWS_AT_ONCE = 100


def copy_to_file(database: Database, path: Path) -> None:
    """Copy a database that was opened to be read to an empty file. Raises StoreError.

    The copy has the same version of the schema, and no seal.
    """
    if database.engine.dialect.name == "sqlite":
        _copy_pages(database, path)
    else:
        engine = engine_of(file_url(path))
        try:
            with engine.begin() as target:
                database.read(lambda source: _copy_tables(source, target))
        finally:
            engine.dispose()


def file_url(path: Path) -> URL:
    """The URL of an SQLite database in a file."""
    return URL.create("sqlite", database=str(path.absolute()))


def copy_rows(tables: Iterable[Table], source: Connection, target: Connection) -> None:
    """Copy all rows of these tables, in this order, to tables of the same names and columns."""
    for table in tables:
        found = source.execute(select(table).execution_options(yield_per=_ROWS_AT_ONCE))
        for rows in found.mappings().partitions():
            execute(target, insert(table), [dict(row) for row in rows])


@contextmanager
def up_to_date(database: Database) -> Iterator[Database]:
    """The database, which was opened to be read, or an upgraded copy where its schema is older. Raises StoreError."""
    if database.read(stored_version) == SCHEMA_VERSION:
        yield database
        return
    with tempfile.TemporaryDirectory(prefix="trainyard-") as folder:
        path = Path(folder) / "copy.db"
        path.touch(0o600)
        copy_to_file(database, path)
        Database.open(str(path), Access.WRITE).close()
        with closing(Database.open(str(path), Access.READ)) as upgraded:
            yield upgraded


def _copy_pages(database: Database, path: Path) -> None:
    source = database.engine.raw_connection()
    try:
        with closing(sqlite3.connect(path)) as target:
            assert isinstance(source.driver_connection, sqlite3.Connection)
            # In one step, which holds a read transaction meanwhile.
            source.driver_connection.backup(target)
            target.execute("PRAGMA journal_mode = DELETE").close()
            unseal(target)
    except sqlite3.Error as error:
        raise StoreError(f"{database.name}: cannot be copied: {error}") from error
    finally:
        source.close()


def _copy_tables(source: Connection, target: Connection) -> None:
    version = stored_version(source)
    if version is None or version < FIRST_REVISION:
        raise UnfitSchemaError(f"its schema has version {version}: upgrade it first")
    run_revisions(0, version, target)
    tables = METADATA
    if version != SCHEMA_VERSION:
        tables = MetaData()
        tables.reflect(target)
    copy_rows(tables.sorted_tables, source, target)
