"""The output file of a sweep: one line of JSON for every finished run, to which an interrupted sweep adds the rest."""

import fcntl
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from pydantic import ValidationError

from experiments.sweeps.cases import Case, CaseDescription, CaseResult, ResultLine, run_case
from experiments.sweeps.processes import Answers, Failure
from topologies.files import FileError, read_bytes
from topologies.printable import printable

Executor = Callable[[Callable[[Case], CaseResult | Failure], Sequence[Case]], Answers[Case, CaseResult | Failure]]
"""Runs cases: ``processes.on_processes`` or ``ray_cluster.on_ray``, with the number of workers bound."""

MOST_BYTES = 1 << 30
"""The largest output that is continued."""

_LINE_START = b'{"scenario":'
"""Begins every line; an incomplete last line that begins otherwise is not a sweep's."""


class OutputError(Exception):
    """An output that cannot be used; the message names the file and, where there is one, the line."""


class Output:
    """An open output.

    ``lines`` has the newest line of every case by its key; ``cut_off`` tells whether the last line was incomplete.
    """

    def __init__(self, path: Path, descriptor: int, lines: dict[str, ResultLine], *, cut_off: bool) -> None:
        self.lines = lines
        self.cut_off = cut_off
        self._path = path
        self._descriptor = descriptor

    def add(self, line: ResultLine) -> None:
        """Write a line at once and sync it to the disk.

        Raises:
            OutputError: The line cannot be written; ``lines`` is unchanged.
        """
        before = self.lines.get(line.key)
        # A signal may interrupt the write after the line is in the file, so it counts from the start.
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
            raise OutputError(f"{self._path}: wrote only {written} of the {len(content)} bytes of a line")


@contextmanager
def open_output(path: Path, descriptions: Iterable[CaseDescription]) -> Iterator[Output]:
    """Open an output, or create it with its folder, and lock it against other sweeps.

    An incomplete last line is dropped.

    Args:
        path: The file.
        descriptions: The cases of the sweep.

    Raises:
        OutputError: The file is not a sweep's, another sweep has it open, or it has results of one of these scenarios
            from before its file changed.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            raise OutputError(f"{path}: cannot be written: expected a regular file")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(f"{path}: another sweep is writing it") from None
        try:
            content = read_bytes(path, MOST_BYTES)
        except FileError as error:
            raise OutputError(str(error)) from error
        whole, _, rest = content.rpartition(b"\n")
        lines = _read(path, whole)
        if rest and not (rest.startswith(_LINE_START) or _LINE_START.startswith(rest)):
            raise OutputError(f"{path}: line {len(lines) + 1}: not a result of a sweep")
        _require_unchanged(path, lines, descriptions)
        os.ftruncate(descriptor, len(content) - len(rest))
        yield Output(path, descriptor, {line.key: line for line in lines}, cut_off=bool(rest))
    finally:
        os.close(descriptor)


def missing_cases(grid: Sequence[Case], output: Output) -> list[Case]:
    """Return the cases that have not run yet, or have failed."""
    lines = output.lines
    return [case for case in grid if (line := lines.get(case.description.key)) is None or line.error is not None]


def run_cases(cases: Sequence[Case], output: Output, executor: Executor) -> Generator[ResultLine, None, None]:
    """Run cases, and yield each line once it is written.

    Closing the generator early ends the runs under way and keeps what is written.

    Raises:
        OutputError: A line cannot be written.
    """
    with closing(executor(run_case, cases)) as answers:
        for case, answer in answers:
            line = case.failed(answer.reason) if isinstance(answer, Failure) else case.succeeded(answer)
            output.add(line)
            yield line


def _read(path: Path, whole: bytes) -> list[ResultLine]:
    lines = []
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            lines.append(ResultLine.model_validate_json(line))
        except ValidationError as error:
            fault = error.errors()[0]
            place = ".".join(map(str, fault["loc"]))
            reason = f"{place}: {fault['msg']}" if place else fault["msg"]
            raise OutputError(f"{path}: line {number}: not a result of a sweep: {printable(reason)}") from None
    return lines


def _require_unchanged(path: Path, lines: Iterable[ResultLine], descriptions: Iterable[CaseDescription]) -> None:
    files = {each.file: each for each in descriptions}
    names = {each.scenario: each for each in files.values()}
    for line in lines:
        now = files.get(line.file) or names.get(line.scenario)
        if now is not None and now.sha256 != line.sha256:
            raise OutputError(
                f"{now.file}: has changed since its runs in {path}; expected the file as it was, or another --out"
            )
