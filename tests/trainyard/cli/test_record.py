"""``trainyard dump`` and ``trainyard replay``."""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from controller.errors import StoreError
from tests.controller.record.lives import Life
from tests.trainyard.cli.conftest import Trainyard


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a controller has left behind after seven Plans, of which the database has not taken the sixth."""

    async def scenario() -> Path:
        life = Life(tmp_path_factory.mktemp("life") / "trainyard.db", "crux")
        life.start()
        await life.live(5)
        await life.controller.flush()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("controller.store.facts.decision_steps", _full)
            await life.live(1)
            await life.controller.flush()
        await life.live(1)
        await life.end()
        return Path(life.database)

    return asyncio.run(scenario())


def _full(*_: object, **__: object) -> None:
    raise StoreError("database: disk is full")


@pytest.fixture
def record(trainyard: Trainyard, database: Path, tmp_path: Path) -> Path:
    """All of it, dumped."""
    file = tmp_path / "record.jsonl"
    assert trainyard("dump", "--database", database, "--out", file).exit_code == 0
    return file


def _give_reasons(record: Path, reason: str, number: int | None = None) -> list[str]:
    """Have the first so many orders in a record say another reason, or all of them; returns whose they are."""
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    orders = [line for line in lines if line.get("fact") == "order" and line["body"] is not None][:number]
    for line in orders:
        line["body"]["reason"] = reason
    record.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return [order["key"] for order in orders]


def test_what_is_dumped_is_decided_again(trainyard: Trainyard, database: Path, record: Path) -> None:
    assert trainyard("dump", "--database", database).stdout == record.read_text()
    replayed = trainyard("replay", record)
    assert replayed.exit_code == 0
    assert replayed.stdout.splitlines()[-1] == "1 not checked, 5 same"
    other = trainyard("replay", record, "--policy", "ecmp", "--json")
    assert other.exit_code == 0
    plans = [json.loads(line) for line in other.stdout.splitlines()]
    assert [(plan["plan"], plan["policy"]) for plan in plans] == [(number, "ecmp") for number in (1, 2, 3, 4, 5, 7)]
    assert any(plan["difference"]["moved"] for plan in plans)


@pytest.mark.parametrize(
    ("first", "last", "verdicts"),
    [
        (3, 4, [(2, "not checked"), (3, "same"), (4, "same")]),
        (6, 7, [(7, "not checked")]),
    ],
    ids=["with the plan before", "begins in a gap"],
)
def test_a_part_is_asked_for_by_the_numbers_of_plans(
    trainyard: Trainyard, database: Path, tmp_path: Path, first: int, last: int, verdicts: list[tuple[int, str]]
) -> None:
    file = tmp_path / "record.jsonl"
    asked = ("--from", str(first), "--to", str(last), "--out", file)
    assert trainyard("dump", "--database", database, *asked).exit_code == 0
    plans = [json.loads(line) for line in trainyard("replay", file, "--json").stdout.splitlines()]
    assert [(plan["plan"], plan["verdict"]) for plan in plans] == verdicts


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--from", "9"), "has no Plans from 9 on; its record goes from 1 to 7"),
        (("--from", "4", "--to", "3"), "has no Plans from 4 to 3; its record goes from 1 to 7"),
        (("--from", "6", "--to", "6"), "has no Plans from 6 to 6; its record goes from 1 to 7 and lacks 6 to 6"),
    ],
    ids=["behind its end", "backwards", "in a gap"],
)
def test_plans_that_are_not_there_are_refused(
    trainyard: Trainyard, database: Path, asked: tuple[str, ...], said: str
) -> None:
    dumped = trainyard("dump", "--database", database, *asked)
    assert (dumped.exit_code, dumped.stdout) == (2, "")
    assert dumped.stderr.strip().endswith(said)


def test_a_part_that_goes_on_behind_the_end_of_the_record_is_told_so(trainyard: Trainyard, database: Path) -> None:
    short = trainyard("dump", "--database", database, "--to", "9")
    assert (short.exit_code, short.stderr) == (0, "the record ends with Plan 7\n")


def test_a_plan_that_is_no_longer_the_same_ends_with_1_and_what_differs(trainyard: Trainyard, record: Path) -> None:
    [job] = _give_reasons(record, "It was so.", number=1)
    replayed = trainyard("replay", record)
    assert replayed.exit_code == 1
    assert re.search(
        r"^Plan 1 at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\+00:00: different", replayed.stdout, re.MULTILINE
    )
    assert f"different for {job}" in replayed.stdout


def test_another_policy_that_moves_nothing_is_said_in_a_line(trainyard: Trainyard, record: Path) -> None:
    assert _give_reasons(record, "It was so.")
    replayed = trainyard("replay", record, "--policy", "crux")
    assert "only in ranks, orders or reasons" in replayed.stdout
    assert "nobody" not in replayed.stdout


@pytest.mark.slow
def test_whoever_reads_may_have_read_enough(database: Path, record: Path) -> None:
    for command in (["dump", "--database", str(database)], ["replay", str(record), "--json"]):
        with subprocess.Popen(
            [sys.executable, "-m", "trainyard", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            assert process.stderr.read() == b""


def test_a_record_that_was_cut_off_is_refused_with_its_line(trainyard: Trainyard, record: Path) -> None:
    record.write_text("".join(record.read_text().splitlines(keepends=True)[:7]))
    replayed = trainyard("replay", record)
    said = f"{record}:8: the record is cut off here: its last line is missing\n"
    assert (replayed.exit_code, replayed.stderr) == (2, said)


def test_a_database_that_is_not_there_is_refused_and_not_made(trainyard: Trainyard, tmp_path: Path) -> None:
    missing = tmp_path / "missing.db"
    dumped = trainyard("dump", "--database", missing)
    assert (dumped.exit_code, dumped.stderr) == (2, f"database {missing}: there is no such file\n")
    assert not missing.exists()
