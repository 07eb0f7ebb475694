import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from controller.cli import evaluating
from controller.cli.exits import fail
from controller.evaluation import churn, coflow, echelon_runs, open_loop_policies, robustness
from controller.policy.policy_name import PolicyName
from controller.run.backend import Backend
from controller.run.results import RunResult
from controller.sweep import processes
from controller.sweep.execution import Failure
from simulator.coflow_options import CoflowPolicy
from tests.cli.conftest import Trainyard, in_this_process
from tests.report.builders import make_result
from workloads.scenario import Scenario

TRACE = "2 2\na 0 1 0 1 1:1024\nb 1000 1 0 1 0:128\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.txt"
    path.write_text(TRACE)
    return path


@pytest.fixture
def ends_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int, bool], None]:
    """Has runs made up, until one mix reaches one seed: there the user interrupts, or the run fails."""

    def arrange(mix: str, seed: int, interrupted: bool) -> None:
        def run_all(
            scenario: Scenario, policies: Sequence[PolicyName], _: Backend, *, aside: str
        ) -> Iterator[RunResult]:
            assert aside.startswith(f", seed {scenario.seed} of ")
            for policy in policies:
                if (scenario.name, scenario.seed) == (mix, seed):
                    if interrupted:
                        raise KeyboardInterrupt
                    fail("the run failed")
                yield make_result(policy, scenario=scenario.name)

        monkeypatch.setattr(evaluating, "run_all", run_all)
        monkeypatch.setattr("controller.evaluation.crux_testbed._OF_BACKEND", {make_result().backend: "Made up."})

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
    measure = coflow.measure

    def interrupted(*arguments: object) -> coflow.PolicyMeasured:
        if CoflowPolicy.VARYS in arguments:
            raise KeyboardInterrupt
        return measure(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(coflow, "measure", interrupted)
    ended = trainyard("evaluate", "coflow", trace, "--json")
    assert ended.exit_code == 130
    assert ended.stdout.splitlines() == lines[:2]


def test_a_trace_that_cannot_be_read_is_named(trainyard: Trainyard, tmp_path: Path) -> None:
    ended = trainyard("evaluate", "coflow", tmp_path / "none.txt")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "none.txt: cannot be read" in ended.stderr


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
    assert "least_gain" in page.read_text(encoding="utf-8")

    monkeypatch.setattr(processes, "on_processes", partial(in_this_process, most=10))
    ended = trainyard("evaluate", "churn", "--seeds", "2", "--jobs", "3")
    assert ended.exit_code == 130
    assert "fewer-uplinks" in ended.stdout
    assert ended.stdout.count("echelonflow") == 2  # a row in two tables


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
    assert "fig19-n2" in ended.stderr
    assert ended.stderr.endswith("its process ended with status 9\n")
    assert "Robustness: 1 run\n" in ended.stdout


def test_echelonflow_stands_beside_fair_sharing_and_both_readings_of_coflows(
    trainyard: Trainyard, tmp_path: Path
) -> None:
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
    monkeypatch.setattr(open_loop_policies, "tardiness_gaps", lambda _: iter([{"varys": 0.5}, {"varys": 0.0}]))
    options = ("--kind", "optimum", "--kind", "dp", "--kind", "mixed", "--seeds", "3")
    ended = trainyard("evaluate", "echelon", *options)
    assert ended.exit_code == (130 if interrupted else 1)
    assert ("dp at load 0.8 under fair, seed 2 of 3: the run failed: made up" in ended.stderr) != interrupted
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
