import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from experiments.papers import crux_testbed
from experiments.scenarios.backend import Backend, RunError
from experiments.scenarios.results import RunResult
from experiments.sweeps import processes
from tests.experiments.report.builders import make_result
from tests.trainyard.cli.conftest import Trainyard, in_this_process
from workloads.scenario import Scenario


@pytest.fixture
def ends_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int, bool], None]:
    """Makes up runs until one mix reaches one seed: there the user interrupts, or the run fails."""

    def arrange(mix: str, seed: int, interrupted: bool) -> None:
        def run_on(_: Backend, scenario: Scenario, policy: str, *, on_progress: object) -> RunResult:
            assert on_progress
            if (scenario.name, scenario.seed) == (mix, seed) and policy == "crux":
                raise KeyboardInterrupt if interrupted else RunError("made up")
            return make_result(policy, scenario=scenario.name)

        monkeypatch.setattr(processes, "on_processes", partial(in_this_process, failing=RunError))
        monkeypatch.setattr(crux_testbed, "run_on", run_on)
        monkeypatch.setattr(crux_testbed, "_OF_BACKEND", {make_result().backend: "Made up."})

    return arrange


def test_the_testbed_runs_on_the_simulator(trainyard: Trainyard, tmp_path: Path) -> None:
    page = tmp_path / "new" / "page.html"
    ended = trainyard("evaluate", "crux-testbed", "--mix", "fig21", "--seeds", "1", "--json", "--report", page)
    assert ended.exit_code == 0
    (found,) = map(json.loads, ended.stdout.splitlines())
    assert (found["mix"], found["backend"], found["seeds"]) == ("fig21", "simulator", [1])
    ecmp, crux, ours = found["policies"]
    assert ecmp["gpu_utilisation"] < crux["gpu_utilisation"] <= crux["limit_gpu_utilisation"]
    assert ours["share_of_limit"] > 0.97
    assert crux["iteration_time_changes"]["bert"] < 0 < crux["iteration_time_changes"]["resnet"]
    written = page.read_text(encoding="utf-8")
    for words in ("crux, paper", "79.3", "Assumptions", "under trainyard"):
        assert words in written


@pytest.mark.parametrize("interrupted", [True, False])
def test_what_is_finished_is_kept(
    trainyard: Trainyard, ends_at: Callable[[str, int, bool], None], tmp_path: Path, interrupted: bool
) -> None:
    """Fig 19 whole, and of Fig 20 the first seed of three."""
    ends_at("fig20", 2, interrupted)
    page = tmp_path / "page.html"
    options = ("--mix", "fig19-n2", "--mix", "fig20", "--mix", "fig22", "--seeds", "3", "--report", page)
    ended = trainyard("evaluate", "crux-testbed", *options)
    assert ended.exit_code == (130 if interrupted else 1)
    assert ("fig20, seed 2: RunError: under crux: made up" in ended.stderr) != interrupted
    assert "fig19-n2" in ended.stdout
    assert "fig20" in ended.stdout
    assert "fig22" not in ended.stdout
    assert "fig20: GPU utilisation" in page.read_text(encoding="utf-8")
    lines = trainyard("evaluate", "crux-testbed", *options, "--json").stdout.splitlines()
    assert [(found["mix"], len(found["seeds"])) for found in map(json.loads, lines)] == [("fig19-n2", 3), ("fig20", 1)]


def test_an_unknown_mix_is_refused_by_name(trainyard: Trainyard) -> None:
    ended = trainyard("evaluate", "crux-testbed", "--mix", "fig20", "--mix", "fig99")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "--mix: expected one of fig19-n2, " in ended.stderr
    assert "got 'fig99'" in ended.stderr
