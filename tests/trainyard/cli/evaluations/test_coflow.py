import hashlib
import json
import os
from functools import partial
from pathlib import Path

import pytest

from experiments.papers import coflow
from experiments.sweeps import processes
from simulator.coflow_options import CoflowPolicy
from tests.trainyard.cli.conftest import Trainyard, in_this_process

TRACE = "2 2\na 0 1 0 1 1:1024\nb 1000 1 0 1 0:128\n"


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs stay in this process."""
    monkeypatch.setattr(processes, "on_processes", in_this_process)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.txt"
    path.write_text(TRACE)
    return path


def test_coflows_have_a_table_and_a_page(trainyard: Trainyard, trace: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = trainyard("evaluate", "coflow", trace, "--report", page).stdout
    for word in ("fair", "fifo", "varys", "sincronia", "up to 3.16", "is not the benchmark's", "no seed"):
        assert word in " ".join(words.split())
    assert "p95 CCT" in page.read_text(encoding="utf-8")


def test_coflows_as_json_are_a_line_per_policy_and_interrupted_those_there_are(
    trainyard: Trainyard, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = trainyard("evaluate", "coflow", trace, "--json").stdout.splitlines()
    assert [json.loads(line)["policy"] for line in lines] == list(CoflowPolicy)
    monkeypatch.setattr(processes, "on_processes", partial(in_this_process, most=2))
    ended = trainyard("evaluate", "coflow", trace, "--json")
    assert ended.exit_code == 130
    assert ended.stdout.splitlines() == lines[:2]


def test_the_benchmark_is_known_from_a_pipe_too(trainyard: Trainyard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coflow, "BENCHMARK_SHA256", hashlib.sha256(TRACE.encode()).hexdigest())
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as file:
        file.write(TRACE)
    try:
        lines = trainyard("evaluate", "coflow", f"/dev/fd/{reading}", "--json").stdout.splitlines()
        assert [json.loads(line)["is_benchmark"] for line in lines] == [True] * len(CoflowPolicy)
    finally:
        os.close(reading)


def test_a_trace_that_cannot_be_read_is_named(trainyard: Trainyard, tmp_path: Path) -> None:
    ended = trainyard("evaluate", "coflow", tmp_path / "none.txt")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "none.txt: cannot be read" in ended.stderr
