"""A database of an older version keeps everything, and gets what it lacks."""

import asyncio
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, select, update

from controller.errors import StoreError
from controller.registry.requests import (
    FlowGroupRequest,
    FlowRequest,
    JobRequest,
    NicReference,
    TaskGraphRequest,
    TransferRequest,
)
from controller.store import migration
from controller.store.addresses import url_of
from controller.store.audit import writes_between
from controller.store.audit_entries import CallEntry, WriteEntry, newest_entries
from controller.store.database import Database
from controller.store.engine import engine_of
from controller.store.facts import LAST_PLAN_NUMBER, record_lines
from controller.store.migration import FIRST_REVISION, REVISIONS, Access, run_revisions, stored_version
from controller.store.schema import CALL as CALLS
from controller.store.schema import JOB, LEADERSHIP, METADATA, PAUSE, PIN, PROPERTY, SCHEMA_VERSION, TASK_GRAPH
from controller.store.store import Store
from experiments.scenarios.driven.clock import DrivenClock
from policies.job import Profile
from policies.registry import find_policy
from policies.task_graph import Computation
from tests.controller.record.lives import CLOS, Life
from tests.controller.store.filling import CALL, DRAINS, LEASE_S, WRITE
from tests.postgresql import Server

_FOLDER = Path(__file__).parent


@pytest.fixture
def older(address: str, request: pytest.FixtureRequest) -> str:
    """A database that the code of version 2 has left behind."""
    return _left_behind(2, address, request)


def _left_behind(version: int, address: str, request: pytest.FixtureRequest) -> str:
    """Fill an empty database with what the code of a version has left behind."""
    if address.startswith("postgresql"):
        server: Server = request.getfixturevalue("postgresql")
        server.execute(address, (_FOLDER / f"version_{version}.postgresql.sql").read_text())
    else:
        with closing(sqlite3.connect(address)) as connection:
            connection.executescript((_FOLDER / f"version_{version}.sqlite.sql").read_text())
    return address


def test_all_of_version_2_is_there_in_the_newest_version(older: str) -> None:
    store = Store.open(older, DrivenClock(200.0))
    silent, gpt = sorted(store.registry(CLOS.build(), 30.0).jobs, key=lambda job: job.request.gpus)
    assert (gpt.request.name, gpt.owner_token, gpt.arrival_s, gpt.tenant) == ("gpt", "token of gpt", 100.0, "")
    assert [len(group.flows) for group in gpt.flow_groups] == [2]
    assert silent.request.profile is None
    registry = store.registry(CLOS.build(), 30.0)
    assert registry.instances("gpt")["ring"].iteration == 7
    assert registry.lease_end_s("gpt") == 229.0
    lines = store.database.read(lambda connection: list(record_lines(0, LAST_PLAN_NUMBER, connection)))
    assert len(lines) > 5
    assert store.database.read(lambda connection: [w["inserted"] for w in writes_between(-1, 9, connection)]) == [3]
    lease = store.database.read(lambda connection: connection.execute(select(LEADERSHIP)).one())
    assert (lease.holder, lease.term, lease.session) == ("one", 4, "")
    assert store.grace_s(30.0) == 30.0  # the date that version 2 kept is no more
    store.database.close()


def test_all_of_version_5_is_there_in_the_newest_version(address: str, request: pytest.FixtureRequest) -> None:
    older = _left_behind(5, address, request)
    store = Store.open(older, DrivenClock(200.0))
    registry = store.registry(CLOS.build(), LEASE_S)
    jobs = {job.request.name: job for job in registry.jobs}
    assert list(jobs) == ["job-0", "job-1", "job-2", "job-3", "silent"]
    assert (jobs["silent"].request.profile, jobs["silent"].tenant) == (None, "blue")
    assert jobs["silent"].owner_token == "token of silent"
    assert [group.name for group in jobs["job-3"].flow_groups] == ["g", "h"]
    assert {name for name, job in jobs.items() if job.task_graph} == {"job-0", "job-2"}
    assert registry.instances("job-0")["g"].iteration == 7
    assert registry.lease_end_s("silent") == 200.0 + 0.25 * LEASE_S
    assert store.drains() == list(DRAINS)
    assert store.grace_s(LEASE_S) == 0.5
    write, call = store.database.read(partial(newest_entries, 10))
    assert isinstance(write, WriteEntry)
    assert isinstance(call, CallEntry)
    assert (write.switch, write.inserted, write.problem) == (WRITE.switch, WRITE.inserted, WRITE.problem)
    assert (call.identity, call.tenant, call.method) == (CALL.identity, CALL.tenant, CALL.method)
    lease = store.database.read(lambda connection: connection.execute(select(LEADERSHIP)).one())
    assert (lease.holder, lease.term) == ("one", 1)
    store.database.close()
    life = Life(older, "crux")
    life.start()
    recorder = life.store.recorder(life.config, find_policy("crux"), life.routing)
    assert recorder.number == 4
    assert recorder.plan is not None
    assert [job.name for job in recorder.plan.jobs] == ["job-0", "job-3", "job-1", "job-2"]
    profiles = life.store.profiles(life.routing).load(life.controller.registry.jobs)
    assert profiles["silent"].rhythm.iterations == 30
    assert len([line for line in life.lines() if '"plan"' in line]) >= 4
    life.store.database.close()


def _schema(connection: Connection) -> dict[str, object]:
    """The tables of a database, with all that tells them apart."""
    inspector = inspect(connection)
    return {
        table: (
            sorted(
                (column["name"], str(column["type"]), column["nullable"], column["default"])
                for column in inspector.get_columns(table)
            ),
            inspector.get_pk_constraint(table)["constrained_columns"],
            [
                (key["constrained_columns"], key["referred_table"], key["options"])
                for key in inspector.get_foreign_keys(table)
            ],
            sorted((str(index["name"]), index["column_names"]) for index in inspector.get_indexes(table)),
        )
        for table in inspector.get_table_names()
    }


