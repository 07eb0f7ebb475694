"""Sessions on a PostgreSQL server: bounded on both sides, and marked with the process that they belong to.

The server's own defaults keep the session of a machine that is gone for two hours, with all its locks. Only what is
sent to us is bounded by the client's settings.
"""

from typing import Any

from sqlalchemy import Connection, Engine, bindparam, event, text
from sqlalchemy.engine import URL

from controller.store.process_mark import OWN_MARK

DRIVERS = ("psycopg", "psycopg2")
LOCK_TIMEOUT_MS = 5_000

_OF_CLIENT = {
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}
"""Parameters of libpq, in seconds or milliseconds. A parameter of the URL takes precedence."""
_OF_SERVER = {
    "lock_timeout": f"{LOCK_TIMEOUT_MS}ms",
    "statement_timeout": "30s",
    # A client that hangs in a transaction loses it, with the locks it holds. The second one also ends where the client
    # hangs between the messages of one batch; only version 17 and later knows it.
    "idle_in_transaction_session_timeout": "5s",
    "transaction_timeout": "60s",
    # So does one whose machine or network is gone: while the server waits for it, writes to it, or works.
    "tcp_keepalives_idle": "2s",
    "tcp_keepalives_interval": "1s",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "5s",
    "client_connection_check_interval": "2s",
}
"""Settings of our sessions. One in ``options`` of the URL takes precedence."""
_ARE_RUNNING = text(
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE application_name = :mark AND datname = current_database() AND pid <> pg_backend_pid()"
).bindparams(bindparam("mark"))
_TERMINATE = text(
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE application_name = :mark AND datname = current_database() AND pid <> pg_backend_pid()"
    " AND usename = current_user"
).bindparams(bindparam("mark"))

_UNLIMITED = text(
    "SELECT set_config(name, '0', true) FROM pg_settings WHERE name IN ('statement_timeout', 'transaction_timeout')"
)
_LOCK_ALONE = text("SELECT pg_advisory_xact_lock(:key)").bindparams(key=0x7261_696E_7961_7264)
"""The number of the lock is any that others do not take."""


def connect_arguments(url: URL) -> dict[str, Any]:
    """Parameters for libpq that bound how long we wait for the server."""
    return {name: value for name, value in _OF_CLIENT.items() if name not in url.query}


def prepare(engine: Engine, *, is_bounded: bool) -> None:
    """Set up every session of an engine; its waits are bounded only where it ``is_bounded``."""
    # Rows of one INSERT go in one message: the server then waits for a client that hangs as for one that is idle.
    engine.dialect.use_insertmanyvalues_wo_returning = True

    @event.listens_for(engine, "connect")
    def connect(connection: Any, _: object) -> None:
        cursor = connection.cursor()
        try:
            cursor.execute("SELECT set_config('application_name', %s, false)", (OWN_MARK,))
            if is_bounded:
                names, values = list(_OF_SERVER), list(_OF_SERVER.values())
                # Those that this version of the server knows, and that the URL does not set.
                cursor.execute(
                    "SELECT set_config(known.name, wanted.value, false)"
                    " FROM unnest(%s::text[], %s::text[]) AS wanted (name, value)"
                    " JOIN pg_settings AS known ON known.name = wanted.name WHERE known.source <> 'client'",
                    (names, values),
                )
            connection.commit()
        finally:
            cursor.close()


def lift_limits(connection: Connection) -> None:
    """Let this transaction take the time that it needs, as long as this client does not hang."""
    connection.execute(_UNLIMITED)


def begin_alone(wait_ms: int, connection: Connection) -> None:
    """Have this transaction wait until no other that began so is under way, without other limits."""
    lift_limits(connection)
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {wait_ms}")
    connection.execute(_LOCK_ALONE)


def are_running(mark: str, connection: Connection) -> bool:
    """Whether there are sessions on this database with a mark."""
    return bool(connection.scalar(_ARE_RUNNING, {"mark": mark}))


def terminate(mark: str, connection: Connection) -> int:
    """End the sessions on this database with a mark, of this role; their transactions change nothing.

    Returns how many there were.
    """
    return int(connection.scalar(_TERMINATE, {"mark": mark}) or 0)
