"""The audit trail has every request once, whatever the database does; lost requests are counted."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from controller.errors import StoreError, UnknownOutcomeError
from controller.southbound.write_outcomes import SwitchWrite, WriteOutcome
from controller.store import audit
from controller.store.audit import AuditTrail, Call, writes_between
from controller.store.audit_entries import CallEntry, newest_entries
from controller.store.database import Database
from controller.store.store import Store
from experiments.scenarios.driven.clock import DrivenClock
from tests.controller.store.held_up import held_up
from tests.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def _tries_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "_RETRY_S", 0.01)


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    """SQLite, and PostgreSQL."""
    opened = Store.open(address, DrivenClock())
    yield opened
    opened.database.close()


def _note(trail: AuditTrail, *numbers: int) -> None:
    for number in numbers:
        trail.record(SwitchWrite("t0", number, 0, 0, WriteOutcome.REFUSED, "table 'flow' is full"))


def _written(database: Database) -> list[int]:
    def read(connection: Connection) -> list[int]:
        return [write["inserted"] for write in writes_between(-1, 1, connection)]

    return database.read(read)


def test_a_zero_byte_of_a_client_keeps_no_entry_from_being_written(store: Store) -> None:
    async def scenario() -> None:
        store.trail.record_call(Call("someone", "", "", "RegisterJob", "a\0b", "refused"))
        _note(store.trail, 1)
        async with asyncio.timeout(PATIENCE_S):
            await store.trail.flush()

    asyncio.run(scenario())
    entries = store.database.read(partial(newest_entries, 2))
    assert [entry.subject for entry in entries if isinstance(entry, CallEntry)] == ["a\N{REPLACEMENT CHARACTER}b"]
    assert _written(store.database) == [1]


@contextmanager
def _failing(error: StoreError, *, is_written: bool) -> Iterator[None]:
    """A database that says so of whatever is to be written, whether it then is."""
    write_now = Database.write_now

    def fail(database: Database, work: object) -> None:
        if is_written:
            write_now(database, work)  # type: ignore[arg-type]
        raise error

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Database, "write_now", fail)
        yield


async def _until_failed(store: Store) -> None:
    store.database.health.report("")
    while not store.database.health.problem:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("error", "is_written"),
    [
        (StoreError("disk is full"), False),
        (UnknownOutcomeError("connection is lost"), False),
        (UnknownOutcomeError("connection is lost"), True),
    ],
)
def test_failed_writes_are_retried_once_and_in_order(store: Store, error: StoreError, *, is_written: bool) -> None:
    async def scenario() -> None:
        _note(store.trail, 1, 1, 2)  # two that are the same are two
        await store.trail.flush()
        with _failing(error, is_written=is_written):
            for number in (3, 4, 4):
                _note(store.trail, number)
                await _until_failed(store)
        _note(store.trail, 5)
        await store.trail.flush()
        assert _written(store.database) == [1, 1, 2, 3, 4, 4, 5]
        assert store.trail.num_lost == 0

    asyncio.run(scenario())


def test_calls_are_recorded_beside_requests_and_pruned_with_them(store: Store) -> None:
    async def scenario() -> None:
        _note(store.trail, 1)
        store.trail.record_call(Call("alice", "vision", "job", "RegisterJob", "x" * 5_000, "INVALID_ARGUMENT", "y"))
        await store.trail.flush()
        write, call = store.database.read(partial(newest_entries, 10))
        assert (write.kind, call.kind) == ("write", "call")
        assert isinstance(call, CallEntry)
        assert (call.identity, call.tenant, call.role, call.method) == ("alice", "vision", "job", "RegisterJob")
        assert (call.subject, call.outcome, call.problem) == ("x" * 1_000, "INVALID_ARGUMENT", "y")
        assert await store.database.write(partial(audit.prune, 0.0)) is False  # all are younger
        assert len(store.database.read(partial(newest_entries, 10))) == 2
        await store.database.write(partial(audit.prune, 1.0))
        assert store.database.read(partial(newest_entries, 10)) == []

    asyncio.run(scenario())


def test_many_entries_are_written_and_pruned_in_parts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "ROWS_PER_TRANSACTION", 2)
    written: list[int] = []

    async def scenario() -> None:
        write = store.database.write

        async def counted(work: Callable[[Connection], Any]) -> Any:
            written.append(len(_written(store.database)))
            return await write(work)

        monkeypatch.setattr(store.database, "write", counted)
        _note(store.trail, *range(5))
        await store.trail.flush()
        assert written == [0, 2, 4]
        assert _written(store.database) == list(range(5))
        while await write(partial(audit.prune, 1.0)):
            pass
        assert _written(store.database) == []

    asyncio.run(scenario())


def test_requests_beyond_the_limit_are_lost_and_counted(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(audit, "_MOST_WAITING", 3)
    monkeypatch.setattr(audit, "_CLOSING_S", PATIENCE_S)

    async def scenario() -> None:
        with held_up():
            _note(store.trail, 1, 2, 3, 4, 5)
        await store.trail.flush()
        _note(store.trail, 6)
        await store.close()
        assert store.trail.num_lost == 2
        assert "entries are not in the audit trail: 3 wait for the database" in caplog.text
        assert "2 entries are not in the audit trail" in caplog.text

    asyncio.run(scenario())
    assert _written(store.database) == [1, 2, 3, 6]


def test_closing_does_not_wait_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(audit, "_CLOSING_S", 0.1)

    async def scenario() -> None:
        trail = Store.open(str(tmp_path / "t.db"), DrivenClock()).trail
        with held_up():
            _note(trail, 1, 2)
            await trail.close()
            assert "2 entries are not in the audit trail" in caplog.text

    asyncio.run(scenario())


def test_a_flood_of_calls_leaves_the_newest(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MOST_CALLS", 50)
    monkeypatch.setattr(audit, "_PRUNED_EVERY", 1)

    async def scenario() -> None:
        for number in range(400):
            store.trail.record_call(Call("nightly", "vision", "job", "RegisterJob", str(number), "done"))
        await store.trail.flush()

    asyncio.run(scenario())
    kept = [each for each in store.database.read(partial(newest_entries, 1_000)) if isinstance(each, CallEntry)]
    assert [call.subject for call in kept] == [str(number) for number in range(350, 400)]
