import hashlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from experiments.sweeps import processes
from experiments.sweeps.cases import Case, run_case
from tests.experiments.sweeps.builders import document, write
from tests.patience import PATIENCE_S
from tests.trainyard.cli.conftest import Trainyard, in_this_process

OPTIONS = ("--policy", "ecmp", "--policy", "crux", "--seeds", "2", "--set", "reaction_delay_s=0,1")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[Case]:
    """Has runs take place in this process; the user interrupts the sixth. Returns what ran."""
    ran: list[Case] = []

    def noted(case: Case) -> object:
        ran.append(case)
        if len(ran) == 6:
            raise KeyboardInterrupt
        return run_case(case)

    monkeypatch.setattr(
        processes, "on_processes", lambda _, items, workers: in_this_process(noted, items, workers=workers)
    )
    return ran


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_results_are_the_same_whoever_finds_them(
    trainyard: Trainyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes, this one, or ``trainyard run``."""
    scenario = write(tmp_path)
    outputs = [tmp_path / "two.jsonl", tmp_path / "one.jsonl"]
    ended = [trainyard("sweep", scenario, *OPTIONS, "--workers", "2", "--out", outputs[0])]
    monkeypatch.setattr(processes, "on_processes", in_this_process)
    ended.append(trainyard("sweep", scenario, *OPTIONS, "--out", outputs[1]))
    assert [(end.exit_code, end.stderr) for end in ended] == [(0, "")] * 2
    assert ended[0].stdout == ended[1].stdout
    first, second = (sorted(map(json.dumps, lines(output))) for output in outputs)
    assert first == second
    assert len(set(first)) == 8
    run = json.loads(
        trainyard("run", scenario, "--on", "simulator", "--policy", "crux", "--seed", "2", "--json").stdout
    )
    (swept,) = (
        line["result"]
        for line in lines(outputs[0])
        if (line["policy"], line["seed"], line["settings"]) == ("crux", 2, {"reaction_delay_s": 0})
    )
    assert swept["jobs"] != run["jobs"]  # the delay of a scenario is 0.01 s
    quick = write(tmp_path, reaction_delay_s=0)
    run = json.loads(trainyard("run", quick, "--on", "simulator", "--policy", "crux", "--seed", "2", "--json").stdout)
    assert (run["seed"], run["file"]) == (2, str(quick))
    assert run["sha256"] == hashlib.sha256(quick.read_bytes()).hexdigest()
    assert run["versions"] == lines(outputs[0])[0]["versions"]
    assert swept == {key: run[key] for key in swept}


def test_a_report_and_figures_show_the_spread_over_seeds(
    trainyard: Trainyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "on_processes", in_this_process)
    page, folder = tmp_path / "page.html", tmp_path / "figures"
    options = ("--seeds", "2", "--policy", "crux", "--report", page, "--figures", folder)
    ended = trainyard("sweep", write(tmp_path), *options, "--out", tmp_path / "out.jsonl")
    assert (ended.exit_code, ended.stderr) == (0, f"wrote {page}\nwrote {folder}\n")
    assert "GPU utilisation over seeds" in page.read_text(encoding="utf-8")
    header, row = (folder / "sweep-utilisation.csv").read_text().splitlines()
    assert header.split(",")[3:6] == ["seeds", "mean", "deviation"]
    assert row.split(",")[2:4] == ["crux", "2"]


def test_interrupted_it_keeps_what_is_finished_and_goes_on_there(
    trainyard: Trainyard, here: list[Case], tmp_path: Path
) -> None:
    output = tmp_path / "out.jsonl"
    command = ("sweep", write(tmp_path), *OPTIONS, "--out", output)
    ended = trainyard(*command)
    assert ended.exit_code == 130
    assert len(lines(output)) == 5
    assert "ecmp" in ended.stdout
    with output.open("rb+") as file:
        file.truncate(output.stat().st_size - 10)
    ended = trainyard(*command)
    assert ended.exit_code == 0
    assert ended.stderr == f"{output}: its last line was cut off and is dropped\n{output} has 4 of 8 runs\n"
    assert [case.description.key for case in here[6:8]] == [case.description.key for case in here[4:6]]
    assert len(here) == 10
    assert len({json.dumps(line) for line in lines(output)}) == 8
    ended = trainyard(*command, "--json")
    assert ended.stderr == f"{output} has 8 of 8 runs\n"
    rows = json.loads(ended.stdout)["cells"]
    assert [(row["settings"]["reaction_delay_s"], row["policy"], row["finished"]) for row in rows] == [
        (delay_s, policy, 2) for delay_s in (0, 1) for policy in ("ecmp", "crux")
    ]
    assert len(here) == 10


@pytest.mark.usefixtures("here")
def test_a_run_that_fails_is_recorded_and_the_others_go_on(trainyard: Trainyard, tmp_path: Path) -> None:
    """A window after the last departure measures nothing."""
    output = tmp_path / "out.jsonl"
    windows = "measure={from_s: 0, to_s: 1},{from_s: 900, to_s: 901}"
    command = ("sweep", write(tmp_path), "--seeds", "1", "--set", windows, "--out", output)
    ended = trainyard(*command)
    assert ended.exit_code == 1
    assert ended.stderr.startswith("1 of 2 runs failed, the first of them small with measure={")
    assert "under crux, seed 1: " in ended.stderr
    assert "Failed" in ended.stdout
    assert [(line["error"] is None, line["result"] is None) for line in lines(output)] == [(True, False), (False, True)]
    assert trainyard(*command).stderr.startswith(f"{output} has 1 of 2 runs\n1 of 2 runs failed")


def test_a_changed_scenario_and_an_output_of_something_else_are_refused(
    trainyard: Trainyard, here: list[Case], tmp_path: Path
) -> None:
    output = tmp_path / "out.jsonl"
    scenario = write(tmp_path)
    assert trainyard("sweep", scenario, "--seeds", "1", "--out", output).exit_code == 0
    write(tmp_path, seed=5)
    for path, words in ((output, f"{scenario}: has changed since its runs in {output}"), (scenario, "line 1: not a")):
        before = path.read_bytes()
        ended = trainyard("sweep", scenario, "--seeds", "1", "--out", path)
        assert (ended.exit_code, ended.stdout) == (2, "")
        assert words in ended.stderr
        assert path.read_bytes() == before
    assert len(here) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--set", "colour"), "--set: expected KEY=VALUE"),
        (("--set", "colour=red"), "small.yaml with colour=red: colour: unknown key"),
        (("--set", "reaction_delay_s=0", "--set", "reaction_delay_s=1"), "--set: reaction_delay_s: expected once"),
        (("--on", "emulator", "--enforcement", "ideal"), "only the simulator sets rates"),
        (("--workers", "0"), "--workers"),
    ],
)
def test_bad_input_starts_nothing(
    trainyard: Trainyard, here: list[Case], tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    output = tmp_path / "out.jsonl"
    ended = trainyard("sweep", write(tmp_path), "--out", output, *options)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert words in ended.stderr
    assert not here
    assert not output.exists()


def test_other_versions_are_no_ground_to_run_again_but_told(
    trainyard: Trainyard, here: list[Case], tmp_path: Path
) -> None:
    output = tmp_path / "out.jsonl"
    command = ("sweep", write(tmp_path), "--seeds", "1", "--out", output)
    trainyard(*command)
    output.write_text(output.read_text().replace('"numpy":"', '"numpy":"0.'))
    assert "has 1 of 1 runs, 1 of them by other versions" in trainyard(*command).stderr
    other = here[0].description.model_copy(update={"versions": here[0].description.versions | {"numpy": "0.1"}})
    assert "has other versions: numpy" in str(run_case(Case(other, here[0].scenario)))


@pytest.mark.slow
def test_a_signal_ends_it_with_its_processes(tmp_path: Path) -> None:
    """What the first worker finished stays."""
    output = tmp_path / "out.jsonl"
    endless = write(tmp_path, "endless", jobs=[job | {"iterations": 100_000} for job in document()["jobs"]])
    scenarios = [write(tmp_path), endless]
    command = [sys.executable, "-m", "trainyard", "sweep", *map(str, scenarios), "--seeds", "1", "--workers", "2"]
    sweep = subprocess.Popen([*command, "--out", output], stdout=subprocess.PIPE, text=True)
    try:
        while not output.exists() or not output.read_bytes().endswith(b"\n"):
            assert sweep.poll() is None
            time.sleep(0.05)
        sweep.send_signal(signal.SIGTERM)
        told, _ = sweep.communicate(timeout=PATIENCE_S)
    finally:
        sweep.kill()
    assert sweep.returncode == 128 + signal.SIGTERM
    assert "small" in told
    assert "endless" not in told
    assert [line["scenario"] for line in lines(output)] == ["small"]


def test_a_cluster_needs_its_extra_and_an_answer(tmp_path: Path) -> None:
    """Where Ray is installed nobody listens, where it is not the extra is named; either way nothing runs."""
    options = ["--out", str(tmp_path / "out.jsonl"), "--address", "127.0.0.1:1"]
    command = [sys.executable, "-m", "trainyard", "sweep", str(write(tmp_path)), *options]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    without = (2, "this needs the package ray: install trainyard[ray]\n")
    unheard = (1, "127.0.0.1:1: no Ray cluster answers: [Errno 111] Connection refused\n")
    assert (ended.returncode, ended.stderr) in (without, unheard)
    assert ended.stdout == ""
