"""How a database is connected to: so that a commit is safe when it returns, and so that nothing waits without end."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from controller.errors import StoreError

_URL = re.compile(r"[a-z][a-z0-9+_]*://")
_BUSY_TIMEOUT_MS = 5_000
_LIBPQ_DRIVERS = ("psycopg", "psycopg2")
_LIBPQ = {
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    # Whoever stands still in the middle of a transaction loses it, and with it what it has locked.
    "options": (
        f"-c lock_timeout={_BUSY_TIMEOUT_MS} -c statement_timeout=30000 -c idle_in_transaction_session_timeout=5000"
    ),
}
"""Seconds, milliseconds where PostgreSQL counts these; a URL may say otherwise."""


def url_of(address: str) -> URL:
    """The URL of a database that is given as one, or as a path; raises StoreError for one that cannot be read."""
    if _URL.match(address) is None:
        return URL.create("sqlite", database=address)
    try:
        return make_url(address)
    except (ArgumentError, ValueError) as error:
        raise StoreError("database: not a URL that can be read") from error


def name_of(url: URL) -> str:
    """What people are told that a database is."""
    is_file = url.get_backend_name() == "sqlite" and url.database
    return f"database {url.database if is_file else url.render_as_string(hide_password=True)}"


def engine_of(url: URL, *, may_be_new: bool) -> Engine:
    """What connects to a database; one that is read alone and may not be new is given all the time it takes.

    Raises StoreError where it is a file that is not there, and what SQLAlchemy raises.
    """
    if url.get_backend_name() == "sqlite":
        _prepare_file(url, may_be_new=may_be_new)
        engine = create_engine(url)
        _prepare_sqlite(engine)
        return engine
    is_bounded = may_be_new and url.get_dialect().driver in _LIBPQ_DRIVERS
    bounds = {name: value for name, value in _LIBPQ.items() if is_bounded and name not in url.query}
    return create_engine(url, connect_args=bounds, pool_pre_ping=True)


def _prepare_file(url: URL, *, may_be_new: bool) -> None:
    """Make the file where there is none, for its owner alone: the owner tokens in it are worth withdrawing jobs."""
    if not url.database or url.database == ":memory:":
        return
    path = Path(url.database)
    if not may_be_new and not path.exists():
        raise StoreError(f"{name_of(url)}: there is no such file")
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
