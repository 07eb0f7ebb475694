"""docs/advise.md: its Python runs, and it has every option."""

import re

import pytest
import typer.main

from tests.docs.pages import ROOT
from trainyard.cli.advise import advise

PAGE = (ROOT / "docs" / "advise.md").read_text(encoding="utf-8")


def test_its_python_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found: dict[str, object] = {}
    exec("\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)), found)
    assert "advice" in found


def test_it_has_every_option() -> None:
    application = typer.Typer(add_completion=False)
    application.command()(advise)
    command = typer.main.get_command(application)
    options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    table = PAGE.partition("| Option")[2].partition("## What is printed")[0]
    assert options - {"--output", "--allow-policy-import"} == set(re.findall(r"`(--[\w-]+)`", table))
