"""Programs that nodes of Mininet start are waited for, but not for ever."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from topologies.mininet import programs
from topologies.mininet.programs import PYTHON_VARIABLE, Program
from topologies.namespaces.host_network import NetworkError


@contextmanager
def _started(folder: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> Iterator[Program]:
    """A program that is a shell script."""
    script = folder / "python"
    script.write_text("\n".join(("#!/bin/sh", *lines, "")))
    script.chmod(0o755)
    monkeypatch.setenv(PYTHON_VARIABLE, str(script))
    program = Program([], "emulator")
    try:
        yield program
    finally:
        program._process.kill()
        program._process.wait()


def test_the_first_lines_are_read_however_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = ("printf 'heading\\none 1\\ntw'", "sleep 0.1", "printf 'o 2\\nthree'", "exec sleep 1000")
    with _started(tmp_path, monkeypatch, *script) as program:
        assert program.first_lines(3, PATIENCE_S) == ["heading", "one 1", "two 2"]
        assert program.stop() == ""


def test_a_program_that_does_not_start_is_named_with_what_it_has_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = ("echo compiling >&2", "echo heading", "exec sleep 1000")
    with _started(tmp_path, monkeypatch, *script) as program:
        program.first_lines(1, PATIENCE_S)
        with pytest.raises(NetworkError, match=r"^trainyard emulator has not started within 0\.1 s: compiling$"):
            program.first_lines(1, 0.1)


def test_a_program_that_ends_before_is_named_with_its_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        _started(tmp_path, monkeypatch, "echo heading", "echo no such file >&2", "exit 3") as program,
        pytest.raises(NetworkError, match=r"^trainyard emulator has ended with status 3: no such file$"),
    ):
        program.first_lines(2, PATIENCE_S)


def test_a_program_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_STOPS_WITHIN_S", 0.1)
    script = ("trap '' TERM", "echo stuck >&2", "echo heading", "while :; do sleep 0.1; done")
    with _started(tmp_path, monkeypatch, *script) as program:
        program.first_lines(1, PATIENCE_S)
        assert program.stop() == "trainyard emulator has not ended within 0.1 s and is killed: stuck"
        assert not program.runs
