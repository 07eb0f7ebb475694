"""A connection to the controller's database, with one thread that writes."""

import asyncio
import copy
import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import Self, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError

from controller.background import CancellableCall, SerialExecutor
from controller.errors import LockedError, OutOfTermError, StoreError, UnknownOutcomeError
from controller.events import BurstLog, EventKind
from controller.metrics import COMMITS
from controller.store.addresses import name_of, url_of, without_secrets
from controller.store.engine import engine_of, path_of
from controller.store.files import OpenedFile, UnfitFileError, prepare_file, remove_if_empty, require_no_backup
from controller.store.migration import Access, UnfitSchemaError, prepare_schema
from controller.store.rows import DamagedRowError

_LOG = logging.getLogger(__name__)

_PATIENCE_S = 10.0
_CLOSING_S = 2.0
_LOCK_NOT_AVAILABLE = "55P03"
"""PostgreSQL's code for a lock that was waited for too long."""

_ResultT = TypeVar("_ResultT")


class Health:
    """The health of a database: ``problem`` says why nothing can be stored, and is empty where the last write was."""

    def __init__(self) -> None:
        self._failure = ""
        self._lost_lease = ""
        self._away = BurstLog(_LOG, logging.ERROR)
        self._back = BurstLog(_LOG, logging.WARNING)

    @property
    def problem(self) -> str:
        """Why the last write failed, or that another controller has the database."""
        return self._lost_lease or self._failure

    def report(self, failure: str) -> None:
        """Set why a write has failed, empty where it has not; log when a failure appears or goes."""
        if failure and not self._failure:
            self._away.tell(EventKind.DATABASE_AWAY, "%s", failure, problem=failure)
        elif self._failure and not failure:
            self._back.tell(EventKind.DATABASE_BACK, "the database commits again")
        self._failure = failure

    def lose_lease(self, problem: str) -> None:
        """Set that another controller has the database, which lasts until a term begins here; log it once."""
        if not self._lost_lease:
            self._away.tell(EventKind.DATABASE_AWAY, "%s", problem, problem=problem)
        self._lost_lease = problem

    def begin_term(self) -> None:
        """Forget that another controller had the database."""
        self._lost_lease = ""


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

        Waits are bounded, except with ``Access.READ``: what merely reads one has all the time it needs, and sees one
        state in each transaction.

        Raises StoreError where it cannot be opened, does not exist, or was written by a newer version.
        """
        url = url_of(address)
        path = None
        with _own_errors(url):
            path = path_of(url)
            is_created = path is not None and prepare_file(path, may_be_new=access in (Access.CREATE, Access.RESTORE))
            if path is not None and access is not Access.READ:
                require_no_backup(path)
            database = cls(engine_of(url, only_reads=access is Access.READ))
            prepare = partial(prepare_schema, access)
            try:
                try:
                    database.write_now(prepare)
                except StoreError:
                    database.write_now(prepare)  # another controller may just have created the tables
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
        self.health.begin_term()
        database = copy.copy(self)
        database._guard = guard
        return database

    @property
    def num_waiting(self) -> int:
        """How many transactions wait for the thread that writes."""
        return self._writer.num_waiting

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
        began_s = monotonic()
        try:
            result = await self._write_in_thread(work)
        except OutOfTermError as error:
            self.health.lose_lease(f"{self.name}: {error}")
            raise
        except StoreError as error:
            COMMITS.labels("failed").observe(monotonic() - began_s)
            self.health.report(str(error))
            raise
        COMMITS.labels("committed").observe(monotonic() - began_s)
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


class DamagedDatabaseError(StoreError):
    """The file is no whole database of SQLite."""


def _error_of_driver(error: DBAPIError) -> type[StoreError]:
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return DamagedDatabaseError
    if error.connection_invalidated:  # which may happen while it commits
        return UnknownOutcomeError
    return (
        LockedError
        if code == sqlite3.SQLITE_BUSY or getattr(error.orig, "sqlstate", None) == _LOCK_NOT_AVAILABLE
        else StoreError
    )


def _text_of(error: BaseException | None) -> str:
    """What a driver says, without the details of PostgreSQL, which quote whole rows."""
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    return str(primary or error)
