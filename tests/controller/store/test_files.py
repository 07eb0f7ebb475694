"""The file of a database: what can be none is refused, and one that goes while it is open is noticed."""

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import insert

from controller.errors import StoreError
from controller.leadership.lease import VACANT, LeaseRecord
from controller.registry.errors import CommitError
from controller.registry.requests import JobRequest
from controller.store import files
from controller.store.database import Database
from controller.store.leader_lease import DatabaseLease
from controller.store.migration import Access
from controller.store.schema import PROPERTY
from controller.store.store import Store
from experiments.scenarios.driven.clock import DrivenClock
from policies.job import Profile
from tests.controller.store.registering import FABRIC, LEASE_S, restored
from tests.patience import PATIENCE_S

_JOB = JobRequest("gpt", ("h0", "h2"), 2, Profile(1.0, 0.5, 1.0))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trainyard.db"


def _replace(path: Path) -> None:
    other = path.with_name("other.db")
    Database.open(str(other)).close()
    other.rename(path)


@pytest.mark.parametrize(
    ("lose", "problem"), [(Path.unlink, "has been deleted"), (_replace, "has been replaced by another")]
)
def test_nothing_is_acknowledged_into_a_file_that_has_gone(
    path: Path, lose: Callable[[Path], None], problem: str
) -> None:
    async def scenario() -> None:
        store = Store.open(str(path), DrivenClock())
        registry = store.registry(FABRIC, LEASE_S)
        kept = path.with_name("kept.db")
        os.link(path, kept)
        lose(path)
        registry.register_job(_JOB, 0.0, "token")
        with pytest.raises(CommitError, match="not stored"):
            await registry.commit()
        assert registry.jobs == ()
        assert problem in store.database.health.problem
        kept.replace(path)  # it is there again
        registry.register_job(_JOB, 0.0, "token")
        await registry.commit()
        assert store.database.health.problem == ""
        await store.close()

    asyncio.run(scenario())
    assert [job.request.name for job in restored(str(path)).jobs] == ["gpt"]


def test_nobody_leads_by_a_file_that_has_gone(path: Path) -> None:
    async def scenario() -> None:
        table = DatabaseLease.open(str(path))
        path.unlink()
        with pytest.raises(StoreError, match="has been deleted"):
            await table.take(VACANT, LeaseRecord("one", 1, 0, 4.0))
        table.close()

    asyncio.run(scenario())


def test_a_relative_path_means_the_same_file_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    database = Database.open("trainyard.db")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    database.write_now(lambda connection: connection.execute(insert(PROPERTY), {"name": "a", "value": 1.0}))
    database.close()


@pytest.mark.parametrize("access", Access)
def test_an_empty_file_is_refused(path: Path, access: Access) -> None:
    path.touch()
    with pytest.raises(StoreError, match=rf"database {path}: is empty; delete it to begin anew"):
        Database.open(str(path), access)
    assert path.stat().st_size == 0


def test_a_file_that_another_controller_is_just_filling_is_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_CREATED_WITHIN_S", PATIENCE_S)
    path.touch()
    other = path.with_name("other.db")
    Database.open(str(other)).close()
    filling = threading.Timer(0.1, lambda: path.write_bytes(other.read_bytes()))
    filling.start()
    Database.open(str(path)).close()
    filling.join()


def test_a_new_file_that_cannot_be_filled_does_not_stay(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise StoreError("disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(Database, "write_now", fail)
        with pytest.raises(StoreError, match="disk is full"):
            Database.open(str(path))
    Database.open(str(path)).close()


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (Path.mkdir, "is a directory, not a file"),
        (os.mkfifo, "is a FIFO, not a file"),
        (lambda path: path.symlink_to("/dev/zero"), "is a device, not a file"),
        (lambda path: path.symlink_to("/dev/null"), "is a device, not a file"),
        (lambda path: path.symlink_to(path), "cannot be opened: Too many levels of symbolic links"),
        (lambda path: path.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000), "file is not a database"),
        (lambda path: path.write_bytes(os.urandom(10)), "file is not a database"),
    ],
)
@pytest.mark.parametrize("access", Access)
def test_what_can_be_no_database_is_refused_in_a_line(
    path: Path, make: Callable[[Path], object], problem: str, access: Access
) -> None:
    make(path)
    with pytest.raises(StoreError) as refused:
        Database.open(str(path), access)
    assert str(refused.value) == f"database {path}: {problem}"


@pytest.mark.parametrize("kept_bytes", [5_000, 20_000, 50_000])
def test_a_truncated_database_is_named(path: Path, kept_bytes: int) -> None:
    async def fill() -> None:
        store = Store.open(str(path), DrivenClock())
        registry = store.registry(FABRIC, LEASE_S)
        for number in range(500):
            registry.register_job(JobRequest(f"job-{number}", ("h0", "h2"), 2, Profile(1.0, 0.5, 1.0)), 0.0, "token")
        await registry.commit()
        await store.close()

    asyncio.run(fill())
    os.truncate(path, kept_bytes)
    with pytest.raises(StoreError, match=rf"^database {path}: .*malformed|disk image") as refused:
        restored(str(path))
    assert "\n" not in str(refused.value)


def test_a_database_that_may_not_be_new_is_not_created(path: Path) -> None:
    for access in (Access.READ, Access.WRITE):
        with pytest.raises(StoreError, match="there is no such file"):
            Database.open(str(path), access)
    assert not path.exists()
