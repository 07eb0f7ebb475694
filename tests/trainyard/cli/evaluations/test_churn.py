import json
from functools import partial
from pathlib import Path

import pytest

from experiments.papers import churn
from experiments.sweeps import processes
from experiments.sweeps.processes import Failure
from tests.trainyard.cli.conftest import Trainyard, in_this_process

LOST = Failure("lost")


def test_churn_has_a_line_for_every_policy_on_every_fabric(
    trainyard: Trainyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted, those of which there is anything."""
    monkeypatch.setattr(processes, "on_processes", in_this_process)
    page = tmp_path / "new" / "page.html"
    ended = trainyard("evaluate", "churn", "--seeds", "1", "--jobs", "3", "--json", "--report", page)
    assert ended.exit_code == 0
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [(line["fabric"], line["variant"]) for line in lines] == [
        (fabric, variant) for fabric in ("fig20", "fewer-uplinks") for variant in churn.VARIANTS
    ]
    assert {line["num_events"] for line in lines} == {6}
    assert "min_gain" in page.read_text(encoding="utf-8")

    monkeypatch.setattr(processes, "on_processes", partial(in_this_process, most=10))
    ended = trainyard("evaluate", "churn", "--seeds", "2", "--jobs", "3")
    assert ended.exit_code == 130
    assert "fewer-uplinks" in ended.stdout
    assert ended.stdout.count("echelonflow") == 2  # a row in two tables


def test_who_fails_is_named_and_more_jobs_than_time_are_refused(
    trainyard: Trainyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "on_processes", lambda _work, items, _workers: (pair for pair in [(items[0], LOST)]))
    ended = trainyard("evaluate", "churn", "--seeds", "1", "--jobs", "3")
    assert (ended.exit_code, ended.stderr) == (1, "ecmp on fig20, seed 1: lost\n")
    assert trainyard("evaluate", "churn", "--jobs", "10001").exit_code == 2
