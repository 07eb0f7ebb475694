"""Commands write nothing but what was asked for: in an empty folder nothing appears."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.trainyard.cli.conftest import Trainyard
from trainyard.cli.application import Commands
from workloads.loading import SHIPPED_SCENARIOS

SCENARIO = str(SHIPPED_SCENARIOS / "crux-example-1.yaml")
NOBODY = ("--controller", "127.0.0.1:1")
# A command that is not here is called without arguments.
_ARGUMENTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "demo": ((), ("--failures",)),
    "run": (
        (SCENARIO,),
        (SCENARIO, "--on", "simulator", "-o", "json"),
        (SCENARIO, "--policy", "missing", "--report", "a/report.html", "--figures", "b"),
    ),
    "plan": ((SCENARIO,),),
    "check": ((SCENARIO,),),
    "topology": ((SCENARIO,),),
    "expand": ((SCENARIO,),),
    "discover": (("missing.yaml",),),
    "import": (("cables", "missing.csv", "--switches", "leaf*"),),
    "qos": (("sonic", SCENARIO),),
    "policies": ((),),
    "coflows": (("missing", "--policy", "fair"),),
    "trace": (("missing",),),
    "run-trace": (("missing", "--policy", "crux"),),
    "evaluate": (("coflow", "missing"), ()),
    "controller": (("--config", "missing.yaml"),),
    "token": (("--name", "alice", "--role", "viewer"),),
    "show": (("jobs", *NOBODY),),
    "explain": (("gpt", *NOBODY),),
    "dump": ((), ("--database", "missing.db")),
    "replay": (("missing.jsonl",),),
    "audit": ((), ("--database", "missing.db")),
    "withdraw": (("gpt", *NOBODY), ("gpt", "--database", "missing.db")),
    "drain": (("switch", "t0", *NOBODY),),
    "undrain": (("switch", "t0", *NOBODY),),
    "pause": (NOBODY,),
    "resume": (NOBODY,),
    "release": (NOBODY, ("--config", "missing.yaml")),
    "reload": (NOBODY,),
    "pin": (("gpt", "--level", "7", "--for", "1m", *NOBODY),),
    "unpin": (("gpt", *NOBODY),),
    "emulator": (("--topology", "missing.yaml"),),
    "port": (("127.0.0.1:1", "t0", "1", "down"),),
    "trace-packet": (("127.0.0.1:1", "t0", "1", "00"),),
    "completion": (("bash",), ("zsh",), ("fish",)),
    "runtime": (("status", "--address", "127.0.0.1:1", "--clients", "missing"),),
}


def test_nothing_appears_in_an_empty_folder(
    trainyard: Trainyard, ran: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in Commands.lazy_commands:
        for arguments in _ARGUMENTS.get(command, ((),)):
            ended = trainyard(command, *arguments)
            assert ended.exit_code in (0, 1, 2), (command, ended)
            assert list(tmp_path.iterdir()) == [], (command, arguments)
    assert ran


def test_a_sweep_makes_its_own_file_alone(
    trainyard: Trainyard,
    document: dict[str, Any],
    write: Callable[[object], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = write(document)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert trainyard("sweep", scenario, "--seeds", "1", "--out", "runs/small.jsonl").exit_code == 0
    assert [str(path.relative_to(here)) for path in sorted(here.rglob("*"))] == ["runs", "runs/small.jsonl"]
