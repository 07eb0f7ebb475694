"""A backup is one state of a database, whole and private, and nothing that is there is lost to it."""

import asyncio
import os
import re
import resource
import select
import signal
import stat
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.errors import StoreError
from controller.registry.registry import Registry
from controller.store.backup import UnfitBackupError
from controller.store.database import Database
from controller.store.migration import Access
from controller.store.restore import restore
from controller.store.store import Store
from experiments.scenarios.driven.clock import DrivenClock
from tests.controller.store.contents import backed_up, contents, problems_of
from tests.controller.store.filling import fill
from tests.controller.store.registering import FABRIC, LEASE_S, change, held, restored
from tests.patience import PATIENCE_S

_ROOT = Path(__file__).resolve().parents[3]
_BACKUPS = 4


def test_a_backup_holds_all_of_a_database_and_is_private(address: str, tmp_path: Path) -> None:
    async def scenario() -> Path:
        life = await fill(address)
        try:
            return backed_up(address, tmp_path / "backup")
        finally:
            await life.end()

    file = asyncio.run(scenario())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert contents(file) == contents(address)
    assert problems_of(address) == problems_of(file) == []
    others = {"trainyard.db", "trainyard.db-wal", "trainyard.db-shm"}
    assert {path.name for path in tmp_path.iterdir()} - others == {"backup"}


def test_a_backup_of_a_backup_is_one_too(tmp_path: Path) -> None:
    asyncio.run(_fill(tmp_path / "trainyard.db"))
    first = backed_up(tmp_path / "trainyard.db", tmp_path / "first")
    second = backed_up(first, tmp_path / "second")
    assert contents(second) == contents(first)
    assert problems_of(second) == []


async def _fill(address: Path | str) -> None:
    await (await fill(str(address))).end()


@pytest.mark.parametrize("access", [Access.WRITE, Access.CREATE, Access.RESTORE])
def test_a_backup_is_not_opened_to_be_written(tmp_path: Path, access: Access) -> None:
    Database.open(str(tmp_path / "trainyard.db")).close()
    file = backed_up(tmp_path / "trainyard.db", tmp_path / "backup")
    before = file.read_bytes()
    with pytest.raises(StoreError, match="backup: is a backup: `trainyard database restore` makes a database of it"):
        Database.open(str(file), access)
    assert file.read_bytes() == before


def test_a_file_that_is_there_stays_unless_that_is_forced(tmp_path: Path) -> None:
    path, file = tmp_path / "trainyard.db", tmp_path / "backup"
    Database.open(str(path)).close()
    file.write_text("precious")
    with pytest.raises(UnfitBackupError, match="backup: exists; --force replaces it"):
        backed_up(path, file)
    assert file.read_text() == "precious"
    assert problems_of(backed_up(path, file, is_forced=True)) == []


def test_neither_the_database_nor_one_in_use_nor_a_folder_is_replaced(tmp_path: Path) -> None:
    path, other = tmp_path / "trainyard.db", tmp_path / "other.db"
    Database.open(str(path)).close()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(path)
    for name, problem in (
        ("trainyard.db", "is the database itself"),
        ("link", "is the database itself"),
        ("folder", "is a directory, not a file"),
        ("nowhere/backup", "cannot be written: No such file or directory"),
    ):
        with pytest.raises(UnfitBackupError, match=problem):
            backed_up(path, tmp_path / name, is_forced=True)
    with (
        closing(Database.open(str(other))),
        pytest.raises(UnfitBackupError, match=r"is a database in use: other\.db-wal is beside it"),
    ):
        backed_up(path, other, is_forced=True)
    for beside in ("trainyard.db-wal", "folder/../trainyard.db-shm"):
        with (
            closing(Database.open(str(path))),
            pytest.raises(UnfitBackupError, match="is a part of the database itself"),
        ):
            backed_up(path, tmp_path / beside, is_forced=True)
    assert problems_of(path) == problems_of(other) == []
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder", "link", "other.db", "trainyard.db"]