def _newest_schema(address: str) -> dict[str, object]:
    """That of the tables of this version, in this kind of database."""
    engine = engine_of(url_of(address))
    with engine.connect() as connection:
        METADATA.create_all(connection)
        schema = _schema(connection)
        connection.rollback()
    engine.dispose()
    assert schema.keys() == METADATA.tables.keys()
    return schema


def test_revisions_make_the_tables_of_a_new_database(address: str) -> None:
    newest = _newest_schema(address)
    engine = engine_of(url_of(address))
    with engine.connect() as connection:
        run_revisions(0, SCHEMA_VERSION, connection)
        assert _schema(connection) == newest
    engine.dispose()
    new = Database.open(address)
    assert new.read(_schema) == newest
    new.close()


@pytest.mark.parametrize("version", [2, 5])
def test_the_schema_after_a_migration_is_that_of_a_new_database(
    address: str, version: int, request: pytest.FixtureRequest
) -> None:
    newest = _newest_schema(address)
    migrated = Database.open(_left_behind(version, address, request))
    assert migrated.read(_schema) == newest
    stored = select(PROPERTY.c.value).where(PROPERTY.c.name == "schema_version")
    assert migrated.read(lambda connection: connection.scalar(stored)) == SCHEMA_VERSION
    migrated.close()
    Database.open(address).close()  # once more: nothing is left to do


def test_the_last_revision_is_that_of_the_tables() -> None:
    scripts = ScriptDirectory(REVISIONS, version_locations=[REVISIONS])
    assert scripts.get_heads() == [str(SCHEMA_VERSION)]
    assert scripts.get_bases() == [str(FIRST_REVISION)]


def test_of_controllers_that_open_an_older_database_at_once_one_upgrades_it(
    older: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []

    def run_slowly(version: int, until: int, connection: Connection) -> None:
        runs.append(version)
        run_revisions(version, until, connection)
        time.sleep(0.5)

    monkeypatch.setattr(migration, "run_revisions", run_slowly)
    with ThreadPoolExecutor(3) as threads:
        opened = list(threads.map(lambda _: Database.open(older), range(3)))
    assert runs == [2]
    for database in opened:
        assert database.read(stored_version) == SCHEMA_VERSION
        database.close()


def test_an_upgrade_that_fails_changes_nothing(older: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_late(version: int, until: int, connection: Connection) -> None:
        run_revisions(version, until, connection)
        raise StoreError("disk is full")

    def tables(connection: Connection) -> set[str]:
        return set(inspect(connection).get_table_names())

    before = Database.open(older, Access.READ)
    there = before.read(tables)
    with monkeypatch.context() as patched:
        patched.setattr(migration, "run_revisions", fail_late)
        with pytest.raises(StoreError, match="disk is full"):
            Database.open(older)
    assert before.read(tables) == there
    assert before.read(stored_version) == 2
    before.close()
    Database.open(older).close()


@pytest.mark.parametrize("access", Access)
@pytest.mark.parametrize("tables", [("visit", "bookmark"), ("property", "job")])
def test_a_database_of_something_else_is_refused_and_left_as_it_is(
    address: str, access: Access, tables: tuple[str, str]
) -> None:
    engine = engine_of(url_of(address))
    with engine.begin() as connection:
        for table in tables:
            connection.exec_driver_sql(f"CREATE TABLE {table} (id INTEGER)")
    with pytest.raises(StoreError, match=r"holds tables of something else .*, and nothing of Trainyard"):
        Database.open(address, access)
    assert sorted(inspect(engine).get_table_names()) == sorted(tables)
    engine.dispose()


def test_a_reader_changes_nothing_of_an_older_database(older: str) -> None:
    database = Database.open(older, Access.READ)
    tables = database.read(lambda connection: inspect(connection).get_table_names())
    assert CALLS.name not in tables
    columns = database.read(lambda connection: [c["name"] for c in inspect(connection).get_columns(JOB.name)])
    assert "tenant" not in columns
    database.close()


def test_a_database_of_version_3_gets_a_table_for_task_graphs(address: str) -> None:
    async def scenario() -> None:
        store = Store.open(address, DrivenClock(200.0))
        registry = store.registry(CLOS.build(), 30.0)
        registry.register_job(JobRequest("gpt", ("h0", "h2"), 16, Profile(1.0, 0.5, 16.0)), 200.0)
        flow = FlowRequest(NicReference("h0", 0), NicReference("h2", 0), 1_000, 0.0)
        registry.register_flow_groups("gpt", [FlowGroupRequest("ring", (flow,))])
        await registry.commit()
        await store.database.write(_return_to_version_3)
        await store.close()
        store = Store.open(address, DrivenClock(200.0))
        migrated = store.registry(CLOS.build(), 30.0)
        assert migrated.jobs == registry.jobs
        graph = TaskGraphRequest((Computation(1.0), TransferRequest("ring")))
        migrated.register_flow_groups("gpt", [], graph)
        await migrated.commit()
        assert migrated.jobs[0].task_graph is not None
        assert store.registry(CLOS.build(), 30.0).jobs == migrated.jobs
        await store.close()

    asyncio.run(scenario())


def _return_to_version_3(connection: Connection) -> None:
    for later in (TASK_GRAPH, PAUSE, PIN):
        later.drop(connection)
    connection.execute(update(PROPERTY).where(PROPERTY.c.name == "schema_version").values(value=3))
