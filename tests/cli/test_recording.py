"""``trainyard dump`` and ``trainyard replay``."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from controller.policy.policy_name import PolicyName
from tests.cli.conftest import Trainyard
from tests.controller.record.lives import Life


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a controller has left behind after five Plans."""

    async def scenario() -> Path:
        life = Life(tmp_path_factory.mktemp("life") / "trainyard.db", PolicyName.CRUX)
        life.start()
        await life.live(5)
        await life.end()
        return Path(life.database)

    return asyncio.run(scenario())


def test_what_is_dumped_is_decided_again(trainyard: Trainyard, database: Path, tmp_path: Path) -> None:
    file = tmp_path / "record.jsonl"
    assert trainyard("dump", "--database", database, "--output", file).exit_code == 0
    assert trainyard("dump", "--database", database).stdout == file.read_text()
    replayed = trainyard("replay", file)
    assert replayed.exit_code == 0
    assert replayed.stdout.splitlines()[-1] == "5 same"
    other = trainyard("replay", file, "--policy", "ecmp", "--json")
    assert other.exit_code == 0
    plans = [json.loads(line) for line in other.stdout.splitlines()]
    assert [(plan["plan"], plan["policy"]) for plan in plans] == [(number, "ecmp") for number in range(1, 6)]
    assert any(plan["difference"]["moved"] for plan in plans)


def test_a_part_is_asked_for_by_the_numbers_of_plans(trainyard: Trainyard, database: Path, tmp_path: Path) -> None:
    file = tmp_path / "record.jsonl"
    assert trainyard("dump", "--database", database, "--from", "3", "--to", "4", "--output", file).exit_code == 0
    replayed = trainyard("replay", file, "--json")
    plans = [json.loads(line) for line in replayed.stdout.splitlines()]
    assert [(plan["plan"], plan["verdict"]) for plan in plans] == [(2, "not checked"), (3, "same"), (4, "same")]


def test_a_plan_that_is_no_longer_the_same_ends_with_1_and_what_differs(
    trainyard: Trainyard, database: Path, tmp_path: Path
) -> None:
    file = tmp_path / "record.jsonl"
    trainyard("dump", "--database", database, "--output", file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    order = next(line for line in lines if line.get("fact") == "order")
    order["body"]["reason"] = "It was so."
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    replayed = trainyard("replay", file)
    assert replayed.exit_code == 1
    assert "plan 1 at" in replayed.stdout
    assert f"different for {order['key']}" in replayed.stdout


def test_another_policy_that_moves_nothing_is_said_in_a_line(
    trainyard: Trainyard, database: Path, tmp_path: Path
) -> None:
    file = tmp_path / "record.jsonl"
    trainyard("dump", "--database", database, "--output", file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        if line.get("fact") == "order" and line["body"] is not None:
            line["body"]["reason"] = "It was so."
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    replayed = trainyard("replay", file, "--policy", "crux")
    assert "in ranks, orders or reasons alone" in replayed.stdout
    assert "nobody" not in replayed.stdout


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--from", "9"), "has no plans from 9 on, its record goes from 1 to 5"),
        (("--from", "4", "--to", "3"), "has no plans from 4 to 3, its record goes from 1 to 5"),
    ],
)
def test_plans_that_are_not_there_are_refused(
    trainyard: Trainyard, database: Path, asked: tuple[str, ...], said: str
) -> None:
    dumped = trainyard("dump", "--database", database, *asked)
    assert (dumped.exit_code, dumped.stdout) == (2, "")
    assert said in dumped.stderr
    short = trainyard("dump", "--database", database, "--to", "7")
    assert (short.exit_code, short.stderr) == (0, "the record ends with plan 5\n")


def test_whoever_reads_may_have_read_enough(trainyard: Trainyard, database: Path, tmp_path: Path) -> None:
    file = tmp_path / "record.jsonl"
    trainyard("dump", "--database", database, "--output", file)
    for command in (["dump", "--database", str(database)], ["replay", str(file), "--json"]):
        with subprocess.Popen(
            [sys.executable, "-m", "controller", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            assert process.stderr.read() == b""


def test_what_is_no_record_is_refused_with_its_line(trainyard: Trainyard, database: Path, tmp_path: Path) -> None:
    file = tmp_path / "record.jsonl"
    trainyard("dump", "--database", database, "--output", file)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:7]))
    replayed = trainyard("replay", file)
    assert (replayed.exit_code, replayed.stderr) == (
        2,
        f"{file}:8: the record is cut off here: its last line is missing\n",
    )
    missing = tmp_path / "missing.db"
    dumped = trainyard("dump", "--database", missing)
    assert (dumped.exit_code, dumped.stderr) == (2, f"database {missing}: there is no such file\n")
    assert not missing.exists()