def test_a_disk_that_is_full_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    path, file = tmp_path / "trainyard.db", tmp_path / "backup"
    asyncio.run(_fill(path))
    whole = backed_up(path, file).stat().st_size
    file.unlink()
    command = (sys.executable, "-m", "trainyard", "database", "backup", "--database", str(path), str(file))
    # What is copied fits, and then what the seal takes does not; or nothing does.
    for most_bytes in (whole - 1, path.stat().st_size, 64 * 1024):
        ended = subprocess.run(
            command,
            cwd=_ROOT,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=partial(_limit_files, most_bytes),
        )
        assert ended.returncode == 1
        assert re.fullmatch(rf"database {path}: cannot be (copied|backed up): .+\n", ended.stderr)
        assert [each.name for each in tmp_path.iterdir()] == ["trainyard.db"]


def _limit_files(most_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def test_a_damaged_database_makes_no_backup(tmp_path: Path) -> None:
    path, file = tmp_path / "trainyard.db", tmp_path / "backup"
    asyncio.run(_fill(path))
    whole = path.read_bytes()
    page_bytes = int.from_bytes(whole[16:18])
    path.write_bytes(whole[: 2 * page_bytes] + bytes(page_bytes) + whole[3 * page_bytes :])
    with pytest.raises(StoreError, match=r"trainyard\.db: "):
        backed_up(path, file)
    assert not file.exists()
    assert not list(tmp_path.glob(".trainyard-backup-*"))


def test_backups_during_writes_are_each_one_acknowledged_state(address: str, tmp_path: Path) -> None:
    command = (sys.executable, "-m", "tests.controller.store.registering", address, "0")
    ranges, files = [], []
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=_ROOT) as process:
        try:
            assert process.stdout is not None
            known = 0
            for number in range(_BACKUPS):
                known = _newest(process.stdout.fileno(), known)
                files.append(backed_up(address, tmp_path / f"backup-{number}"))
                first, known = known, _newest(process.stdout.fileno(), known)
                ranges.append((first, known))
        finally:
            process.kill()
    model, states = Registry(FABRIC, LEASE_S), []
    for number in range(ranges[-1][1] + 1):
        states.append(held(model))
        change(model, number)
    for number, ((first, last), file) in enumerate(zip(ranges, files, strict=True)):
        assert problems_of(file) == []
        asyncio.run(restore(file, str(tmp_path / f"restored-{number}.db"), is_forced=False))
        assert held(restored(str(tmp_path / f"restored-{number}.db"))) in states[first : last + 1]
    assert ranges[-1][1] > ranges[0][0] + _BACKUPS


def _newest(output: int, known: int) -> int:
    """The last step that is acknowledged now, later than a known one."""
    text = b""
    while not text.endswith(b"\n") or (select.select([output], [], [], 0)[0]):
        assert select.select([output], [], [], PATIENCE_S)[0]
        text += os.read(output, 1 << 16)
        if text.endswith(b"\n") and int(text.split()[-1]) <= known:
            text = b""
    return int(text.split()[-1])


@settings(max_examples=12)
@given(steps=st.lists(st.integers(0, 10_000), max_size=40))
def test_backup_restore_and_verify_agree_on_any_registry(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("drawn")
    _back_up_and_restore(str(folder / "trainyard.db"), steps, folder)


@pytest.mark.parametrize("seed", [1, 2])
def test_they_agree_on_both_kinds_of_database(address: str, tmp_path: Path, seed: int) -> None:
    draws = Random(seed)
    _back_up_and_restore(address, [draws.randrange(10_000) for _ in range(60)], tmp_path)


def _back_up_and_restore(address: str, steps: list[int], folder: Path) -> None:
    asyncio.run(_change_by(address, steps))
    file, path = folder / "backup", folder / "restored.db"
    asyncio.run(restore(backed_up(address, file), str(path), is_forced=False))
    assert problems_of(address) == problems_of(file) == problems_of(path) == []
    assert contents(address) == contents(file) == contents(path)
    assert held(restored(str(path))) == held(restored(address))


async def _change_by(address: str, steps: list[int]) -> None:
    store = Store.open(address, DrivenClock())
    registry = store.registry(FABRIC, LEASE_S)
    for step in steps:
        change(registry, step)
        await registry.commit()
    await store.close()
