"""``trainyard database``: what the commands print, and their exit statuses."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.controller.store.contents import contents
from tests.controller.store.filling import fill
from tests.trainyard.cli.conftest import Trainyard

_VERSION_2 = Path(__file__).parents[2] / "controller" / "store" / "version_2.sqlite.sql"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with something in every table."""
    path = tmp_path / "trainyard.db"

    async def fill_and_end() -> None:
        await (await fill(str(path))).end()

    asyncio.run(fill_and_end())
    return path


def test_a_database_is_backed_up_verified_and_restored(path: Path, tmp_path: Path, trainyard: Trainyard) -> None:
    file, other = tmp_path / "backup", tmp_path / "other.db"
    made = trainyard("database", "backup", "--database", path, file)
    assert (made.exit_code, made.stderr) == (0, "")
    assert made.stdout.startswith(f"backed up: database {path} to {file}: ")
    assert made.stdout.endswith(" rows, with 5 jobs and 4 Plans\n")
    again = trainyard("database", "backup", "--database", path, file)
    assert (again.exit_code, again.stderr) == (2, f"{file}: exists; --force replaces it\n")
    assert trainyard("database", "backup", "--database", path, file, "--force").exit_code == 0
    verified = trainyard("database", "verify", file)
    assert verified.exit_code == 0
    assert verified.stdout.startswith(f"ok: database {file}: ")
    restored = trainyard("database", "restore", file, "--database", other)
    assert (restored.exit_code, restored.stdout) == (0, f"restored: database {other} from {file}\n")
    assert contents(other) == contents(path)
    again = trainyard("database", "restore", file, "--database", other)
    assert again.exit_code == 2
    assert again.stderr == f"database {other}: holds a database of Trainyard; --force replaces all that it holds\n"
    assert trainyard("database", "restore", file, "--database", other, "--force").exit_code == 0
    assert trainyard("dump", "--database", file).stdout == trainyard("dump", "--database", path).stdout


def test_what_is_damaged_is_printed_with_exit_status_1(path: Path, trainyard: Trainyard) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE drain SET kind = 'rack'")
        connection.commit()
    verified = trainyard("database", "verify", path)
    assert verified.exit_code == 1
    assert [line.partition(": ")[0] for line in verified.stdout.splitlines()] == [
        "table drain, row 'rack a0'",
        "table drain, row 'rack a1:1 - t0:4'",
    ]
    assert verified.stderr == f"database {path}: 2 problems\n"


@pytest.mark.parametrize(
    ("content", "status", "problem"),
    [
        (None, 2, "there is no such file"),
        (b"name,bytes\n" * 999, 1, "file is not a database"),
        (b"SQLite format 3\0" + bytes(9000), 1, "file is not a database"),
    ],
)
def test_what_is_no_database_is_refused_in_a_line(
    tmp_path: Path, content: bytes | None, status: int, problem: str, trainyard: Trainyard
) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    verified = trainyard("database", "verify", path)
    assert (verified.exit_code, verified.stdout, verified.stderr) == (status, "", f"database {path}: {problem}\n")
    made = trainyard("database", "backup", "--database", path, tmp_path / "backup")
    assert (made.exit_code, made.stderr) == (2, f"database {path}: {problem}\n")
    restored = trainyard("database", "restore", path, "--database", tmp_path / "other.db")
    assert (restored.exit_code, restored.stderr) == (2, f"database {path}: {problem}\n")
    assert not {"backup", "other.db"} & {found.name for found in tmp_path.iterdir()}


def test_a_database_is_upgraded_once(tmp_path: Path, trainyard: Trainyard) -> None:
    path = tmp_path / "trainyard.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(_VERSION_2.read_text())
    assert trainyard("database", "verify", path).exit_code == 0
    upgraded = trainyard("database", "upgrade", "--database", path)
    assert upgraded.exit_code == 0
    assert upgraded.stdout.startswith(f"upgraded: the schema of database {path} from version 2 to ")
    again = trainyard("database", "upgrade", "--database", path)
    assert again.stdout.startswith(f"nothing to do: the schema of database {path} has version ")
    assert trainyard("database", "upgrade", "--database", tmp_path / "nowhere.db").exit_code == 2
