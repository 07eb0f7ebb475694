"""Backups of databases, also of those that a controller writes to: sealed files of SQLite, whatever the database is.

They hold the owner tokens of jobs, and only their owner can read them.
"""

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from sqlalchemy import Connection

from controller.errors import StoreError
from controller.store.copies import copy_to_file, file_url
from controller.store.database import Database
from controller.store.engine import engine_of, path_of
from controller.store.seal import seal
from controller.store.verify import check_file

_BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside the file of a database that is in use."""


class UnfitBackupError(StoreError):
    """A file that a backup cannot be written to, or that is no sound backup; nothing was changed."""


def back_up(database: Database, file: Path, *, is_forced: bool) -> Mapping[str, int]:
    """Back up a database that was opened to be read; returns the number of rows by table.

    The file is there once it is whole. One that is there already is replaced only where that ``is_forced``.

    Raises:
        UnfitBackupError: The file is there, or it cannot be written.
        StoreError: The database cannot be read, or is damaged.
    """
    _require_free(file, path_of(database.engine.url), is_forced=is_forced)
    try:
        descriptor, name = tempfile.mkstemp(prefix=".trainyard-backup-", dir=file.parent)
        os.close(descriptor)
        path = Path(name)
        try:
            copy_to_file(database, path)
            counts = _seal(database.name, path)
            _flush(path)
            _require_free(file, path_of(database.engine.url), is_forced=is_forced)
            path.replace(file)
            _flush(file.parent)
        finally:
            for ending in ("", *_BESIDE):
                with suppress(FileNotFoundError):
                    Path(f"{name}{ending}").unlink()
    except OSError as error:
        raise UnfitBackupError(f"{file}: cannot be written: {error.strerror}") from error
    return counts


def _require_free(file: Path, source: Path | None, *, is_forced: bool) -> None:
    if not os.path.lexists(file):
        return
    if file.is_dir():
        raise UnfitBackupError(f"{file}: is a directory, not a file")
    if source is not None and file.exists() and file.samefile(source):
        raise UnfitBackupError(f"{file}: is the database itself")
    if source is not None and file.resolve() in {Path(f"{source.resolve()}{ending}") for ending in _BESIDE}:
        raise UnfitBackupError(f"{file}: is a part of the database itself")
    if not is_forced:
        raise UnfitBackupError(f"{file}: exists; --force replaces it")
    for ending in _BESIDE:
        if Path(f"{file}{ending}").exists():
            raise UnfitBackupError(f"{file}: is a database in use: {file.name}{ending} is beside it")


def _seal(name: str, path: Path) -> Mapping[str, int]:
    database = Database(engine_of(file_url(path)))
    problems: list[str] = []
    try:
        database.read(partial(check_file, problems.append))
        if not problems:
            counts = database.write_now(seal)
            database.read(_put_in_one_file)
            return counts
    except StoreError as error:
        problem = str(error).removeprefix(f"{database.name}: ")
        raise StoreError(f"{name}: cannot be backed up: {problem}") from error
    finally:
        database.close()
    raise StoreError(f"{name}: is damaged: {problems[0]}")


def _put_in_one_file(connection: Connection) -> None:
    """Have nothing beside the file of an SQLite database once it is closed."""
    connection.exec_driver_sql("ROLLBACK")
    connection.exec_driver_sql("PRAGMA journal_mode = DELETE").close()


def _flush(path: Path) -> None:
    """Have the disk keep a file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
