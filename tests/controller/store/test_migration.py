"""A database of an older version keeps everything, and gets what it lacks."""

import asyncio
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Connection, inspect, select, update

from controller.registry.requests import (
    FlowGroupRequest,
    FlowRequest,
    JobRequest,
    NicReference,
    TaskGraphRequest,
    TransferRequest,
)
from controller.store.audit import writes_between
from controller.store.database import Database
from controller.store.facts import LAST_PLAN_NUMBER, record_lines
from controller.store.migration import Access
from controller.store.schema import CALL, JOB, LEADERSHIP, METADATA, PROPERTY, SCHEMA_VERSION, TASK_GRAPH
from controller.store.store import Store
from experiments.scenarios.driven.clock import DrivenClock
from policies.job import Profile
from policies.task_graph import Computation
from tests.controller.record.lives import CLOS
from tests.postgresql import Server

_FOLDER = Path(__file__).parent


@pytest.fixture(params=["sqlite", "postgresql"])
def older(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that the code of version 2 has left behind."""
    script = (_FOLDER / f"version_2.{request.param}.sql").read_text()
    if request.param == "sqlite":
        path = tmp_path / "trainyard.db"
        connection = sqlite3.connect(path)
        connection.executescript(script)
        connection.close()
        return str(path)
    server: Server = request.getfixturevalue("postgresql")
    address = server.new_database()
    server.execute(address, script)
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


def test_the_schema_after_a_migration_is_that_of_a_new_database(older: str, tmp_path: Path) -> None:
    def columns(database: Database) -> dict[str, set[str]]:
        return database.read(
            lambda connection: {
                table.name: {column["name"] for column in inspect(connection).get_columns(table.name)}
                for table in METADATA.sorted_tables
            }
        )

    new, migrated = Database.open(str(tmp_path / "new.db")), Database.open(older)
    assert columns(migrated) == columns(new)
    version = select(PROPERTY.c.value).where(PROPERTY.c.name == "schema_version")
    assert migrated.read(lambda connection: connection.scalar(version)) == SCHEMA_VERSION
    for database in (new, migrated):
        database.close()
    Database.open(older).close()  # once more: nothing is left to do


def test_a_reader_changes_nothing_of_an_older_database(older: str) -> None:
    database = Database.open(older, Access.READ)
    tables = database.read(lambda connection: inspect(connection).get_table_names())
    assert CALL.name not in tables
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
    TASK_GRAPH.drop(connection)
    connection.execute(update(PROPERTY).where(PROPERTY.c.name == "schema_version").values(value=3))
