"""A connection to the controller's database, with one thread that writes."""

import asyncio
import copy
import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Self, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError

from controller.background import CancellableCall, SerialExecutor
from controller.errors import LockedError, OutOfTermError, StoreError, UnknownOutcomeError
from controller.store.addresses import name_of, url_of, without_secrets
from controller.store.engine import engine_of, path_of
from controller.store.files import OpenedFile, UnfitFileError, prepare_file, remove_if_empty
from controller.store.migration import Access, UnfitSchemaError, check_schema
from controller.store.rows import DamagedRowError

_LOG = logging.getLogger(__name__)

_PATIENCE_S = 10.0
_CLOSING_S = 2.0
_LOCK_NOT_AVAILABLE = "55P03"
"""PostgreSQL's code for a lock that was waited for too long."""

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
        self._file: OpenedFile | None = None

    @classmethod
    def open(cls, address: str, access: Access = Access.CREATE) -> Self:
        """Open the database at a path (SQLite) or an SQLAlchemy URL.

        Waits are bounded, except with ``Access.READ``: what merely reads one has all the time it needs.

        Raises StoreError where it cannot be opened, does not exist, or was written by a newer version.
        """
        url = url_of(address)
        path = None
        with _own_errors(url):
            path = path_of(url)
            is_created = path is not None and prepare_file(path, may_be_new=access is Access.CREATE)
            database = cls(engine_of(url, is_bounded=access is not Access.READ))
            check = partial(check_schema, access)
            try:
                try:
                    database.write_now(check)
                except StoreError:
                    database.write_now(check)  # another controller may just have created the tables
            except StoreError:
                database.close()
                if is_created and path is not None:
                    remove_if_empty(path)
                raise
            if path is not None and access is not Access.READ:
                database._file = OpenedFile(path)
        return database

    def guarded(self, guard: Callable[[Connection], None]) -> Self:
        """The same database with a ``guard`` that every write begins with, and that may raise OutOfTermError."""
        database = copy.copy(self)
        database._guard = guard
        return database

    def read(self, work: Callable[[Connection], _ResultT]) -> _ResultT:
        """Do ``work``, which only reads, in one transaction. Raises StoreError."""
        with _own_errors(self.engine.url), self.engine.connect() as connection:
            return work(connection)

    def decode(self, work: Callable[[], _ResultT]) -> _ResultT:
        """Do ``work`` on what was read, outside a transaction: a server ends one that is idle for long.

        Raises StoreError where a row is damaged.
        """
        with _own_errors(self.engine.url):
            return work()

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
        with _own_errors(self.engine.url), self.engine.begin() as connection:
            self._guard(connection)
            result = work(connection)
            if self._file is not None:
                self._file.check()
            return result

    def close(self) -> None:
        """Close the database once pending writes are done, or have taken too long."""
        self._writer.close(_CLOSING_S)
        self.engine.dispose()


@contextmanager
def _own_errors(url: URL) -> Iterator[None]:
    """Raise what may go wrong with a database as StoreError, on one line and without secrets."""
    try:
        yield
    except DBAPIError as error:
        raise _error_of_driver(error)(f"{name_of(url)}: {without_secrets(_text_of(error.orig), url)}") from error
    except NoSuchModuleError as error:
        raise StoreError(f"{name_of(url)}: no such kind of database is known") from error
    except ModuleNotFoundError as error:
        raise StoreError(f"{name_of(url)}: its driver {error.name!r} is not installed") from error
    except (SQLAlchemyError, UnfitFileError, UnfitSchemaError, DamagedRowError) as error:
        raise StoreError(f"{name_of(url)}: {without_secrets(str(error), url)}") from error


def _error_of_driver(error: DBAPIError) -> type[StoreError]:
    if error.connection_invalidated:  # which may happen while it commits
        return UnknownOutcomeError
    is_busy = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
    return LockedError if is_busy or getattr(error.orig, "sqlstate", None) == _LOCK_NOT_AVAILABLE else StoreError


def _text_of(error: BaseException | None) -> str:
    """What a driver says, without the details of PostgreSQL, which quote whole rows."""
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    return str(primary or error)
