"""``python -m hostlib run``: which command it becomes, in which environment."""

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from hostlib import launch
from hostlib.launch import attached_environment, main

STARTUP = str(Path(launch.__file__).parent / "torch" / "startup")

Started = list[tuple[str, list[str], Mapping[str, str]]]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """What would have taken the place of this process."""
    found: Started = []
    monkeypatch.setattr(os, "execve", lambda *command: found.append(command))
    return found


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.touch()
    return str(path)


def started_command(arguments: list[str], started: Started) -> list[str]:
    started.clear()
    main(["run", *arguments])
    ((program, command, environment),) = started
    assert program == command[0]
    assert environment["TRAINYARD_ATTACH"] == "1"
    return command


def test_the_environment_attaches_and_keeps_what_was_there() -> None:
    before = {"HOME": "/home/me", "PYTHONPATH": f"/mine{os.pathsep}{os.pathsep}/theirs", "TRAINYARD_JOB": "llama"}
    given = dict(before)
    assert attached_environment(given) == {
        "HOME": "/home/me",
        "PYTHONPATH": os.pathsep.join((STARTUP, "/mine", "/theirs")),
        "TRAINYARD_JOB": "llama",
        "TRAINYARD_ATTACH": "1",
    }
    assert given == before


def test_what_is_given_comes_before_the_environment() -> None:
    found = attached_environment({"TRAINYARD_CONTROLLER": "a:1", "TRAINYARD_JOB": "b"}, "c:2", "d")
    assert (found["TRAINYARD_CONTROLLER"], found["TRAINYARD_JOB"]) == ("c:2", "d")
    assert "TRAINYARD_CONTROLLER" not in attached_environment({})


def test_attaching_twice_is_attaching_once() -> None:
    once = attached_environment({})
    assert attached_environment(once) == once


def test_the_startup_folder_is_there() -> None:
    assert (Path(STARTUP) / "sitecustomize.py").is_file()


def test_a_script_keeps_all_its_arguments(started: Started, script: str) -> None:
    arguments = [script, "--controller", "theirs", "-m", "--job=x", "--", "-h"]
    assert started_command(arguments, started) == [sys.executable, *arguments]


def test_a_file_that_is_a_program_runs_by_itself(started: Started, tmp_path: Path) -> None:
    program = tmp_path / "train.sh"
    program.write_text("#!/bin/sh\n")
    assert started_command([str(program), "8"], started)[0] == sys.executable, "nobody may execute it"
    program.chmod(0o755)
    assert started_command([str(program), "8"], started) == [str(program), "8"]
    python = program.with_suffix(".py")
    program.rename(python)
    assert started_command([str(python), "8"], started) == [sys.executable, str(python), "8"]


def test_a_module_runs_as_python_runs_it(started: Started) -> None:
    command = started_command(["--job", "j", "-m", "package.train", "--epochs", "3"], started)
    assert command == [sys.executable, "-m", "package.train", "--epochs", "3"]
    assert started[0][2]["TRAINYARD_JOB"] == "j"


def test_the_controller_is_handed_on(started: Started, script: str) -> None:
    started_command(["--controller", "controller:4790", script], started)
    assert started[0][2]["TRAINYARD_CONTROLLER"] == "controller:4790"


def test_a_program_beside_python_comes_before_those_on_the_path(
    started: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("beside", "path"):
        program = tmp_path / folder / "torchrun"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "beside" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    arguments = ["torchrun", "--nproc-per-node", "8", "train.py"]
    assert started_command(arguments, started) == [str(tmp_path / "beside" / "torchrun"), *arguments[1:]]
    (tmp_path / "beside" / "torchrun").unlink()
    assert started_command(arguments, started) == [str(tmp_path / "path" / "torchrun"), *arguments[1:]]


def test_what_is_nowhere_is_named(started: Started, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "no-such-script.py"]) == 2
    assert capsys.readouterr().err == "no-such-script.py: neither a file nor a program on PATH\n"
    assert started == []


def test_without_pytorch_it_says_what_to_install(
    started: Started, script: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert main(["run", script]) == 1
    assert "pip install './hostlib[torch]'" in capsys.readouterr().err
    assert started == []


@pytest.mark.parametrize("arguments", [[], ["run"], ["walk", "train.py"], ["run", "--jobs", "x", "train.py"]])
def test_other_command_lines_are_refused_with_the_usage(
    arguments: list[str], started: Started, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(arguments)
    assert refused.value.code == 2
    assert "usage: python -m hostlib" in capsys.readouterr().err
    assert started == []
