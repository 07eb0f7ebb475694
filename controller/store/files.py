"""The file of an SQLite database: it must be one, and stay the same while the database is open."""

import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from controller.errors import DaemonError

_CREATED_WITHIN_S = 1.0
"""Another controller that has just created the file fills it within this time."""
_LOOK_S = 0.02
_APPLICATION_ID = slice(68, 72)
"""Where in its file an SQLite database says whose it is (https://sqlite.org/fileformat.html#application_id)."""
BACKUP_ID = b"TYBK"
"""What a backup has there."""
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class UnfitFileError(DaemonError):
    """A file that is no database, or not the one that was opened; the message says why."""


def prepare_file(path: Path, *, may_be_new: bool) -> bool:
    """Create the file where there is none, readable by its owner alone: it holds the owner tokens of jobs.

    Returns whether it was created. Raises UnfitFileError where what is there can be no database.
    """
    path = Path(os.path.realpath(path))
    try:
        found = path.stat()
    except FileNotFoundError:
        if not may_be_new:
            raise UnfitFileError("there is no such file") from None
        with suppress(OSError):  # SQLite gives the better message
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            return True
        return False
    except OSError as error:
        raise UnfitFileError(f"cannot be opened: {error.strerror}") from error
    for is_kind, kind in _KINDS:
        if is_kind(found.st_mode):
            raise UnfitFileError(f"is {kind}, not a file")
    if found.st_size == 0:
        _wait_until_filled(path)
    return False


def require_no_backup(path: Path) -> None:
    """Raise UnfitFileError where a file is a backup, which opening it to write would already change."""
    with suppress(OSError), path.open("rb") as file:
        header = file.read(_APPLICATION_ID.stop)
        if header[_APPLICATION_ID] == BACKUP_ID:
            raise UnfitFileError("is a backup: `trainyard database restore` makes a database of it")


def _wait_until_filled(path: Path) -> None:
    end_s = time.monotonic() + _CREATED_WITHIN_S
    while True:
        with suppress(FileNotFoundError):
            if path.stat().st_size > 0:
                return
        if time.monotonic() >= end_s:
            raise UnfitFileError("is empty; delete it to begin anew")
        time.sleep(_LOOK_S)


def remove_if_empty(path: Path) -> None:
    """Remove a file that was created for a database that could not be."""
    with suppress(OSError):
        if path.stat().st_size == 0:
            path.unlink()


class OpenedFile:
    """The file of an open database, which stays open where its name is deleted or given to another file."""

    def __init__(self, path: Path) -> None:
        # A relative path means the same file still where the working directory changes.
        self._path = path.absolute()
        self._identity = self._now()

    def check(self) -> None:
        """Raise UnfitFileError where the name is not that of this file any more: what is committed would be lost."""
        now = self._now()
        if now is None:
            raise UnfitFileError("the file has been deleted or moved away since it was opened")
        if now != self._identity:
            raise UnfitFileError("the file has been replaced by another since it was opened")

    def _now(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino
