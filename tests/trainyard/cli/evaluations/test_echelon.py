import json
from functools import partial
from pathlib import Path

import pytest

from experiments.papers import echelon, echelon_runs
from experiments.papers.open_loop_policies import random_cases
from experiments.sweeps import processes
from tests.trainyard.cli.conftest import Trainyard, in_this_process
from workloads.scenario import Scenario


def test_echelonflow_stands_beside_fair_sharing_and_both_readings_of_coflows(
    trainyard: Trainyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "on_processes", in_this_process)
    page = tmp_path / "new" / "page.html"
    options = ("--kind", "tp", "--load", "0.4", "--seeds", "1", "--report", page)
    ended = trainyard("evaluate", "echelon", *options, "--json")
    assert ended.exit_code == 0
    (found,) = map(json.loads, ended.stdout.splitlines())
    assert (found["case"], found["load"], found["enforcement"], found["seeds"]) == ("tp", 0.4, "ideal", [1])
    excess_s = {one["name"]: one["excess_tardiness_s"] for one in found["contenders"]}
    assert excess_s["echelonflow"] == excess_s["varys, groups"] == pytest.approx(excess_s["varys, stages"])
    assert all(one["starved"] == 0 for one in found["contenders"])
    written = page.read_text(encoding="utf-8")
    for words in ("tp at 0.4: excess tardiness", "sincronia, stages", "Assumptions", "1.000"):
        assert words in written


@pytest.mark.parametrize("interrupted", [True, False])
def test_of_echelons_mixes_and_small_cases_what_is_finished_is_kept(
    trainyard: Trainyard, monkeypatch: pytest.MonkeyPatch, interrupted: bool
) -> None:
    """Two small cases, load .4 whole, and of load .8 the first seed of three."""

    def measure(scenario: Scenario, *_: object) -> echelon_runs.RunMeasured:
        if scenario.seed == 2 and "0.8" in scenario.name:
            if interrupted:
                raise KeyboardInterrupt
            raise RuntimeError("made up")
        return echelon_runs.RunMeasured(1.0, 1.0, 1.0, 1.0, 1.0, 0)

    monkeypatch.setattr(echelon_runs, "measure", measure)
    monkeypatch.setattr(processes, "on_processes", partial(in_this_process, failing=RuntimeError))
    monkeypatch.setattr(echelon, "random_cases", partial(random_cases, num_cases=2))
    monkeypatch.setattr(echelon, "tardiness_gap", lambda _: {"varys": 0.5})
    options = ("--kind", "optimum", "--kind", "dp", "--kind", "mixed", "--seeds", "3")
    ended = trainyard("evaluate", "echelon", *options)
    assert ended.exit_code == (130 if interrupted else 1)
    assert ("dp at load 0.8, seed 2: RuntimeError: under fair: made up" in ended.stderr) != interrupted
    for words in ("2 small cases", "dp at 0.4", "dp at 0.8"):
        assert words in ended.stdout
    assert "mixed" not in ended.stdout.partition("- The paper")[0]
    lines = [json.loads(line) for line in trainyard("evaluate", "echelon", *options, "--json").stdout.splitlines()]
    assert lines[0]["num_cases"] == 2
    assert [(found["load"], found["seeds"]) for found in lines[1:]] == [(0.4, [1, 2, 3]), (0.8, [1])]


def test_an_unknown_kind_and_a_load_that_cannot_be_are_refused(trainyard: Trainyard) -> None:
    ended = trainyard("evaluate", "echelon", "--kind", "gpipe", "--kind", "pp")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "--kind: expected one of gpipe, 1f1b, fsdp, dp, tp, mixed, optimum, got 'pp'" in ended.stderr
    ended = trainyard("evaluate", "echelon", "--load", "0.5", "--load", "1.5")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "--load: expected at least 0.05 and less than 1, got 1.5" in ended.stderr
