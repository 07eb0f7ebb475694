"""Files that are read again when they change, so that keys and tokens are renewed without a restart."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Generic, TypeVar

from controller.errors import DaemonError
from topologies.files import FileError, read_bytes

_LOG = logging.getLogger(__name__)

_CHECKED_EVERY_S = 1.0

ContentT = TypeVar("ContentT")

_Stamp = tuple[tuple[int, int, int], ...]


class UnusableFileError(DaemonError, ValueError):
    """A file cannot be read, or does not hold what it should; the message names it."""


class ReloadingFiles(Generic[ContentT]):
    """What ``parse`` makes of some files, made again within a second after one of them has changed.

    Where changed files cannot be used, what was read before stays, and a line in the log says so.

    Args:
        paths: The files.
        parse: Called with their contents; raises ValueError where they cannot be used.
        now_s: The time by which changes are looked for.

    Raises:
        UnusableFileError: The files cannot be used when they are read first.
    """

    def __init__(
        self, paths: Sequence[Path], parse: Callable[..., ContentT], now_s: Callable[[], float] = monotonic
    ) -> None:
        self._paths = tuple(paths)
        self._parse = parse
        self._now_s = now_s
        self._checked_s = now_s()
        self._stamp = self._read_stamp()
        self._content = self._load()
        self.version = 1
        """Rises whenever the content changes."""

    @property
    def content(self) -> ContentT:
        """What the files hold now."""
        now_s = self._now_s()
        if now_s - self._checked_s >= _CHECKED_EVERY_S:
            self._checked_s = now_s
            self._reload()
        return self._content

    def _reload(self) -> None:
        try:
            stamp = self._read_stamp()
            if stamp == self._stamp:
                return
            self._stamp = stamp
            self._content = self._load()
        except UnusableFileError as error:
            _LOG.error("%s; what was read before stays in use", error)
            return
        self.version += 1
        _LOG.warning("read again: %s", ", ".join(map(str, self._paths)))

    def _load(self) -> ContentT:
        contents = []
        for path in self._paths:
            try:
                contents.append(read_bytes(path))
            except FileError as error:
                raise UnusableFileError(str(error)) from error
        try:
            return self._parse(*contents)
        except ValueError as error:
            raise UnusableFileError(f"{', '.join(map(str, self._paths))}: {error}") from error

    def _read_stamp(self) -> _Stamp:
        try:
            return tuple((state.st_ino, state.st_mtime_ns, state.st_size) for state in map(Path.stat, self._paths))
        except OSError as error:
            raise UnusableFileError(f"{error.filename}: cannot be read: {error.strerror}") from error
