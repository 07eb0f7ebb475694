"""The controller's database: opened, checked, and written to by one thread."""

import asyncio
import copy
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, insert, inspect, select, update
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from controller.store.errors import StoreError
from controller.store.schema import METADATA, PROPERTY, SCHEMA_VERSION

_BUSY_TIMEOUT_MS = 5_000
_URL = re.compile(r"[a-z][a-z0-9+_]*://")
_VERSION = "schema_version"
_OLDER_VERSIONS = (1,)
"""They lack tables."""

_ResultT = TypeVar("_ResultT")


class Database:
    """A database that is open: what is written has been forced to the disk when ``write`` returns.

    One thread writes, since SQLite has room for one; readers see a state between two transactions.
    """

    def __init__(self, engine: Engine) -> None:
        self.name = _name(engine.url)
        self.engine = engine
        self._writer = ThreadPoolExecutor(1, "database")
        self._guard: Callable[[Connection], None] = lambda _: None

    @classmethod
    def open(cls, address: str, *, may_be_new: bool = True) -> Self:
        """The database at a path (SQLite) or an SQLAlchemy URL, its tables made where it lacks some and may be new.

        Raises StoreError where it cannot be opened, is not there, or was written by a newer version.
        """
        url = url_of(address)
        with _own_errors(_name(url)):
            engine = create_engine(url)
            if engine.dialect.name == "sqlite":
                _prepare_file(url, may_be_new=may_be_new)
                _prepare_sqlite(engine)
            database = cls(engine)
            check = partial(_check_schema, database.name, may_be_new=may_be_new)
            try:
                database.write_now(check)
            except StoreError:
                database.write_now(check)  # another controller may just have made the tables
        return database

    def guarded(self, guard: Callable[[Connection], None]) -> Self:
        """The same, with ``guard`` first in every transaction that writes: it may end one by raising StoreError."""
        database = copy.copy(self)
        database._guard = guard
        return database

    def read(self, work: Callable[[Connection], _ResultT]) -> _ResultT:
        """Do ``work``, which only reads, in one transaction. Raises StoreError."""
        with _own_errors(self.name), self.engine.connect() as connection:
            return work(connection)

    async def write(self, work: Callable[[Connection], _ResultT]) -> _ResultT:
        """Do ``work`` in one transaction, in the thread that writes; raises StoreError where it has changed nothing."""
        try:
            writing = asyncio.get_running_loop().run_in_executor(self._writer, self.write_now, work)
        except RuntimeError as error:
            raise StoreError(f"{self.name}: has been closed") from error
        return await writing

    def write_now(self, work: Callable[[Connection], _ResultT]) -> _ResultT:
        """The same in this thread."""
        with _own_errors(self.name), self.engine.begin() as connection:
            self._guard(connection)
            return work(connection)

    def close(self) -> None:
        """Close it, once all that was given to ``write`` is written."""
        self._writer.shutdown()
        self.engine.dispose()


def url_of(address: str) -> URL:
    """The URL of a database that is given as one, or as a path; raises StoreError for one that cannot be read."""
    if _URL.match(address) is None:
        return URL.create("sqlite", database=address)
    try:
        return make_url(address)
    except (ArgumentError, ValueError) as error:
        raise StoreError("database: not a URL that can be read") from error


def _name(url: URL) -> str:
    is_file = url.get_backend_name() == "sqlite" and url.database
    return f"database {url.database if is_file else url.render_as_string(hide_password=True)}"


@contextmanager
def _own_errors(name: str) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        raise StoreError(f"{name}: {' '.join(str(error.orig).split())}") from error
    except NoSuchModuleError as error:
        raise StoreError(f"{name}: no such kind of database is known") from error
    except SQLAlchemyError as error:
        raise StoreError(f"{name}: {error}") from error
    except ModuleNotFoundError as error:
        raise StoreError(f"{name}: its driver {error.name!r} is not installed") from error


def _prepare_file(url: URL, *, may_be_new: bool) -> None:
    """Make the file where there is none, for its owner alone: the owner tokens in it are worth withdrawing jobs."""
    if not url.database or url.database == ":memory:":
        return
    path = Path(url.database)
    if not may_be_new and not path.exists():
        raise StoreError(f"{_name(url)}: there is no such file")
    with suppress(OSError):  # SQLite says better what is wrong
        path.touch(0o600)


def _prepare_sqlite(engine: Engine) -> None:
    """A commit is on the disk when it returns, readers and the writer do not wait for one another."""

    @event.listens_for(engine, "connect")
    def connect(connection: Any, _: object) -> None:
        # SQLAlchemy begins transactions then, before DDL and reads too, as other databases do.
        connection.isolation_level = None
        for pragma in (
            f"busy_timeout = {_BUSY_TIMEOUT_MS}",
            "journal_mode = WAL",
            "synchronous = FULL",
            "foreign_keys = ON",
        ):
            connection.execute(f"PRAGMA {pragma}").close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")


def _check_schema(name: str, connection: Connection, *, may_be_new: bool) -> None:
    if not inspect(connection).has_table(PROPERTY.name):
        if not may_be_new:
            raise StoreError(f"{name}: holds nothing of Trainyard")
        METADATA.create_all(connection)
        connection.execute(insert(PROPERTY), {"name": _VERSION, "value": SCHEMA_VERSION})
        return
    version = connection.scalar(select(PROPERTY.c.value).where(PROPERTY.c.name == _VERSION))
    if version in _OLDER_VERSIONS:
        if may_be_new:
            METADATA.create_all(connection)
            connection.execute(update(PROPERTY).where(PROPERTY.c.name == _VERSION).values(value=SCHEMA_VERSION))
    elif version != SCHEMA_VERSION:
        known = "none" if version is None else f"{version:g}"
        raise StoreError(f"{name}: its schema has version {known}, and this Trainyard reads version {SCHEMA_VERSION}")
