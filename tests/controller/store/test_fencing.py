"""A controller whose lease has ended loses the lock that it still holds; nobody else does."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from controller.errors import LockedError
from controller.leadership.exclusive import acquire_term
from controller.leadership.leadership import Leadership, Lease
from controller.store import process_mark
from controller.store.database import Database
from controller.store.leader_lease import DatabaseLease
from controller.store.process_mark import OWN_MARK, process_of
from controller.store.schema import JOB
from tests.patience import PATIENCE_S
from tests.postgresql import Server, running

_ROOT = Path(__file__).resolve().parents[3]
_LEASE_S = 1.0


@contextmanager
def _stopped_holder(address: str, *options: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A leader that is stopped while it holds the lock, unless an option says otherwise."""
    command = (sys.executable, "-m", "tests.controller.store.holding", address, str(_LEASE_S), *options)
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=_ROOT) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"holds\n"
            process.send_signal(signal.SIGSTOP)
            yield process
        finally:
            process.kill()


def _jobs(connection: Connection) -> list[str]:
    return list(connection.scalars(select(JOB.c.name)))


async def _lead_once(address: str) -> int:
    """Lead as soon as that is allowed; returns the term."""
    terms: list[int] = []

    async def lead(lease: Lease) -> None:
        terms.append(lease.term)

    with closing(DatabaseLease.open(address)) as table:
        await Leadership(table, "successor", _LEASE_S).run(lead)
    return terms[-1]


def test_a_leader_stopped_in_a_batch_keeps_nobody_waiting(address: str, caplog: pytest.LogCaptureFixture) -> None:
    Database.open(address).close()
    with _stopped_holder(address):
        assert asyncio.run(asyncio.wait_for(_lead_once(address), PATIENCE_S)) == 2
        assert "after its lease" in caplog.text
        with closing(Database.open(address)) as database:
            assert database.read(_jobs) == []  # its transaction has changed nothing


def test_a_controller_without_leadership_stopped_in_a_batch_keeps_nobody_waiting(address: str) -> None:
    Database.open(address).close()

    async def begin() -> int:
        with closing(DatabaseLease.open(address)) as table:
            return await asyncio.wait_for(acquire_term(table, "successor"), PATIENCE_S)

    with _stopped_holder(address):
        assert asyncio.run(begin()) == 2


def test_a_holder_that_keeps_nobody_waiting_is_let_be(tmp_path: Path) -> None:
    address = str(tmp_path / "trainyard.db")
    Database.open(address).close()
    with (
        _stopped_holder(address, "without the lock") as holder,
        closing(sqlite3.connect(address, isolation_level=None)) as other,
        closing(DatabaseLease.open(address)) as table,
    ):
        other.execute("BEGIN IMMEDIATE")  # it is somebody else who holds the lock
        with pytest.raises(LockedError):
            asyncio.run(acquire_term(table, "successor"))
        assert holder.poll() is None
        assert process_of(asyncio.run(table.read()).session) == holder.pid
        other.execute("ROLLBACK")
        assert asyncio.run(acquire_term(table, "successor")) == 2
        assert holder.poll() is None


def test_sessions_of_another_role_are_logged_and_left(postgresql: Server, caplog: pytest.LogCaptureFixture) -> None:
    address = postgresql.new_database()
    Database.open(address).close()
    postgresql.execute(
        address,
        "CREATE ROLE other LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO other;"
        " GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO other",
    )
    with (
        _stopped_holder(address.replace("//trainyard@", "//other@")),
        closing(DatabaseLease.open(address)) as table,
    ):
        with pytest.raises(LockedError):
            asyncio.run(acquire_term(table, "successor"))
        assert "has a role whose sessions are not ours to end" in caplog.text
        assert OWN_MARK not in caplog.text


def test_a_mark_is_that_of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from controller.store.process_mark import OWN_MARK; print(OWN_MARK, flush=True); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=_ROOT,
    ) as other:
        assert other.stdout is not None
        mark = other.stdout.readline().decode().strip()
        assert len(mark) < 64  # what PostgreSQL keeps
        assert process_of(mark) == other.pid
        boot, namespace, pid, started = mark.removeprefix("trainyard ").split(".")
        for changed in (
            ("0" * 8, namespace, pid, started),
            (boot, "1", pid, started),
            (boot, namespace, "1", started),
            (boot, namespace, pid, "1"),
        ):
            assert process_of("trainyard " + ".".join(changed)) is None
        other.kill()
        while Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        assert process_of(mark) is None  # it has ended, though its parent has not heard of that
    for nonsense in ("", "trainyard", "trainyard x.1.2.3", "another"):
        assert process_of(nonsense) is None
    monkeypatch.setattr(process_mark, "_PROC", Path("/nowhere"))
    assert process_mark._own_mark() != process_mark._own_mark()


def test_the_server_gives_up_a_client_that_is_gone() -> None:
    with running("127.0.0.1") as server:
        address = server.by_tcp(server.new_database(), "127.0.0.1")

        def setting(name: str, at: str = address) -> str:
            with closing(Database.open(at)) as database:
                return str(database.read(lambda connection: connection.exec_driver_sql(f"SHOW {name}").scalar()))

        assert setting("tcp_keepalives_idle") == "2"
        assert setting("tcp_keepalives_count") == "3"
        assert setting("tcp_user_timeout") == "5000"  # milliseconds
        assert setting("client_connection_check_interval") == "2s"
        assert setting("idle_in_transaction_session_timeout") == "5s"
        assert setting("statement_timeout") == "30s"
        assert setting("application_name") == OWN_MARK
        own = f"{address}?options=-c%20lock_timeout%3D1234%20-c%20statement_timeout%3D0"
        assert setting("lock_timeout", own) == "1234ms"
        assert setting("statement_timeout", own) == "0"
        assert setting("tcp_user_timeout", own) == "5000"
