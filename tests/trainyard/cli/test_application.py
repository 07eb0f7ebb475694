import inspect
import platform
import subprocess
import sys
from importlib.metadata import version

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


@pytest.mark.parametrize("command", [(), *((name,) for name in Commands.lazy_commands), ("runtime", "status")])
def test_h_is_help_with_the_exit_status(command: tuple[str, ...], trainyard: Trainyard) -> None:
    if command == ("agent",):
        ended = subprocess.run(
            [sys.executable, "-m", "trainyard", "agent", "-h"], capture_output=True, text=True, check=False
        )
        assert (ended.returncode, ended.stdout.split()[0]) == (0, "usage:")
        return
    short, long = (trainyard(*command, option) for option in ("-h", "--help"))
    assert (short.exit_code, short.stderr) == (0, "")
    assert short.stdout == long.stdout
    assert "Exit status" in short.stdout


def test_the_version_is_that_of_the_distribution(trainyard: Trainyard) -> None:
    ended = trainyard("--version")
    expected = f"trainyard {version('trainyard')}, Python {platform.python_version()}\n"
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, expected, "")


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


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--colour",), "No such option: --colour"),
        (("paint",), "No such command 'paint'."),
        (("run", "--seed", "x", "a.yaml"), "Invalid value for '--seed': should be a valid integer, unable to parse"),
        (("runtime", "serve", "--colour"), "No such option: --colour"),
        (("runtime", "serv"), "No such command 'serv'. Did you mean 'serve'?"),
        (("runtime", "status", "--address"), "Option '--address' requires an argument."),
        (("database", "backup"), "Missing argument 'FILE'."),
        (("database", "restore", "x"), "Missing option '--database'."),
        (("import", "cables", "a.csv", "--gbps", "x"), "Invalid value for '--gbps': should be a valid number"),
        (("evaluate", "nothing"), "No such command 'nothing'."),
        (("evaluate", "churn", "--colour"), "No such option: --colour"),
        (("trace", "--colour"), "No such option: --colour"),
    ],
)
def test_what_cannot_be_parsed_is_named_in_one_line(
    trainyard: Trainyard, arguments: tuple[str, ...], line: str
) -> None:
    ended = trainyard(*arguments)
    assert (ended.exit_code, ended.stdout) == (2, "")
    (said,) = ended.stderr.splitlines()
    assert said.startswith(line)


@pytest.mark.parametrize("group", [(), ("runtime",), ("database",), ("import",), ("evaluate",)])
def test_a_group_alone_shows_its_help(trainyard: Trainyard, group: tuple[str, ...]) -> None:
    ended = trainyard(*group)
    assert "Usage:" in ended.stdout + ended.stderr
    assert "Exit status" in ended.stdout + ended.stderr
