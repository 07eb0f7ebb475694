import json
import os
import signal
from pathlib import Path

import pytest

from experiments.traces.run import TraceRun
from tests.trainyard.cli.conftest import Trainyard


@pytest.fixture
def folder(tmp_path: Path, trainyard: Trainyard) -> Path:
    """A made-up trace of 200 jobs."""
    folder = tmp_path / "trace"
    assert trainyard("generate-trace", folder, "--jobs", "200", "--seed", "7", "--json").exit_code == 0
    return folder


def test_a_trace_as_json(folder: Path, trainyard: Trainyard) -> None:
    ended = trainyard("trace", folder, "--json")
    told = json.loads(ended.stdout)
    assert ended.exit_code == 0
    assert sum(told["status"].values()) == 200
    assert told["jobs_for_simulation"] == sum(told["jobs_by_gpus"].values())
    left_out = ("job_never_ran", "job_without_gpus", "job_without_workers")
    assert sum(told["cleaning"][rule] for rule in left_out) + told["jobs_for_simulation"] == 200
    assert len(told["findings"]) == sum(told["cleaning"].values())
    assert {"name": "jobs", "here": 200, "published": 5180} in told["figures"]


def test_a_trace_as_tables(folder: Path, trainyard: Trainyard) -> None:
    told = trainyard("trace", folder)
    assert told.exit_code == 0
    for words in ("job that never ran", "jobs that meet contention", "36.3", "for a simulation"):
        assert words in told.stdout


def test_the_same_is_said_when_it_is_made(folder: Path, tmp_path: Path, trainyard: Trainyard) -> None:
    made = trainyard("generate-trace", tmp_path / "other", "--jobs", "200", "--seed", "7").stdout
    assert made.replace("other", "trace") == trainyard("trace", folder).stdout


def test_jobs_larger_than_the_assumed_cluster_are_counted(folder: Path, tmp_path: Path, trainyard: Trainyard) -> None:
    small = tmp_path / "assumptions.yaml"
    small.write_text(
        "topology: {kind: star, hosts: 2, host_link_gbps: 800}\nmodels: {}\nlabels: {}\nothers: [{model: gpt}]\n"
    )
    told = json.loads(trainyard("trace", folder, "--json", "--assumptions", small).stdout)
    assert len(told["too_large"]) == sum(jobs for gpus, jobs in told["jobs_by_gpus"].items() if int(gpus) > 16)
    assert told["jobs_for_simulation"] + len(told["too_large"]) == sum(told["jobs_by_gpus"].values())


def test_what_is_no_trace_is_refused_with_its_place(folder: Path, trainyard: Trainyard) -> None:
    whole = (folder / "job.csv").read_text()
    (folder / "job.csv").write_text(whole[:-1])
    ended = trainyard("trace", folder)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert f"{folder / 'job.csv'}: line 201, column 130: expected the end of a line" in ended.stderr
    assert trainyard("trace", folder / "nowhere").exit_code == 2


def test_assumptions_that_cannot_be_read_are_refused(folder: Path, trainyard: Trainyard) -> None:
    ended = trainyard("trace", folder, "--assumptions", folder / "job.csv")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "job.csv" in ended.stderr


def test_a_folder_that_has_a_trace_is_left_alone(folder: Path, trainyard: Trainyard) -> None:
    before = (folder / "job.csv").read_bytes()
    ended = trainyard("generate-trace", folder, "--jobs", "3")
    assert (ended.exit_code, (folder / "job.csv").read_bytes()) == (2, before)
    assert "exists already" in ended.stderr


@pytest.mark.slow
def test_a_trace_runs_under_policies(folder: Path, trainyard: Trainyard) -> None:
    ended = trainyard("run-trace", folder, "--policy", "ecmp", "--policy", "crux", "--days", "2", "--json")
    told = [json.loads(line) for line in ended.stdout.splitlines()]
    assert ended.exit_code == 0
    assert [run["policy"] for run in told] == ["ecmp", "crux"]
    for run in told:
        assert run["ended_s"] == 2 * 86_400
        assert run["num_done"] + run["num_running"] == len(run["jobs"])
        assert 0 < run["gpu_utilisation"] <= 1
        assert run["slowdown"]["worst"] >= run["run_slowdown"]["p50"] >= 0.999
        assert len(run["series"]["computing_gpus"]) == 2 * 144
    assert told[0]["jobs"][0]["start_s"] == told[1]["jobs"][0]["start_s"]


def test_a_run_of_a_trace_as_tables(folder: Path, trainyard: Trainyard) -> None:
    ended = trainyard("run-trace", folder, "--policy", "ecmp", "--scheduler", "random", "--days", "0.5")
    assert ended.exit_code == 0
    for words in ("GPUs that compute", "time on GPUs over ideal", "Repeated", "ecmp"):
        assert words in ended.stdout


def test_bad_lengths_of_runs_are_refused(folder: Path, trainyard: Trainyard) -> None:
    ended = trainyard("run-trace", folder, "--policy", "ecmp", "--days", "0")
    assert (ended.exit_code, ended.stderr) == (2, "--days: expected a number above 0, got 0.0\n")
    for delay_s in ("inf", "nan", "-1"):
        ended = trainyard("run-trace", folder, "--policy", "ecmp", "--reaction-delay-s", delay_s)
        assert (ended.exit_code, ended.stdout) == (2, "")


@pytest.mark.parametrize(
    "command", [("run-trace", "--policy", "ecmp"), ("evaluate", "crux-trace"), ("evaluate", "crux-trace-loads")]
)
def test_a_trace_of_which_nothing_is_left_is_refused(
    folder: Path, trainyard: Trainyard, command: tuple[str, ...]
) -> None:
    jobs = folder / "job.csv"
    jobs.write_text(jobs.read_text().splitlines(keepends=True)[0])
    ended = trainyard(*command, folder)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"{folder}: expected jobs that ran on GPUs, none is left")


def test_an_interrupted_run_shows_what_there_is(
    folder: Path, trainyard: Trainyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, steps = TraceRun.step, iter(range(40))

    def interrupted_step(run: TraceRun) -> bool:
        if next(steps) == 30:
            os.kill(os.getpid(), signal.SIGINT)
        return step(run)

    monkeypatch.setattr(TraceRun, "step", interrupted_step)
    ended = trainyard("run-trace", folder, "--policy", "ecmp", "--policy", "crux", "--json")
    assert ended.exit_code == 1
    assert ended.stderr.startswith("interrupted; the results end at ")
    assert [json.loads(line)["policy"] for line in ended.stdout.splitlines()] == ["ecmp"]
