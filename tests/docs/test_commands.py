"""Commands that the README and the docs show exist, with the options that they show, and name files that are there."""

import shlex
from pathlib import Path

import pytest
import typer.main
from typer.core import TyperGroup
from typer.exceptions import TyperException

from tests.docs.pages import PAGES, ROOT, code_lines
from trainyard.cli.application import application
from trainyard.cli.lazy_group import ShortenedCommand

_ELSEWHERE = {"agent"}  # has its own parser: hosts lack the packages of the other commands
_SHIPPED = ("docs/", "workloads/", "benchmarks/")


def _commands(page: Path) -> list[list[str]]:
    """Words of every complete ``trainyard`` command of ``page``, without those that show a form (``[--option]``)."""
    lines = [line for line in code_lines(page) if line.startswith("trainyard ") and not set("[…|") & set(line)]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def _known_options(command: TyperGroup) -> set[str]:
    """Options that a group of commands has itself, such as ``--version``."""
    return {option for parameter in command.params for option in parameter.opts} | {"-h", "--help"}


def _problem(words: list[str]) -> str | None:
    command = typer.main.get_command(application)
    context = command.context_class(command, info_name="trainyard", resilient_parsing=True)
    while isinstance(command, TyperGroup):
        name, *words = words or [""]
        if name.startswith("-"):
            return None if name in _known_options(command) else f"no such option: {name}"
        if name in _ELSEWHERE:
            return None
        found = command.get_command(context, name)
        if found is None:
            return f"no such command: {name}"
        command = found
        context = command.context_class(command, info_name=name, parent=context)
    context.resilient_parsing = False  # or mistakes pass
    if isinstance(command, ShortenedCommand):
        words = command.spelled_out(words)
    try:
        command.make_parser(context).parse_args(args=list(words))
    except TyperException as error:
        return str(error)
    missing = [word for word in words if word.startswith(_SHIPPED) and not (ROOT / word).exists()]
    return f"no such file: {missing[0]}" if missing else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page: Path) -> None:
    problems = {" ".join(words): _problem(words) for words in _commands(page)}
    assert {shown: problem for shown, problem in problems.items() if problem} == {}


@pytest.mark.parametrize(
    "shown", ["fly", "--fly", "run --fast docs/examples/two-jobs.yaml", "plan docs/examples/none.yaml"]
)
def test_a_command_that_does_not_run_is_found(shown: str) -> None:
    assert _problem(shown.split()) is not None
