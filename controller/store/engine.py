"""SQLAlchemy engines whose commits are durable when they return, and whose waits are bounded.

Those that only read change nothing at all, have all the time they need, and see one state in each transaction.
"""

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL

from controller.store import postgresql

BUSY_TIMEOUT_MS = 5_000
_ALONE_WAIT_MS = 60_000
"""Another controller that brings the schema up to date takes seconds, where the database is large."""


def engine_of(url: URL, *, only_reads: bool = False) -> Engine:
    """Return an engine for a database.

    Raises:
        SQLAlchemyError: SQLAlchemy cannot make an engine for the URL.
    """
    # Parameters of statements hold the owner tokens of jobs, and errors would quote them.
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, hide_parameters=True)
        _prepare_sqlite(engine, only_reads=only_reads)
        return engine
    if url.get_dialect().driver not in postgresql.DRIVERS:
        return create_engine(url, pool_pre_ping=True, hide_parameters=True)
    if only_reads:
        engine = create_engine(url, isolation_level="REPEATABLE READ", pool_pre_ping=True, hide_parameters=True)
    else:
        arguments = postgresql.connect_arguments(url)
        engine = create_engine(url, connect_args=arguments, pool_pre_ping=True, hide_parameters=True)
    postgresql.prepare(engine, is_bounded=not only_reads)
    return engine


def path_of(url: URL) -> Path | None:
    """The file of an SQLite database; None where it has none."""
    is_file = url.get_backend_name() == "sqlite" and url.database and url.database != ":memory:"
    return Path(str(url.database)) if is_file and not str(url.database).startswith("file:") else None


def begin_alone(connection: Connection) -> None:
    """Begin this transaction anew once no other one that began so is under way; on SQLite, no other that writes.

    It may then take the time that it needs. Nothing may have been written in it before.
    """
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("ROLLBACK")
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {_ALONE_WAIT_MS}").close()
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}").close()
    elif connection.dialect.name == "postgresql":
        postgresql.begin_alone(_ALONE_WAIT_MS, connection)


def lift_limits(connection: Connection) -> None:
    """Let this transaction take the time that it needs."""
    if connection.dialect.name == "postgresql":
        postgresql.lift_limits(connection)


def limit_lock_wait(wait_s: float, connection: Connection) -> None:
    """Have this transaction wait for locks only so long; on SQLite, this connection until it is limited again."""
    wait_ms = round(1e3 * wait_s)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {wait_ms}").close()
    elif connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {wait_ms}")


def _prepare_sqlite(engine: Engine, *, only_reads: bool) -> None:
    """Make commits durable, and let readers and the writer work without waiting for one another."""
    pragmas = [f"busy_timeout = {BUSY_TIMEOUT_MS}", "foreign_keys = ON"]
    if not only_reads:  # the mode is kept in the file
        pragmas += ["journal_mode = WAL", "synchronous = FULL"]

    @event.listens_for(engine, "connect")
    def connect(connection: Any, _: object) -> None:
        # SQLAlchemy then begins every transaction itself, before DDL and reads too, as with other databases.
        connection.isolation_level = None
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}").close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")
