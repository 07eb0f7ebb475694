import json
from pathlib import Path

import pytest

from experiments.sweeps import processes
from tests.trainyard.cli.conftest import Trainyard, in_this_process


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs stay in this process."""
    monkeypatch.setattr(processes, "on_processes", in_this_process)


@pytest.fixture
def folder(tmp_path: Path, trainyard: Trainyard) -> Path:
    """A made-up trace of 40 jobs."""
    folder = tmp_path / "small"
    assert trainyard("generate-trace", folder, "--jobs", "40", "--seed", "3", "--json").exit_code == 0
    return folder


def test_policies_stand_beside_the_bound_of_the_same_jobs(folder: Path, trainyard: Trainyard, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    command = ("evaluate", "crux-trace-loads", folder, "--load", "0.5", "--seeds", "1", "--days", "0.5")
    ended = trainyard(*command, "--json", "--report", page)
    assert ended.exit_code == 0
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [line["policy"] for line in lines] == ["ecmp", "crux", "trainyard"]
    assert len({line["fluid_bound_gpu_utilisation"] for line in lines}) == 1
    for line in lines:
        assert (line["topology"], line["load"], line["seed"]) == ("thin-clos", 0.5, 1)
        bound = line["fluid_bound_gpu_utilisation"]
        assert 0 < line["gpu_utilisation"] <= bound + 0.001 <= line["ideal_gpu_utilisation"] + 0.002
    assert "All loads" in page.read_text(encoding="utf-8")


def test_what_cannot_be_offered_is_refused(folder: Path, trainyard: Trainyard) -> None:
    command = ("evaluate", "crux-trace-loads", folder, "--seeds", "1")
    ended = trainyard(*command, "--days", "0")
    assert (ended.exit_code, ended.stderr) == (2, "--days: expected a number above 0, got 0.0\n")
    ended = trainyard(*command, "--load", "0.5", "--load", "-1")
    assert (ended.exit_code, ended.stderr) == (2, "--load: expected a number above 0, got -1.0\n")


def test_a_folder_without_a_trace_is_refused_before_anything_runs(trainyard: Trainyard, tmp_path: Path) -> None:
    ended = trainyard("evaluate", "crux-trace-loads", tmp_path / "none")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr == f"{tmp_path / 'none' / 'topo.csv'}: cannot be read: No such file or directory\n"
