"""A connection to the controller's database, with one thread that writes."""

import asyncio
import copy
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Self, TypeVar

from sqlalchemy import Connection, Engine, insert, inspect, select, update
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError

from controller.background import CancellableCall, SerialExecutor
from controller.errors import OutOfTermError, StoreError, UnknownOutcomeError
from controller.store.engine import engine_of, name_of, url_of
from controller.store.schema import METADATA, PROPERTY, SCHEMA_VERSION

_LOG = logging.getLogger(__name__)

_PATIENCE_S = 10.0
_CLOSING_S = 2.0
_VERSION = "schema_version"
_OLDER_VERSIONS = (1,)
"""They only lack tables, which are added."""

_ResultT = TypeVar("_ResultT")


class Health:
    """The health of a database: ``problem`` says why the last write failed, and is empty where it did not."""

    def __init__(self) -> None:
        self.problem = ""

    def report(self, problem: str) -> None:
        """Set the problem, empty where there is none; log when one appears or goes."""
        if problem and not self.problem:
            _LOG.error("%s", problem)
        elif self.problem and not problem:
            _LOG.warning("the database commits again")
        self.problem = problem


class Database:
    """An open database. When ``write`` returns, the transaction is on the disk.

    One thread writes, since SQLite has room for one; readers see a state between two transactions.

    Example::

        database = Database.open("controller.db")
        await database.write(lambda connection: connection.execute(insert(JOB), rows))
        jobs = database.read(lambda connection: connection.execute(select(JOB)).all())
        database.close()
    """

    def __init__(self, engine: Engine, patience_s: float = _PATIENCE_S) -> None:
        self.name = name_of(engine.url)
        self.engine = engine
        self.health = Health()
        self._patience_s = patience_s
        self._writer = SerialExecutor()
        self._guard: Callable[[Connection], None] = lambda _: None

    @classmethod
    def open(cls, address: str, *, may_be_new: bool = True) -> Self:
        """Open the database at a path (SQLite) or an SQLAlchemy URL, and create missing tables if it ``may_be_new``.

        Raises StoreError where it cannot be opened, does not exist, or was written by a newer version.
        """
        url = url_of(address)
        with _own_errors(name_of(url)):
            database = cls(engine_of(url, may_be_new=may_be_new))
            check = partial(_check_schema, database.name, may_be_new=may_be_new)
            try:
                database.write_now(check)
            except StoreError:
                database.write_now(check)  # another controller may just have created the tables
        return database

    def guarded(self, guard: Callable[[Connection], None]) -> Self:
        """The same database with a ``guard`` that every write begins with, and that may raise OutOfTermError."""
        database = copy.copy(self)
        database._guard = guard
        return database

    def read(self, work: Callable[[Connection], _ResultT]) -> _ResultT:
        """Do ``work``, which only reads, in one transaction. Raises StoreError."""
        with _own_errors(self.name), self.engine.connect() as connection:
            return work(connection)

    async def write(self, work: Callable[[Connection], _ResultT]) -> _ResultT:
        """Do ``work`` in one transaction, in the thread that writes.

        Raises:
            StoreError: The transaction has changed nothing.
            UnknownOutcomeError: It may have been committed, or still may be: raised after ten seconds without an
                answer at the latest.
        """
        try:
            result = await self._write_in_thread(work)
        except OutOfTermError:
            raise
        except StoreError as error:
            self.health.report(str(error))
            raise
        self.health.report("")
        return result

    async def _write_in_thread(self, work: Callable[[Connection], _ResultT]) -> _ResultT:
        call = CancellableCall(partial(self.write_now, work))
        try:
            writing = asyncio.get_running_loop().run_in_executor(self._writer, call)
        except RuntimeError as error:
            raise StoreError(f"{self.name}: has been closed") from error
        try:
            async with asyncio.timeout(self._patience_s):
                return await writing
        except TimeoutError as error:
            kind = StoreError if call.cancel() else UnknownOutcomeError
            raise kind(f"{self.name}: has not answered within {self._patience_s:g} s") from error

    def write_now(self, work: Callable[[Connection], _ResultT]) -> _ResultT:
        """Do ``work`` in one transaction, in this thread, however long it takes."""
        with _own_errors(self.name), self.engine.begin() as connection:
            self._guard(connection)
            return work(connection)

    def close(self) -> None:
        """Close the database once pending writes are done, or have taken too long."""
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
