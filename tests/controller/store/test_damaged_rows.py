"""Rows that cannot be what they claim: one line names the database, the table and the row, and nothing starts."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from controller.errors import StoreError
from controller.leadership.exclusive import acquire_term
from controller.store.database import Database
from controller.store.leader_lease import DatabaseLease
from controller.store.store import Store
from tests.controller.record.lives import Life

_SCRIPT = Path(__file__).parent / "version_2.sqlite.sql"
_DEEP = "[" * 100_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with one row in every table, and two in some."""
    path = tmp_path / "trainyard.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(_SCRIPT.read_text())
        connection.execute("INSERT INTO measured VALUES ('silent', 100.0, '[1.0, [1.0, 1.0, 1.0, 9, 1.0], []]')")
    connection.close()
    Database.open(str(path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO task_graph VALUES ('gpt', ?)", (_graph("[0.5,[]],[[0,1],[0]]"),))
    connection.close()
    return path


def _graph(tasks: str) -> str:
    return f'{{"is_guessed":false,"tasks":[{tasks}]}}'


def _change(path: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(path) as connection:
        assert connection.execute(statement, values).rowcount > 0
    connection.close()


def _start(path: Path) -> None:
    """Do what a controller does on a database before it listens."""
    asyncio.run(_take(path))
    life = Life(path, "crux")
    life.start()
    life.store.warn_of_other(life.config)
    life.store.database.close()


async def _take(path: Path) -> None:
    table = DatabaseLease.open(str(path))
    try:
        await acquire_term(table, "x")
    finally:
        table.close()


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        ("job.hosts", "{", "table job, row 'gpt': hosts: Invalid JSON"),
        ("job.hosts", b"[]", "table job, row 'gpt': hosts: "),
        ("job.hosts", "null", "table job, row 'gpt': hosts: "),
        ("job.hosts", '["h0", 7]', "table job, row 'gpt': hosts: "),
        ("job.hosts", _DEEP, "table job, row 'gpt': hosts: "),
        ("job.gpus", "many", "table job, row 'gpt': gpus: "),
        ("job.gpus", 2.5, "table job, row 'gpt': gpus: "),
        ("job.gpus", -2, "job 'gpt' does not fit the topology: gpus: must lie between"),
        ("job.gpus", 1 << 62, "job 'gpt' does not fit the topology: gpus: must lie between"),
        ("job.work", None, "table job, row 'gpt': ValueError: has a part of a profile"),
        ("job.work", 9e999, "table job, row 'gpt': work: "),
        ("job.compute_s", -1.0, "job 'gpt' does not fit the topology: profile.compute_s: "),
        ("job.arrival_s", 9e999, "table job, row 'gpt': arrival_s: "),
        ("job.arrival_s", "yesterday", "table job, row 'gpt': arrival_s: "),
        ("job.owner_token", b"\xff", "table job, row 'gpt': owner_token: "),
        ("job.tenant", 7.5, None),
        ("flow_group.flows", "[[]]", "table flow_group, row ('gpt', 0): flows: "),
        ("flow_group.flows", _DEEP, "table flow_group, row ('gpt', 0): flows: "),
        ("flow_group.flows", b"\xff\xfe", "table flow_group, row ('gpt', 0): flows: "),
        ("flow_group.name", "a/b", "job 'gpt' does not fit the topology: name: "),
        ("task_graph.body", "{", "table task_graph, row 'gpt': body: "),
        ("task_graph.body", _DEEP, "table task_graph, row 'gpt': body: "),
        ("task_graph.body", b"\xff", "table task_graph, row 'gpt': body: "),
        ("task_graph.body", _graph("[0.5,[]],[[0,2],[0]]"), "table task_graph, row 'gpt': body: ValueError: tasks[1]"),
        ("task_graph.body", _graph("[0.5,[]],[[0],[0]]"), "table task_graph, row 'gpt': body: ValueError: tasks: no"),
        ("task_graph.body", _graph("[0.5,[1]]"), "table task_graph, row 'gpt': body: ValueError: tasks[0].after: "),
        ("task_graph.body", _graph("[0.25,[]],[[1],[0]],[[0],[]]"), None),
        ("instance.iteration", -1, "table instance, row ('gpt', 'ring'): iteration: "),
        ("instance.iteration", "seven", "table instance, row ('gpt', 'ring'): iteration: "),
        ("instance.reference_s", 9e999, "table instance, row ('gpt', 'ring'): reference_s: "),
        ("silence.silent_s", -1.0, "table silence, row 'gpt': silent_s: "),
        ("silence.silent_s", 9e999, "table silence, row 'gpt': silent_s: "),
        ("silence.silent_s", "long", "table silence, row 'gpt': silent_s: "),
        ("measured.body", "[1, 2", "table measured, row 'silent': body: "),
        ("measured.body", "[NaN, [1.0, 1.0, 1.0, 9, 1.0], []]", "table measured, row 'silent': body: "),
        ("fact.body", "{", "table fact, row 1: body: "),
        ("fact.body", _DEEP, "table fact, row 1: body: "),
        ("fact.body", b"{}", "plan 1 cannot be put together: "),
        ("fact.body", "7", "plan 1 cannot be put together: "),
        ("fact.kind", "fiction", "table fact, row 1: "),
        ("plan.previous", -1, "table plan, row 1: previous: "),
        ("plan.previous", "none", "table plan, row 1: previous: "),
        ("plan.time_s", "never", "table plan, row 1: time_s: "),
        ("leadership.term", "first", "table leadership, row 1: term: "),
        ("leadership.term", 1 << 60, "table leadership, row 1: term: "),
        ("leadership.lease_s", 9e999, "table leadership, row 1: lease_s: "),
        ("leadership.lease_s", -1.0, "table leadership, row 1: lease_s: "),
        ("leadership.holder", b"\x00", "table leadership, row 1: holder: "),
        ("property.value", "three", "table property, row 'schema_version': value: is not a number"),
    ],
)
def test_a_controller_names_the_row(path: Path, column: str, value: object, problem: str | None) -> None:
    table, _, name = column.partition(".")
    _change(path, f"UPDATE {table} SET {name} = ? WHERE rowid = (SELECT min(rowid) FROM {table})", value)
    if problem is None:
        _start(path)  # it can be what it claims
        return
    with pytest.raises(StoreError) as refused:
        _start(path)
    (line,) = str(refused.value).splitlines()
    assert line.startswith(f"database {path}: ")
    assert problem in line
    assert len(line) < 1_000


def test_a_damaged_configuration_is_named_in_a_line(path: Path) -> None:
    _change(path, "UPDATE fact SET body = '{}' WHERE kind = 'controller'")
    with pytest.raises(StoreError, match="plan 1 cannot be put together: ") as refused:
        _start(path)
    assert "\n" not in str(refused.value)


def test_two_flows_with_one_5_tuple_are_named(path: Path) -> None:
    _change(path, "DELETE FROM task_graph")
    _change(path, "INSERT INTO flow_group SELECT job, 1, 'again', flows FROM flow_group")
    with pytest.raises(
        StoreError, match=r"table flow_group, row \('gpt', 'again'\): flows: udp .* is that of gpt/ring"
    ):
        _start(path)


def test_a_grace_that_can_be_none_is_named(path: Path) -> None:
    _change(path, "INSERT INTO property VALUES ('grace_left_s', -1.0)")
    with pytest.raises(StoreError, match="table property, row 'grace_left_s': value: "):
        _start(path)


def test_what_is_text_to_postgresql_is_checked_too(postgresql) -> None:  # type: ignore[no-untyped-def]
    address = postgresql.new_database()
    Store.open(address, Life("unused", "crux").clock).database.close()
    postgresql.execute(address, "INSERT INTO leadership VALUES (1, 'one', 1, 0, 'NaN', '')")
    table = DatabaseLease.open(address)
    with pytest.raises(StoreError, match="table leadership, row 1: lease_s: "):
        asyncio.run(table.read())
    table.close()
