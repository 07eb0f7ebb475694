"""A sound backup is restored whole to where no controller runs; anything else changes nothing."""

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, inspect, select

from controller.errors import StoreError
from controller.leadership.exclusive import acquire_term
from controller.leadership.lease import LeaseRecord
from controller.store.addresses import url_of
from controller.store.backup import UnfitBackupError
from controller.store.database import Database
from controller.store.engine import engine_of
from controller.store.interventions import read_interventions, write_pause
from controller.store.leader_lease import DatabaseLease
from controller.store.migration import SCHEMA_VERSION
from controller.store.offline import InUseError
from controller.store.restore import UnfitTargetError, restore
from controller.store.schema import CALL, FACT
from controller.store.store import Store
from experiments.scenarios.driven.clock import DrivenClock
from tests.controller.record.lives import CLOS, Life
from tests.controller.store.contents import backed_up, contents, problems_of
from tests.controller.store.filling import LEASE_S, PAUSE, PIN, fill
from tests.postgresql import Server

_ROOT = Path(__file__).resolve().parents[3]
_FOLDER = Path(__file__).parent


async def _fill(address: Path | str) -> None:
    await (await fill(str(address))).end()


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of an SQLite database that has something in every table."""
    folder = tmp_path_factory.mktemp("backup")
    asyncio.run(_fill(folder / "trainyard.db"))
    return backed_up(folder / "trainyard.db", folder / "backup")


@pytest.fixture
def other(request: pytest.FixtureRequest, address: str, tmp_path: Path) -> str:
    """A second new database of the same kind."""
    if address.startswith("postgresql"):
        server: Server = request.getfixturevalue("postgresql")
        return server.new_database()
    return str(tmp_path / "other.db")


def _restore(file: Path, address: str | Path, *, is_forced: bool = False) -> None:
    asyncio.run(restore(file, str(address), is_forced=is_forced))


def test_a_database_goes_to_the_other_kind_and_back(backup: Path, address: str, tmp_path: Path) -> None:
    _restore(backup, address)
    assert contents(address) == contents(backup)
    assert problems_of(address) == []
    again = backed_up(address, tmp_path / "again")
    _restore(again, tmp_path / "again.db")
    assert contents(tmp_path / "again.db") == contents(backup)


def test_a_controller_goes_on_where_the_backup_was_made(backup: Path, address: str) -> None:
    _restore(backup, address)
    with closing(Database.open(address)) as database:
        assert database.read(read_interventions) == (PAUSE, [PIN])
        database.write_now(partial(write_pause, None))
    life = Life(address, "crux")
    life.start()
    assert [job.request.name for job in life.controller.registry.jobs] == [f"job-{n}" for n in range(4)] + ["silent"]
    assert life.store.grace_s(LEASE_S) == LEASE_S  # rules of jobs that came after the backup are not deleted at once

    async def live_on() -> None:
        table = DatabaseLease(Database.open(address))
        lease = await table.read()
        assert lease.term > 50_000  # switches may have seen terms after the backup
        assert lease.lease_s == 0.0
        assert await acquire_term(table, "two") == lease.term + 1
        table.close()
        life._number = 100
        await life.live(2)
        await life.controller.planner.flush_record()
        # New rows of numbered tables come after those that were restored.
        await life.store.database.write(
            lambda connection: connection.execute(
                insert(CALL),
                [dict.fromkeys((c.name for c in CALL.c if c.name not in ("id", "time_s")), "") | {"time_s": 1.0}],
            )
        )
        await life.end()

    asyncio.run(live_on())
    assert problems_of(address) == []
    with closing(Database.open(address)) as database:
        ids = database.read(lambda connection: list(connection.scalars(select(FACT.c.id).order_by(FACT.c.id))))
        assert ids == list(range(1, len(ids) + 1))
        assert len(ids) > 16


def test_a_database_that_is_there_is_replaced_only_where_that_is_forced(backup: Path, address: str) -> None:
    _registered(address, "mine")
    before = contents(address)
    with pytest.raises(UnfitTargetError, match="holds a database of Trainyard; --force replaces all that it holds"):
        _restore(backup, address)
    assert contents(address) == before
    _restore(backup, address, is_forced=True)
    assert contents(address) == contents(backup)
    assert problems_of(address) == []


def _registered(address: str, term_of: str) -> None:
    async def scenario() -> None:
        table = DatabaseLease(Database.open(address))
        await acquire_term(table, term_of)
        table.close()

    asyncio.run(scenario())


def test_terms_are_later_than_those_of_the_database_that_is_replaced(backup: Path, address: str) -> None:
    async def terms() -> list[int]:
        with closing(DatabaseLease.open(address)) as table:
            assert await table.take(await table.read(), LeaseRecord("late", 700_000, 0, 0.0))
            before = (await table.read()).term
        await restore(backup, address, is_forced=True)
        with closing(DatabaseLease.open(address)) as table:
            return [before, (await table.read()).term]

    before, after = asyncio.run(terms())
    assert after > before == 700_000


def test_a_controller_that_runs_keeps_its_database(backup: Path, address: str) -> None:
    Database.open(address).close()
    before = contents(address)
    command = (sys.executable, "-m", "tests.controller.store.holding", address, "0", "without the lock")
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=_ROOT) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"holds\n"
            with pytest.raises(InUseError, match="controller 'holder' runs on it, in term 1; stop it first"):
                _restore(backup, address, is_forced=True)
        finally:
            process.kill()
    assert contents(address) == before
    _restore(backup, address, is_forced=True)
    assert contents(address) == contents(backup)


def test_a_leader_whose_process_is_out_of_sight_keeps_its_database(backup: Path, address: str) -> None:
    lease_s = 1.0

    async def scenario() -> None:
        with closing(DatabaseLease.open(address)) as table:
            assert await table.take(await table.read(), LeaseRecord("far", 1, 0, lease_s))

            async def renew() -> None:
                while await table.renew(1):
                    await asyncio.sleep(lease_s / 20)

            renewing = asyncio.create_task(renew())
            with pytest.raises(StoreError, match="'far' leads on the database, in term 1"):
                await restore(backup, address, is_forced=True)
            renewing.cancel()

    asyncio.run(scenario())
    assert contents(address)["job"] == []


def test_a_restore_that_fails_changes_nothing(
    backup: Path, address: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreError("disk is full")

    _registered(address, "mine")
    before = contents(address)
    monkeypatch.setattr("controller.store.restore.continue_terms", fail)
    with pytest.raises(StoreError, match="disk is full"):
        _restore(backup, address, is_forced=True)
    assert contents(address) == before
    with pytest.raises(StoreError, match="disk is full"):
        _restore(backup, other)
    if other.startswith("postgresql"):
        engine = engine_of(url_of(other))
        assert inspect(engine).get_table_names() == []
        engine.dispose()
    else:
        assert not Path(other).exists()


@pytest.mark.parametrize("version", [2, 5])
def test_a_backup_of_an_older_version_is_restored_to_the_newest(
    address: str, other: str, version: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if address.startswith("postgresql"):
        server: Server = request.getfixturevalue("postgresql")
        server.execute(address, (_FOLDER / f"version_{version}.postgresql.sql").read_text())
        if version < 5:
            with pytest.raises(StoreError, match="its schema has version 2: upgrade it first"):
                backed_up(address, tmp_path / "backup")
            return
    else:
        with closing(sqlite3.connect(address)) as connection:
            connection.executescript((_FOLDER / f"version_{version}.sqlite.sql").read_text())
    file = backed_up(address, tmp_path / "backup")
    assert problems_of(address) == problems_of(file) == []
    _restore(file, other)
    store = Store.open(address, DrivenClock(200.0))
    restored = Store.open(other, DrivenClock(200.0))
    fabric = CLOS.build()
    assert restored.registry(fabric, 30.0).jobs == store.registry(fabric, 30.0).jobs != []
    assert contents(other) == contents(address)
    for each in (store, restored):
        each.database.close()


def test_files_that_are_no_backups_are_refused(backup: Path, tmp_path: Path) -> None:
    file, target = tmp_path / "file", tmp_path / "target.db"
    whole = backup.read_bytes()
    database = tmp_path / "database.db"
    Database.open(str(database)).close()
    foreign = tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.executescript("CREATE TABLE bookmark (id INTEGER); INSERT INTO bookmark VALUES (1);")
    for content, problem in (
        (b"", "is empty"),
        (whole[:50], "file: "),
        (whole[:4096], "database disk image is malformed"),
        (whole[:-4096], "database disk image is malformed"),
        (b"name,bytes\n" * 999, "file is not a database"),
        (database.read_bytes(), "is a database, not a backup: `trainyard database backup` makes one of it"),
        (foreign.read_bytes(), r"holds tables of something else \('bookmark'\), and nothing of Trainyard"),
    ):
        file.write_bytes(content)
        with pytest.raises(UnfitBackupError, match=problem):
            _restore(file, target)
        assert file.read_bytes() == content
    with pytest.raises(UnfitBackupError, match="there is no such file"):
        _restore(tmp_path / "nowhere", target)
    assert not target.exists()


def test_a_backup_of_a_newer_version_is_refused_by_name(backup: Path, tmp_path: Path) -> None:
    file = _changed(backup, tmp_path, "UPDATE property SET value = 99 WHERE name = 'schema_version'")
    with pytest.raises(
        UnfitBackupError, match=rf"its schema has version 99, and this Trainyard reads version {SCHEMA_VERSION}"
    ):
        _restore(file, tmp_path / "target.db")


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE job SET gpus = 3 WHERE name = 'silent'", "table 'job': is not what was backed up"),
        ("DELETE FROM drain WHERE kind = 'link'", "table 'drain': has 1 rows, where 2 were backed up"),
        ("DROP TABLE measured", "table 'measured': is missing"),
        ("CREATE TABLE more (id INTEGER)", "table 'more': is no part of the backup"),
    ],
)
def test_a_backup_that_was_changed_is_refused_by_table(
    backup: Path, tmp_path: Path, statement: str, problem: str
) -> None:
    file = _changed(backup, tmp_path, statement)
    with pytest.raises(UnfitBackupError, match=problem):
        _restore(file, tmp_path / "target.db")
    assert any(problem in told for told in problems_of(file))
    assert not (tmp_path / "target.db").exists()


def _changed(backup: Path, folder: Path, statement: str) -> Path:
    file = folder / "changed"
    file.write_bytes(backup.read_bytes())
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement)
        connection.commit()
    return file


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draw=st.integers(0, 10**9), bit=st.integers(0, 7))
def test_a_flipped_bit_is_told_or_does_no_harm(backup: Path, tmp_path: Path, draw: int, bit: int) -> None:
    damaged = bytearray(backup.read_bytes())
    damaged[draw % len(damaged)] ^= 1 << bit
    file, target = tmp_path / "damaged", tmp_path / "target.db"
    for path in (file, target):
        path.unlink(missing_ok=True)
    file.write_bytes(damaged)
    try:
        _restore(file, target)
    except StoreError:
        assert not target.exists()
    else:
        assert contents(target) == contents(backup)
