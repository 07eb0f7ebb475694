"""SQLAlchemy engines whose commits are durable when they return, and whose waits are bounded."""

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL

from controller.store import postgresql

BUSY_TIMEOUT_MS = 5_000


def engine_of(url: URL, *, is_bounded: bool) -> Engine:
    """Return an engine for a database. Waits are bounded only where it ``is_bounded``.

    Raises:
        SQLAlchemyError: SQLAlchemy cannot make an engine for the URL.
    """
    # Parameters of statements hold the owner tokens of jobs, and errors would quote them.
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, hide_parameters=True)
        _prepare_sqlite(engine)
        return engine
    if url.get_dialect().driver not in postgresql.DRIVERS:
        return create_engine(url, pool_pre_ping=True, hide_parameters=True)
    arguments = postgresql.connect_arguments(url) if is_bounded else {}
    engine = create_engine(url, connect_args=arguments, pool_pre_ping=True, hide_parameters=True)
    postgresql.prepare(engine, is_bounded=is_bounded)
    return engine


def path_of(url: URL) -> Path | None:
    """The file of an SQLite database; None where it has none."""
    is_file = url.get_backend_name() == "sqlite" and url.database and url.database != ":memory:"
    return Path(str(url.database)) if is_file and not str(url.database).startswith("file:") else None


def limit_lock_wait(wait_s: float, connection: Connection) -> None:
    """Have this transaction wait for locks only so long; on SQLite, this connection until it is limited again."""
    wait_ms = round(1e3 * wait_s)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {wait_ms}").close()
    elif connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {wait_ms}")


def _prepare_sqlite(engine: Engine) -> None:
    """Make commits durable, and let readers and the writer work without waiting for one another."""

    @event.listens_for(engine, "connect")
    def connect(connection: Any, _: object) -> None:
        # SQLAlchemy then begins every transaction itself, before DDL and reads too, as with other databases.
        connection.isolation_level = None
        for pragma in (
            f"busy_timeout = {BUSY_TIMEOUT_MS}",
            "journal_mode = WAL",
            "synchronous = FULL",
            "foreign_keys = ON",
        ):
            connection.execute(f"PRAGMA {pragma}").close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")
