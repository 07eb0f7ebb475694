"""``--watch`` against a controller over gRPC that goes away and comes back."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO

import pytest

from tests.controller.api.operations.builders import PlannedController, planned_controller, served
from tests.patience import PATIENCE_S
from tests.trainyard.cli.conftest import Trainyard


@pytest.fixture(scope="module")
def controller() -> PlannedController:
    return planned_controller()


@contextmanager
def watching(*arguments: str, stdout: int = subprocess.PIPE) -> Iterator["subprocess.Popen[str]"]:
    environment = os.environ | {"TERM": "xterm"}
    command = [sys.executable, "-m", "trainyard", *arguments]
    with subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def test_it_goes_on_when_the_controller_restarts_and_ends_at_ctrl_c(controller: PlannedController) -> None:
    with ExitStack() as stack:
        with served(controller) as address:
            command = ("show", "jobs", "-o", "json", "--watch", "0.1", "--controller", address)
            process = stack.enter_context(watching(*command))
            first, second = (json.loads(pipe(process.stdout).readline()) for _ in range(2))
        assert first == second
        assert [job["name"] for job in first["jobs"]] == ["gpt", "bert", "resnet"]
        told = pipe(process.stderr).readline()
        assert told.startswith(f"no controller answers at {address}: ")
        assert told.endswith("; asking again every 0.1 s\n")
        with served(controller, port=int(address.rpartition(":")[2])):
            assert pipe(process.stderr).readline() == "the controller answers again\n"
            assert json.loads(pipe(process.stdout).readline()) == first
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 130
        assert pipe(process.stderr).read() == ""


@pytest.mark.parametrize(("output", "parted_by"), [("table", "--- 20"), ("yaml", "---\n"), ("csv", "\n")])
def test_a_line_parts_answers_in_a_pipe(controller: PlannedController, output: str, parted_by: str) -> None:
    """Seconds may be left out, also before other words. A table begins with its title and an empty line."""
    with served(controller) as address:
        command = ("show", "--watch", "levels", "--watch", "0.1", "-o", output, "--controller", address)
        with watching(*command) as process:
            lines = [pipe(process.stdout).readline()]
            while not lines[-1].startswith(parted_by):
                lines.append(pipe(process.stdout).readline())
            again = [pipe(process.stdout).readline() for _ in lines[1:]]
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 130
    assert "gpt" in "".join(lines)
    # CSV has one header.
    assert again[: len(lines) - 2] == (lines[1:-1] if output == "csv" else lines[: len(lines) - 2])


def test_on_a_terminal_it_draws_in_place_and_leaves_the_last_table(controller: PlannedController) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (10, 60))
    with (
        served(controller) as address,
        watching("show", "jobs", "--watch", "0.1", "--controller", address, stdout=theirs) as process,
    ):
        os.close(theirs)
        drawn = b""
        end_s = time.monotonic() + PATIENCE_S
        while drawn.count(b"every 0.1 s") < 3 and time.monotonic() < end_s:
            drawn += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        try:
            while read := os.read(ours, 65536):
                drawn += read
        except OSError:
            pass  # nobody has the other end open
        assert process.wait(PATIENCE_S) == 130
    os.close(ours)
    screen, _, after = drawn.decode().partition("\x1b[?1049l")
    assert "\x1b[?1049h" in screen
    assert "\x1b[2J" not in screen.partition("every")[2]  # what is erased and drawn again flickers
    assert re.search(r"; 9 of \d+ lines", screen)
    assert "resnet" not in screen  # it does not fit on ten lines
    assert "resnet" in after


@pytest.mark.parametrize("watch", ["0", "-1", "100000", "1e9"])
def test_seconds_that_are_none_are_bad_input(trainyard: Trainyard, watch: str) -> None:
    ended = trainyard("show", "jobs", f"--watch={watch}", "--controller", "127.0.0.1:1")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "--watch" in ended.stderr


@pytest.mark.parametrize("watch", [("--watch",), ("--watch", ".5")])
def test_a_controller_that_never_answers_is_a_failure_at_once(trainyard: Trainyard, watch: tuple[str, ...]) -> None:
    ended = trainyard("explain", "gpt", *watch, "--controller", "127.0.0.1:1")
    assert ended.exit_code == 1
    assert ended.stderr.startswith("no controller answers at 127.0.0.1:1: ")
