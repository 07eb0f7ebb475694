"""Executes docs/write-a-policy.md: every block is a file to write or commands to run, in order."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.ports import free_port

PAGE = Path(__file__).resolve().parents[2] / "docs" / "write-a-policy.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"# (\S+\.(?:py|yaml))\n")
_TIMEOUT_S = 300
_MOST_LINES = 40


def _blocks() -> Iterator[tuple[str, str]]:
    port = free_port()
    for language, text in _BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        yield language, text.replace("4790", str(port))


def _run(commands: str, folder: Path) -> str:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    ended = subprocess.run(
        ["bash", "-e", "-c", commands],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 0, f"{commands}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def test_the_documented_policy_runs_everywhere(tmp_path: Path) -> None:
    output = ""
    for language, text in _blocks():
        if (named := _NAME.match(text)) is not None:
            (tmp_path / named[1]).write_text(text, encoding="utf-8")
        elif language == "sh":
            output += _run(text, tmp_path)
    assert len((tmp_path / "shortest_first.py").read_text().splitlines()) <= _MOST_LINES
    assert (tmp_path / "sweep.svg").stat().st_size > 0
    # The job came and went: the Plans of both are recorded, and decided again from the record.
    (line,) = [line for line in output.splitlines() if re.fullmatch(r"\d+ same", line)][:1]
    assert int(line.split()[0]) >= 1
    refused = subprocess.run(
        [sys.executable, "-m", "trainyard", "replay", "record.jsonl"], cwd=tmp_path, capture_output=True, text=True
    )
    assert refused.returncode == 2
    assert "'shortest_first:POLICY' names code to import" in refused.stderr
