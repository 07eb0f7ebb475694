import inspect
import subprocess
import sys

import pytest
import typer

from tests.trainyard.cli.conftest import Trainyard
from trainyard.cli.application import Commands
from workloads.loading import SHIPPED_SCENARIOS

_LOADED = """
import sys
from trainyard.cli import main
sys.argv = ["trainyard", "check", sys.argv[1]]
try:
    main()
except SystemExit as end:
    assert not end.code
print(*sorted({"numba", "numpy", "scipy", "grpc", "finsy", "matplotlib", "jinja2"} & sys.modules.keys()))
"""


_HELP = """
import atexit, sys
from trainyard.cli import main
atexit.register(lambda: print(*sys.modules))
sys.argv = ["trainyard", "--help"]
main()
"""


def test_what_is_slow_to_import_is_left_alone_until_needed() -> None:
    command = [sys.executable, "-c", _LOADED, str(SHIPPED_SCENARIOS / "fig19-n4.yaml")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["ok"]


def test_python_m_trainyard_is_the_command() -> None:
    command = [sys.executable, "-m", "trainyard", "check", "nowhere.yaml"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("nowhere.yaml: cannot be read")


def test_help_names_every_command_and_the_exit_status(trainyard: Trainyard) -> None:
    words = trainyard("--help").stdout
    for command in ("demo", "run", "plan", "check", "policies", "controller", "Exit status"):
        assert command in words


def test_an_unknown_command_is_bad_input(trainyard: Trainyard) -> None:
    assert trainyard("fly").exit_code == 2


@pytest.mark.parametrize("name", Commands.lazy_commands)
def test_the_list_has_the_first_line_of_every_commands_help(name: str) -> None:
    command = Commands.lazy_commands[name].load()
    own: str = command.info.help if isinstance(command, typer.Typer) else inspect.getdoc(command)
    assert own.split("\n")[0] == Commands.lazy_commands[name].summary


def test_help_imports_no_command() -> None:
    ended = subprocess.run([sys.executable, "-c", _HELP], capture_output=True, text=True, check=True)
    modules = set(ended.stdout.split())
    assert "trainyard.cli.application" in modules
    assert not modules & {"pydantic", "yaml", "numpy", "grpc", "trainyard.cli.run", "workloads.scenario"}
