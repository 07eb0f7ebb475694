import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from experiments.papers import robustness
from experiments.sweeps import processes
from experiments.sweeps.processes import Failure
from tests.trainyard.cli.conftest import Trainyard, in_this_process


def test_robustness_has_a_line_for_every_policy_under_every_disturbance(
    trainyard: Trainyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "on_processes", in_this_process)
    monkeypatch.setattr(robustness, "DISTURBANCES", {"none": {}, "2 levels": {"num_levels": 2}})
    page = tmp_path / "page.html"
    command = ("evaluate", "robustness", "--mix", "fig19-n2", "--seeds", "1")
    ended = trainyard(*command, "--json", "--report", page)
    assert ended.exit_code == 0
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [(line["disturbance"], line["policy"]) for line in lines] == [
        *(("none", policy) for policy in ("ecmp", "crux", "sincronia", "trainyard")),
        *(("2 levels", policy) for policy in ("crux", "sincronia", "trainyard")),
    ]
    assert lines[0]["mean"] < lines[1]["mean"] <= 1.01
    assert "trainyard: mean share of the limit" in page.read_text(encoding="utf-8")
    assert "expected one of fig19-n2, " in trainyard("evaluate", "robustness", "--mix", "fig99").stderr

    monkeypatch.setattr(processes, "on_processes", partial(in_this_process, most=2))
    ended = trainyard(*command)
    assert ended.exit_code == 130
    assert "Robustness: 2 runs" in ended.stdout


def test_an_item_that_fails_ends_the_evaluation_with_what_there_is(
    trainyard: Trainyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails_at_last(work: Callable[[object], object], items: Sequence[object], workers: int) -> Iterator[object]:
        yield from in_this_process(work, items[:1], workers)
        yield items[1], Failure("its process ended with status 9")

    monkeypatch.setattr(processes, "on_processes", lambda *arguments: (each for each in fails_at_last(*arguments)))
    ended = trainyard("evaluate", "robustness", "--mix", "fig19-n2", "--seeds", "1")
    assert ended.exit_code == 1
    assert ended.stderr == "fig19-n2 under crux, none, seed 1: its process ended with status 9\n"
    assert "Robustness: 1 run\n" in ended.stdout
