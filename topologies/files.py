"""Reads files that somebody else may have written: within bounds, without waiting for ever, with one line per error.

Only regular files and pipes are read. A device, a directory or a socket is refused before it is opened. A pipe
(``<(command)``, ``/dev/stdin``, a FIFO) may be slow, but one that stays silent for ``PATIENCE_S`` is given up.
"""

import io
import os
import select
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from topologies.printable import printable

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MOST_BYTES = 16 << 20
"""The largest file that is read as a whole, unless the caller allows more."""
MOST_LINE_CHARACTERS = 64 << 20
"""The longest line of a file that is read line by line."""
PATIENCE_S = 30.0
"""For how long a pipe may stay silent."""
_LONGEST_PATH = 4096


class FileError(ValueError):
    """A file that cannot be read; the message is one line that names it."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{shown_path(path)}: {problem}")


def shown_path(path: Path) -> str:
    """Return a path for a message, whatever its name has in it."""
    return printable(str(path), _LONGEST_PATH)


def read_bytes(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the contents of a file. Raises FileError where it cannot be read or has more than ``most_bytes``."""
    with opened(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise FileError(path, f"is larger than {most_bytes:,} bytes")
    return content


def read_text(path: Path, most_bytes: int = MOST_BYTES) -> str:
    """Return the text of a file in UTF-8. Raises FileError as ``read_bytes``, or where the file is not text."""
    try:
        return read_bytes(path, most_bytes).decode()
    except UnicodeDecodeError as error:
        raise FileError(path, "is not a text file") from error


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file in UTF-8, with their endings as they are; a byte order mark at its start is dropped.

    Raises FileError as ``read_text``, or for a line of more than ``MOST_LINE_CHARACTERS``.
    """
    number = 0
    with opened(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        try:
            while line := text.readline(MOST_LINE_CHARACTERS):
                number += 1
                if len(line) == MOST_LINE_CHARACTERS and not line.endswith("\n"):
                    raise FileError(path, f"line {number}: is longer than {MOST_LINE_CHARACTERS:,} characters")
                yield line
        except UnicodeDecodeError as error:
            raise FileError(path, "is not a text file") from error


@contextmanager
def opened(path: Path) -> "Iterator[io.BufferedReader[_Descriptor]]":
    """Open a regular file or a pipe. Raises FileError, also for what fails while the context lasts."""
    try:
        # Opening a device may do something, and opening a FIFO would wait for its writer.
        _require_kind(path, _mode(path))
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
        with io.BufferedReader(_Descriptor(path, descriptor)) as file:
            _require_kind(path, os.fstat(descriptor).st_mode)
            yield file
    except OSError as error:
        raise FileError(path, f"cannot be read: {error.strerror}") from error


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except ValueError as error:
        raise FileError(path, f"cannot be read: {error}") from error  # its name has a NUL


def _require_kind(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise FileError(path, "cannot be read: Is a directory")
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        raise FileError(path, "cannot be read: expected a regular file or a pipe")


class _Descriptor(io.RawIOBase):
    """A descriptor that does not block; waits for a pipe as long as it may stay silent."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        # A FIFO without a writer looks as if it had ended; the writer of any other pipe was there before its reader.
        self._has_begun = not stat.S_ISFIFO(os.fstat(descriptor).st_mode) or _is_unnamed(descriptor)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        room = memoryview(buffer)
        while (content := self._read(len(room))) is None or not (content or self._has_begun):
            poll = select.poll()
            poll.register(self._descriptor, select.POLLIN)
            if not poll.poll(PATIENCE_S * 1e3):
                raise FileError(self._path, f"cannot be read: the pipe has been silent for {PATIENCE_S:g} s")
            self._has_begun = True
        self._has_begun = True
        room[: len(content)] = content
        return len(content)

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()

    def _read(self, most_bytes: int) -> bytes | None:
        """Return what is there, empty at the end; None where nothing is there yet."""
        try:
            return os.read(self._descriptor, most_bytes)
        except BlockingIOError:
            return None


def _is_unnamed(descriptor: int) -> bool:
    try:
        return str(Path(f"/proc/self/fd/{descriptor}").readlink()).startswith("pipe:")
    except OSError:
        return False
