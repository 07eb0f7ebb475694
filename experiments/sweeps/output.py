"""The file that a sweep writes: a line for every run that is over, and what of it counts when it is started again."""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from experiments.sweeps.result_line import Asked, ResultLine

_BEGINNING = b'{"scenario":'
"""Of every line: what is cut off and begins otherwise is not ours."""


class OutputError(Exception):
    """An output that cannot be used; the message names the file, and the line where there is one."""


class Output:
    """An open output. ``lines`` are the newest by key; ``cut_off`` tells that the last one was not whole."""

    def __init__(self, path: Path, descriptor: int, lines: dict[str, ResultLine], *, cut_off: bool) -> None:
        self.lines = lines
        self.cut_off = cut_off
        self._path = path
        self._descriptor = descriptor

    def add(self, line: ResultLine) -> None:
        """Write a line in one go, and see it onto the disk. Raises OutputError; the line does not count then."""
        before = self.lines.get(line.key)
        # A signal may end this as soon as the line is in the file, where it will be found.
        self.lines[line.key] = line
        try:
            self._write(f"{line.model_dump_json()}\n".encode())
        except OutputError:
            del self.lines[line.key]
            if before is not None:
                self.lines[line.key] = before
            raise

    def _write(self, content: bytes) -> None:
        try:
            written = os.write(self._descriptor, content)
            os.fsync(self._descriptor)
        except OSError as error:
            raise OutputError(f"{self._path}: cannot be written: {error.strerror}") from error
        if written != len(content):
            raise OutputError(f"{self._path}: of a line of {len(content)} bytes only {written} could be written")


@contextmanager
def open_output(path: Path, asked: Iterable[Asked]) -> Iterator[Output]:
    """Open an output to add to, or begin one, with its folder; nobody else may write to it meanwhile.

    What follows the last whole line is dropped. Raises OutputError where the file is not a sweep's, where another sweep
    writes it, and where it has results of one of the scenarios asked for as that was before it changed.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(f"{path}: another sweep is writing it") from None
        content = path.read_bytes()
        whole, _, rest = content.rpartition(b"\n")
        lines = _read(path, whole)
        if rest and not (rest.startswith(_BEGINNING) or _BEGINNING.startswith(rest)):
            raise OutputError(f"{path}: line {len(lines) + 1}: not a result of a sweep")
        _require_unchanged(path, lines, asked)
        os.ftruncate(descriptor, len(content) - len(rest))
        yield Output(path, descriptor, {line.key: line for line in lines}, cut_off=bool(rest))
    finally:
        os.close(descriptor)


def _read(path: Path, whole: bytes) -> list[ResultLine]:
    lines = []
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            lines.append(ResultLine.model_validate_json(line))
        except ValidationError as error:
            fault = error.errors()[0]
            place = ".".join(map(str, fault["loc"]))
            reason = f"{place}: {fault['msg']}" if place else fault["msg"]
            raise OutputError(f"{path}: line {number}: not a result of a sweep: {reason}") from None
    return lines


def _require_unchanged(path: Path, lines: Iterable[ResultLine], asked: Iterable[Asked]) -> None:
    files = {each.file: each for each in asked}
    names = {each.scenario: each for each in asked}
    for line in lines:
        now = files.get(line.file) or names.get(line.scenario)
        if now is not None and now.sha256 != line.sha256:
            raise OutputError(
                f"{now.file}: has changed since its runs in {path}; expected the file as it was, or another --output"
            )
