"""SQLAlchemy engines whose commits are durable when they return, and whose waits are bounded."""

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
    # A client that hangs in a transaction loses it, with the locks it holds.
    "options": (
        f"-c lock_timeout={_BUSY_TIMEOUT_MS} -c statement_timeout=30000 -c idle_in_transaction_session_timeout=5000"
    ),
}
"""In the units of PostgreSQL: seconds or milliseconds. A parameter of the URL takes precedence."""


def url_of(address: str) -> URL:
    """Return the SQLAlchemy URL of an address: a URL, or the path of an SQLite file. Raises StoreError."""
    if _URL.match(address) is None:
        return URL.create("sqlite", database=address)
    try:
        return make_url(address)
    except (ArgumentError, ValueError) as error:
        raise StoreError("database: not a URL that can be read") from error


def name_of(url: URL) -> str:
    """Return the name of a database for messages, without its password."""
    is_file = url.get_backend_name() == "sqlite" and url.database
    return f"database {url.database if is_file else url.render_as_string(hide_password=True)}"


def engine_of(url: URL, *, may_be_new: bool) -> Engine:
    """Return an engine for a database.

    The waits are bounded only where the database ``may_be_new``: what merely reads one has all the time it needs.

    Raises:
        StoreError: It is a file that does not exist and may not be new.
        SQLAlchemyError: SQLAlchemy cannot make an engine for the URL.
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
    """Create the file where there is none, readable by its owner alone: it holds the owner tokens of jobs."""
    if not url.database or url.database == ":memory:":
        return
    path = Path(url.database)
    if not may_be_new and not path.exists():
        raise StoreError(f"{name_of(url)}: there is no such file")
    with suppress(OSError):  # SQLite gives the better message
        path.touch(0o600)


def _prepare_sqlite(engine: Engine) -> None:
    """Make commits durable, and let readers and the writer work without waiting for one another."""

    @event.listens_for(engine, "connect")
    def connect(connection: Any, _: object) -> None:
        # SQLAlchemy then begins every transaction itself, before DDL and reads too, as with other databases.
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
