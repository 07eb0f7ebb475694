"""``trainyard audit``: requests to switches and calls, in the order of their times."""

import asyncio
import json
import sqlite3
from pathlib import Path

import pytest

from controller.southbound.write_outcomes import SwitchWrite, WriteOutcome
from controller.store.audit import Call
from controller.store.store import Store
from experiments.scenarios.driven.clock import DrivenClock
from tests.trainyard.cli.conftest import Trainyard


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "trainyard.db"

    async def scenario() -> None:
        clock = DrivenClock(1_000_000.0)
        store = Store.open(str(path), clock)
        store.trail.record(SwitchWrite("t0", 3, 2, 1, WriteOutcome.REFUSED, "table 'flow' is full"))
        clock.advance_to(1_000_001.0)
        store.trail.record_call(Call("alice", "vision", "job", "RegisterJob", "gpt\x1b[31m", "OK"))
        clock.advance_to(1_000_002.0)
        store.trail.record(SwitchWrite("t1", 1, 0, 0, WriteOutcome.ACKNOWLEDGED, ""))
        await store.close()

    asyncio.run(scenario())
    return path


def test_both_kinds_are_listed_by_time(trainyard: Trainyard, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = trainyard("audit", "--database", database)
    assert shown.exit_code == 0
    first, second, third = (line for line in shown.stdout.splitlines() if "1970-01-12" in line)
    assert first.split("  ")[0].strip() == "1970-01-12 13:46:40.000+00:00"
    assert "switch t0: +3 ~2 -1 entries" in first
    assert "alice (job, vision)" in second
    assert "RegisterJob gpt\\x1b[31m" in second
    assert "switch t1" in third


def test_the_newest_are_objects_for_programs(trainyard: Trainyard, database: Path) -> None:
    shown = trainyard("audit", "--database", database, "--last", "2", "--json")
    call, write = json.loads(shown.stdout)["entries"]
    assert call == {
        **{"kind": "call", "time_s": 1_000_001.0, "identity": "alice", "tenant": "vision", "role": "job"},
        **{"method": "RegisterJob", "subject": "gpt\x1b[31m", "outcome": "OK", "problem": ""},
    }
    assert (write["kind"], write["switch"], write["inserted"]) == ("write", "t1", 1)


def test_a_damaged_entry_is_named(trainyard: Trainyard, database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE switch_write SET plan = 'none' WHERE id = 1")
    connection.close()
    shown = trainyard("audit", "--database", database)
    assert shown.exit_code == 1
    assert shown.stderr.startswith(f"database {database}: table switch_write, row 1: plan: ")
    assert len(shown.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["audit", "dump"])
def test_what_is_no_database_is_refused_in_a_line(trainyard: Trainyard, command: str, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("name,bytes\n" * 100)
    for name in ("", "empty", "text", "missing"):
        refused = trainyard(command, "--database", tmp_path / name)
        assert refused.exit_code == 2
        assert len(refused.stderr.splitlines()) == 1
        assert str(tmp_path / name) in refused.stderr


def test_a_damaged_record_is_named_by_dump(trainyard: Trainyard, database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("INSERT INTO plan VALUES (1, 0, 1.0)")
        connection.execute("INSERT INTO fact VALUES (1, 'job', 'a', 1, NULL, '{')")
    connection.close()
    dumped = trainyard("dump", "--database", database)
    assert dumped.exit_code == 1
    assert dumped.stderr.startswith(f"database {database}: table fact, row 1: body: ")
    assert len(dumped.stderr.splitlines()) == 1
