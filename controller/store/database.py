"""The controller's database: opened, checked, and written to by one thread."""

import asyncio
import copy
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Self, TypeVar

from sqlalchemy import Connection, Engine, insert, inspect, select, update
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError

from controller.errors import OutOfTermError, StoreError, UnknownOutcomeError
from controller.store.connecting import engine_of, name_of, url_of
from controller.store.schema import METADATA, PROPERTY, SCHEMA_VERSION
from controller.store.writing import Once, Writer

_LOG = logging.getLogger(__name__)

_PATIENCE_S = 10.0
_CLOSING_S = 2.0
_VERSION = "schema_version"
_OLDER_VERSIONS = (1,)
"""They lack tables."""

_ResultT = TypeVar("_ResultT")


class Health:
    """How a database does: ``problem`` is why it has not taken what it was given last; empty where it has."""

    def __init__(self) -> None:
        self.problem = ""

    def note(self, problem: str) -> None:
        """It has a problem, or none any longer; the log is told what is new."""
        if problem and not self.problem:
            _LOG.error("%s", problem)
        elif self.problem and not problem:
            _LOG.warning("the database takes what it is given again")
        self.problem = problem


class Database:
    """A database that is open: what is written has been forced to the disk when ``write`` returns.

    One thread writes, since SQLite has room for one; readers see a state between two transactions.
    """

    def __init__(self, engine: Engine, patience_s: float = _PATIENCE_S) -> None:
        self.name = name_of(engine.url)
        self.engine = engine
        self.health = Health()
        self._patience_s = patience_s
        self._writer = Writer()
        self._guard: Callable[[Connection], None] = lambda _: None

    @classmethod
    def open(cls, address: str, *, may_be_new: bool = True) -> Self:
        """The database at a path (SQLite) or an SQLAlchemy URL, its tables made where it lacks some and may be new.

        Raises StoreError where it cannot be opened, is not there, or was written by a newer version.
        """
        url = url_of(address)
        with _own_errors(name_of(url)):
            database = cls(engine_of(url, may_be_new=may_be_new))
            check = partial(_check_schema, database.name, may_be_new=may_be_new)
            try:
                database.write_now(check)
            except StoreError:
                database.write_now(check)  # another controller may just have made the tables
        return database

    def guarded(self, guard: Callable[[Connection], None]) -> Self:
        """The same, with ``guard`` first in every transaction that writes: it may end one by raising OutOfTermError."""
        database = copy.copy(self)
        database._guard = guard
        return database

    def read(self, work: Callable[[Connection], _ResultT]) -> _ResultT:
        """Do ``work``, which only reads, in one transaction. Raises StoreError."""
        with _own_errors(self.name), self.engine.connect() as connection:
            return work(connection)

    async def write(self, work: Callable[[Connection], _ResultT]) -> _ResultT:
        """Do ``work`` in one transaction, in the thread that writes.

        Raises StoreError where that has changed nothing, and UnknownOutcomeError where it may have, or still may: after
        ten seconds without an answer at the latest.
        """
        try:
            result = await self._written(work)
        except OutOfTermError:
            raise
        except StoreError as error:
            self.health.note(str(error))
            raise
        self.health.note("")
        return result

    async def _written(self, work: Callable[[Connection], _ResultT]) -> _ResultT:
        once = Once(partial(self.write_now, work))
        try:
            writing = asyncio.get_running_loop().run_in_executor(self._writer, once)
        except RuntimeError as error:
            raise StoreError(f"{self.name}: has been closed") from error
        try:
            async with asyncio.timeout(self._patience_s):
                return await writing
        except TimeoutError as error:
            kind = StoreError if once.withdraw() else UnknownOutcomeError
            raise kind(f"{self.name}: has not answered within {self._patience_s:g} s") from error

    def write_now(self, work: Callable[[Connection], _ResultT]) -> _ResultT:
        """The same in this thread, however long it takes."""
        with _own_errors(self.name), self.engine.begin() as connection:
            self._guard(connection)
            return work(connection)

    def close(self) -> None:
        """Close it, once all that was given to ``write`` is written, or does not get written in time."""
        self._writer.close(_CLOSING_S)
        self.engine.dispose()


@contextmanager
def _own_errors(name: str) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        # A connection that breaks may do so while it commits.
        kind = UnknownOutcomeError if error.connection_invalidated else StoreError
        raise kind(f"{name}: {' '.join(str(error.orig).split())}") from error
    except NoSuchModuleError as error:
        raise StoreError(f"{name}: no such kind of database is known") from error
    except SQLAlchemyError as error:
        raise StoreError(f"{name}: {error}") from error
    except ModuleNotFoundError as error:
        raise StoreError(f"{name}: its driver {error.name!r} is not installed") from error


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
