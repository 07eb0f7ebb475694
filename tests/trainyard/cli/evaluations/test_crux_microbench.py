import json
from functools import partial
from pathlib import Path

import pytest

from experiments.papers import crux_microbench
from experiments.papers.microbench.mechanisms import METHODS, CaseMeasured, CaseParameters, Mechanism, Reached
from experiments.sweeps import processes
from tests.trainyard.cli.conftest import Trainyard, in_this_process


def made_up(case: CaseParameters) -> CaseMeasured:
    reached = tuple(Reached(of, policy, 0.5) for of, policies in METHODS.items() for policy in policies)
    return CaseMeasured(case.seed, 0.4, 0.5, dict.fromkeys(Mechanism, 0.25), reached)


def test_the_microbenchmark_has_a_line_per_case_and_a_page(trainyard: Trainyard, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    options = ("--seeds", "2", "--load-to", "0.6", "--workers", "1")
    ended = trainyard("evaluate", "crux-microbench", *options, "--json", "--report", page)
    assert ended.exit_code == 0
    *cases, whole = map(json.loads, ended.stdout.splitlines())
    assert {case["seed"] for case in cases} == {1, 2}
    assert all(0.3 <= case["load"] < 0.6 for case in cases)
    assert whole["num_cases"] == 2
    written = page.read_text(encoding="utf-8")
    for words in ("priorities, sincronia", "76.10", "Assumptions", "share of cases"):
        assert words in written


def test_cases_so_far_are_kept(trainyard: Trainyard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crux_microbench, "draw_and_measure", made_up)
    monkeypatch.setattr(processes, "on_processes", partial(in_this_process, most=2))
    ended = trainyard("evaluate", "crux-microbench")
    assert ended.exit_code == 130
    assert "2 cases" in ended.stdout
    assert "compression, crux" in ended.stdout
    lines = trainyard("evaluate", "crux-microbench", "--json").stdout.splitlines()
    assert [json.loads(line).get("seed") for line in lines] == [1, 2, None]


def test_a_load_below_all_cases_is_refused(trainyard: Trainyard) -> None:
    ended = trainyard("evaluate", "crux-microbench", "--load-to", "0.5")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "--load-to: expected at least 0.6, got 0.5" in ended.stderr
