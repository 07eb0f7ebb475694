"""``verify`` reads every row as a controller does, and tells all that is damaged with table and key."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from controller.store.schema import METADATA
from controller.store.verify import READERS, TABLES_OF_JOBS
from tests.controller.store.contents import problems_of
from tests.controller.store.filling import fill
from tests.postgresql import Server


async def _fill(address: str) -> None:
    await (await fill(address)).end()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with something in every table."""
    path = tmp_path / "trainyard.db"
    asyncio.run(_fill(str(path)))
    return path


def _change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount != 0
        connection.commit()


def test_the_rows_of_every_table_are_read() -> None:
    assert set(READERS) | set(TABLES_OF_JOBS) == set(METADATA.tables.values())


def test_a_sound_database_has_no_problems(address: str) -> None:
    asyncio.run(_fill(address))
    assert problems_of(address) == []


def test_all_that_is_damaged_is_told_with_table_and_key(path: Path) -> None:
    _change(
        path,
        "UPDATE property SET value = -1 WHERE name = 'grace_left_s'",
        "UPDATE job SET hosts = '{' WHERE name = 'job-0'",
        "UPDATE job SET arrival_s = 9e999 WHERE name = 'silent'",
        "UPDATE flow_group SET flows = '[[]]' WHERE job = 'job-1'",
        "UPDATE task_graph SET body = '{' WHERE job = 'job-2'",
        "UPDATE silence SET silent_s = -1 WHERE job = 'job-0'",
        "UPDATE instance SET iteration = -1",
        "UPDATE measured SET body = '[]'",
        "UPDATE plan SET time_s = 'never' WHERE number = 2",
        "UPDATE fact SET kind = 'fiction' WHERE id = 5",
        "UPDATE fact SET body = '{' WHERE id = 7",
        "UPDATE switch_write SET inserted = 'many'",
        "UPDATE call SET identity = x'ff'",
        "UPDATE drain SET kind = 'rack' WHERE name = 'a0'",
        "UPDATE pause SET since_s = 9e999",
        "UPDATE pin SET level = NULL",
        "INSERT INTO pin VALUES ('job-1', -1, NULL, 0, 1e9, '')",
        "UPDATE leadership SET term = -1",
    )
    expected = (
        "table property, row 'grace_left_s': value: ",
        "table job, row 'job-0': hosts: ",
        "table job, row 'silent': arrival_s: ",
        "table flow_group, row ('job-1', 0): flows: ",
        "table flow_group, row ('job-1', 1): flows: ",
        "table task_graph, row 'job-2': body: ",
        "table silence, row 'job-0': silent_s: ",
        "table instance, row ('job-0', 'g'): iteration: ",
        "table measured, row 'silent': body: ",
        "table plan, row 2: time_s: ",
        "table fact, row 5: ",
        "table fact, row 7: body: ",
        "table switch_write, row 1: inserted: ",
        "table call, row 1: identity: ",
        "table drain, row 'rack a0'",
        "table pause, row 1: since_s: ",
        "table pin, row 'job-0': level: ",
        "table pin, row 'job-1': level: ",
        "table leadership, row 1: term: ",
    )
    problems = problems_of(path)
    for beginning in expected:
        assert [problem for problem in problems if problem.startswith(beginning)], beginning
    assert len(problems) == len(expected), problems


@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        (("UPDATE job SET num_groups = 3 WHERE name = 'job-0'",), "table job, row 'job-0': num_groups: 3, where 2"),
        (("UPDATE instance SET job = 'gone'",), "table instance, row ('gone', 'g'): job: job has no such row"),
        (("UPDATE silence SET job = 'gone' WHERE job = 'silent'",), "table silence, row 'gone': job: job has no such"),
        (("DELETE FROM fact WHERE kind = 'order' AND key = 'job-1'",), "table plan, row 2: plan 2 cannot be put"),
        (
            ("UPDATE job SET gpus = -3 WHERE name = 'silent'",),
            "table job, row 'silent': does not fit the newest Plan's",
        ),
        (
            ("UPDATE flow_group SET flows = replace(flows, '\"h4\"', '\"h77\"') WHERE job = 'job-2'",),
            "table job, row 'job-2': does not fit the newest Plan's topology: flow_groups[0].flows[0]",
        ),
        (
            ("UPDATE flow_group SET name = CAST(x'67ff' AS TEXT) WHERE job = 'job-3' AND position = 0",),
            "table flow_group, row ('job-3', 0): name: is not UTF-8",
        ),
        (
            ("UPDATE job SET owner_token = CAST(x'736563726574ff' AS TEXT) WHERE name = 'silent'",),
            "table job, row 'silent': owner_token: is not UTF-8",
        ),
    ],
)
def test_what_rows_say_of_one_another_is_checked(path: Path, statements: tuple[str, ...], problem: str) -> None:
    _change(path, *statements)
    told = problems_of(path)
    assert [each for each in told if each.startswith(problem)], told
    assert not any("secret" in each for each in told)


def test_two_flows_with_the_same_5_tuple_are_told(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        (flows,) = connection.execute("SELECT flows FROM flow_group WHERE job = 'job-1' AND position = 0").fetchone()
        connection.execute("UPDATE flow_group SET flows = ? WHERE job = 'job-1' AND position = 1", (flows,))
        connection.commit()
    assert any(each.startswith("table flow_group, row ('job-1', 'h'): flows: ") for each in problems_of(path))


def test_damaged_pages_are_told_and_the_rest_is_read(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'fact'").fetchone()
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute("UPDATE drain SET kind = 'rack' WHERE name = 'a0'")
        connection.commit()
    content = bytearray(path.read_bytes())
    content[(page - 1) * page_bytes : page * page_bytes] = bytes(page_bytes)
    path.write_bytes(content)
    problems = problems_of(path)
    assert any(each == "table fact: database disk image is malformed" for each in problems), problems
    assert any(each.startswith("table drain, row ") for each in problems)


def test_damaged_rows_on_postgresql_are_told(postgresql: Server) -> None:
    address = postgresql.new_database()
    asyncio.run(_fill(address))
    postgresql.execute(
        address,
        "UPDATE job SET arrival_s = 'NaN' WHERE name = 'silent'; UPDATE fact SET body = '{' WHERE id = 7;"
        "UPDATE drain SET kind = 'rack' WHERE name = 'a0'",
    )
    problems = problems_of(address)
    assert len(problems) == 3
    for beginning in ("table job, row 'silent': arrival_s: ", "table fact, row 7: body: ", "table drain, row "):
        assert any(problem.startswith(beginning) for problem in problems)
