import json
from functools import partial
from pathlib import Path

import pytest

from experiments.papers import crux_trace
from experiments.sweeps import processes
from tests.trainyard.cli.conftest import Trainyard, in_this_process
from workloads.traces import published


@pytest.fixture
def folder(tmp_path: Path, trainyard: Trainyard) -> Path:
    """A made-up trace of 20 jobs."""
    folder = tmp_path / "small"
    assert trainyard("generate-trace", folder, "--jobs", "20", "--seed", "3", "--json").exit_code == 0
    return folder


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs stay in this process."""
    monkeypatch.setattr(processes, "on_processes", in_this_process)


def _lines(stdout: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in stdout.splitlines()]


def test_a_trace_runs_under_every_policy_wherever_jobs_lie(folder: Path, trainyard: Trainyard, tmp_path: Path) -> None:
    page = tmp_path / "new" / "page.html"
    ended = trainyard("evaluate", "crux-trace", folder, "--days", "1", "--json", "--report", page)
    assert ended.exit_code == 0
    lines = _lines(ended.stdout)
    assert [(line["scheduler"], line["policy"]) for line in lines] == [
        (scheduler, policy) for scheduler in crux_trace.SCHEDULERS for policy in crux_trace.POLICIES
    ]
    assert {line["topology"] for line in lines} == {"clos"}
    assert {line["ended_s"] for line in lines} == {86_400.0}
    told = {line["policy"]: line["published_gpu_utilisation"] for line in lines}
    assert (told["crux"], told["sincronia"], told["trainyard"]) == (0.62, 0.39, None)
    ran = trainyard("run-trace", folder, "--policy", "crux", "--days", "1", "--json")
    (alone,) = _lines(ran.stdout)
    crux = next(line for line in lines if line["policy"] == "crux")
    assert {key: crux[key] for key in alone} == alone
    written = page.read_text(encoding="utf-8")
    for words in ("Gain of crux, in points, placed by random", "day 1", "trace simulation: small on clos"):
        assert words in written
    assert "is generated" not in written


def test_without_a_folder_a_trace_is_made_up_of_the_seed(trainyard: Trainyard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "NUM_JOBS", 40)
    command = ("evaluate", "crux-trace", "--policy", "ecmp", "--scheduler", "affinity", "--days", "1", "--json")
    first, again, other = (_lines(trainyard(*command, "--seed", seed).stdout)[0] for seed in ("1", "1", "2"))
    assert first == again
    assert first["jobs"] != other["jobs"]
    assert str(first["assumptions"][0]).endswith("Seed 1.")  # type: ignore[index]


def test_interrupted_what_is_finished_is_kept(
    folder: Path, trainyard: Trainyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "on_processes", partial(in_this_process, most=2))
    command = ("evaluate", "crux-trace", folder, "--days", "1", "--scheduler", "random")
    ended = trainyard(*command, "--json")
    assert ended.exit_code == 130
    assert [line["policy"] for line in _lines(ended.stdout)] == ["ecmp", "crux"]
    shown = trainyard(*command)
    assert shown.exit_code == 130
    assert "GPU utilisation, placed by random" in shown.stdout
    assert "sincronia" not in shown.stdout


def test_what_is_no_trace_is_refused_with_row_and_column(folder: Path, trainyard: Trainyard) -> None:
    jobs = folder / "job.csv"
    jobs.write_text(jobs.read_text().rstrip("\n")[:-1] + '"')
    ended = trainyard("evaluate", "crux-trace", folder)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert f"{jobs}: line 21, column " in ended.stderr
    ended = trainyard("evaluate", "crux-trace", "--days", "-1")
    assert (ended.exit_code, ended.stderr) == (2, "--days: expected a number above 0, got -1.0\n")


def test_schedulers_stand_beside_each_other_without_crux_and_with_it(folder: Path, trainyard: Trainyard) -> None:
    command = ("evaluate", "crux-schedulers", folder, "--days", "0.5")
    lines = _lines(trainyard(*command, "--json").stdout)
    assert [(line["scheduler"], line["policy"], line["published_gpu_utilisation"]) for line in lines] == [
        ("affinity", "ecmp", 0.39),
        ("affinity", "crux", 0.62),
        ("random", "ecmp", None),
        ("random", "crux", None),
        ("hived", "ecmp", 0.64),
        ("hived", "crux", 0.75),
        ("muri", "ecmp", 0.59),
        ("muri", "crux", 0.73),
    ]
    shown = trainyard(*command).stdout
    assert shown.count("+14.0") == 2  # what the paper has of Muri stands in both tables


def test_the_papers_other_topology_has_its_own_figures(folder: Path, trainyard: Trainyard) -> None:
    command = ("evaluate", "crux-trace", folder, "--topology", "double-sided", "--policy", "crux", "--days", "0.5")
    lines = _lines(trainyard(*command, "--json").stdout)
    assert [(line["topology"], line["gpus"], line["published_gpu_utilisation"]) for line in lines] == [
        ("double_sided", 2784, 0.5)
    ] * 2


def test_assumptions_are_changed_one_at_a_time(folder: Path, trainyard: Trainyard, tmp_path: Path) -> None:
    command = ("evaluate", "trace-sensitivity", folder, "--days", "0.5", "--json")
    asked = [word for one in ("as assumed", "link rates x0.5", "volumes x2") for word in ("--variant", one)]
    lines = _lines(trainyard(*command, *asked).stdout)
    assert [(line["variant"], line["policy"]) for line in lines] == [
        (variant, policy) for variant in ("as assumed", "link rates x0.5", "volumes x2") for policy in ("ecmp", "crux")
    ]
    assert {line["scheduler"] for line in lines} == {"random"}
    slower, more = lines[2], lines[4]
    # Half the rates are twice the volumes, but for what light takes.
    assert slower["gpu_utilisation"] == pytest.approx(more["gpu_utilisation"], rel=1e-3)
    star = tmp_path / "star.yaml"
    star.write_text(
        "topology: {kind: star, hosts: 64, host_link_gbps: 800}\nmodels: {}\nlabels: {}\nothers: [{model: gpt}]\n"
    )
    refused = trainyard(*command, "--assumptions", star, "--variant", "uplinks x0.5")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--variant: the assumed topology does not allow 'uplinks x0.5'" in refused.stderr
