"""What a shell gets that asks what may stand on a line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trainyard.cli.conftest import Trainyard
from trainyard.cli.application import Commands

_MAIN = """
import atexit, os, sys
from trainyard.cli import main
sys.argv[0] = "trainyard"
if "LOADED" in os.environ:
    atexit.register(lambda: print(*sys.modules, file=sys.stderr))
main()
"""


def completed(words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Ask as the script of bash does; the last word is the one that is being typed."""
    asked = {"COMP_WORDS": f"trainyard {words}", "COMP_CWORD": str(len(f"{words}.".split()))}
    shell = os.environ | asked | {"_TRAINYARD_COMPLETE": "complete_bash"} | environment
    return subprocess.run([sys.executable, "-c", _MAIN], env=shell, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("", list(Commands.lazy_commands)),
        ("exp", ["expand", "explain"]),
        ("show lo", ["loads"]),
        ("show jobs --wa", ["--watch"]),
        ("show jobs --json --watch --o", []),
        ("show jobs -o ", ["table", "json", "yaml", "csv"]),
        ("evaluate crux-m", ["crux-microbench"]),
        ("runtime s", ["serve", "status", "suspend"]),
        ("--ver", ["--version"]),
        ("completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_commands_options_and_values_are_offered(words: str, offered: list[str]) -> None:
    ended = completed(words)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.split() == offered


@pytest.mark.parametrize("words", ["check doc", "run ", "run small.yaml --report out/"])
def test_names_of_files_are_left_to_the_shell(words: str) -> None:
    assert completed(words).stdout.split() == []


def test_the_list_of_commands_imports_none() -> None:
    ended = completed("", LOADED="yes")
    modules = set(ended.stderr.split())
    assert "trainyard.cli.application" in modules
    assert not modules & {"yaml", "numpy", "grpc", "trainyard.cli.run", "workloads.scenario"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_its_script(trainyard: Trainyard, shell: str) -> None:
    ended = trainyard("completion", shell)
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert f"_TRAINYARD_COMPLETE=complete_{shell}" in ended.stdout
    assert trainyard("completion", "tcsh").exit_code == 2


def test_bash_completes_with_the_script(trainyard: Trainyard, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    command = tmp_path / "trainyard"
    command.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{_MAIN}' \"$@\"\n")
    command.chmod(0o755)
    (tmp_path / "completion.bash").write_text(trainyard("completion", "bash").stdout)
    script = (
        f"source {tmp_path}/completion.bash; COMP_WORDS=(trainyard pol); COMP_CWORD=1;"
        " _trainyard_completion trainyard; echo ${COMPREPLY[@]}"
    )
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    ended = subprocess.run([bash, "--norc", "-c", script], env=os.environ | path, capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("policies\n", "")
