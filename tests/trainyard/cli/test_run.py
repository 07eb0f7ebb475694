import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from experiments.scenarios.results import run_object
from tests.experiments.report.builders import make_job, make_result
from tests.experiments.report.trace_events import TraceFile
from tests.topologies.mixing import with_tofinos
from tests.trainyard.cli.conftest import Trainyard
from topologies.expanding import expanded
from topologies.specification import Topology
from trainyard.cli.run import DEMO_SCENARIOS, FAILURE_SCENARIOS, iteration_times
from workloads.scenario import ProfileSource, Scenario

pytestmark = pytest.mark.slow

Ran = list[tuple[Scenario, str]]


@pytest.fixture
def scenario(document: dict[str, Any], write: Callable[[object], Path]) -> Path:
    return write(document)


def test_json_is_one_object_per_policy_and_nothing_else(trainyard: Trainyard, ran: Ran, scenario: Path) -> None:
    result = trainyard("run", scenario, "--policy", "ecmp", "--policy", "crux", "--json")
    assert result.exit_code == 0
    objects = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(found["policy"], found["gpu_utilisation"]) for found in objects] == [("ecmp", 0.5), ("crux", 0.75)]
    for found in objects:
        assert (found["seed"], found["file"]) == (1, str(scenario))
        assert found["sha256"] == hashlib.sha256(scenario.read_bytes()).hexdigest()
        assert found["versions"]["python"] == platform.python_version()
    assert [policy for _, policy in ran] == ["ecmp", "crux"]


def test_people_get_tables(trainyard: Trainyard, ran: Ran, scenario: Path) -> None:
    words = trainyard("run", scenario, "--policy", "ecmp", "--policy", "crux").stdout
    for word in ("Utilisation", "Fluid bound", "50.0", "75.0", "gpt", "Change"):
        assert word in words
    rows = [line.split()[:2] for line in words.partition("iteration times")[2].splitlines()]
    assert [row for row in rows if row[:1] == ["gpt"]] == [["gpt", "ecmp"], ["gpt", "crux"]]
    assert len(ran) == 2


def test_tables_and_json_say_which_jobs_are_measured() -> None:
    told, measured = make_job("gpt"), make_job("bert", profile=ProfileSource.MEASURED)
    result = make_result(jobs=(told, measured))
    assert [job["profile"] for job in run_object(result)["jobs"]] == ["told", "measured"]
    columns = {str(column.header): list(column.cells) for column in iteration_times([result]).columns}
    assert columns["Profile"] == ["told", "measured"]
    assert "Profile" not in [str(column.header) for column in iteration_times([make_result(jobs=(told,))]).columns]


def test_the_seed_can_be_another(trainyard: Trainyard, ran: Ran, scenario: Path) -> None:
    trainyard("run", scenario)
    trainyard("run", scenario, "--seed", "7")
    assert [accepted.seed for accepted, _ in ran] == [1, 7]


@pytest.mark.usefixtures("ran")
def test_a_report_shows_all_policies(trainyard: Trainyard, scenario: Path, tmp_path: Path) -> None:
    page = tmp_path / "new" / "page.html"
    result = trainyard("run", scenario, "--policy", "ecmp", "--policy", "crux", "--report", page, "--json")
    assert len([json.loads(line) for line in result.stdout.splitlines()]) == 2
    assert f"wrote {page}" in result.stderr
    assert "under ecmp" in page.read_text(encoding="utf-8")
    assert "under crux" in page.read_text(encoding="utf-8")


@pytest.mark.usefixtures("ran")
def test_figures_are_written_with_their_data(trainyard: Trainyard, scenario: Path, tmp_path: Path) -> None:
    folder = tmp_path / "figures"
    result = trainyard("run", scenario, "--policy", "ecmp", "--figures", folder, "--figure-format", "pdf")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (0, f"wrote {folder}")
    assert {path.suffix for path in folder.iterdir()} == {".pdf", ".csv"}
    assert "ecmp,0.5," in (folder / "small-utilisation.csv").read_text()


@pytest.mark.usefixtures("ran")
def test_all_policies_are_in_one_file_for_perfetto(trainyard: Trainyard, scenario: Path, tmp_path: Path) -> None:
    path = tmp_path / "new" / "run.json.gz"
    result = trainyard("run", scenario, "--policy", "ecmp", "--policy", "crux", "--perfetto", path, "--json")
    assert len([json.loads(line) for line in result.stdout.splitlines()]) == 2
    assert f"wrote {path}" in result.stderr
    assert {"ecmp: job gpt", "crux: job gpt"} <= set(TraceFile(path).processes)


def test_a_file_for_perfetto_that_cannot_be_written_is_refused_before_the_run(
    trainyard: Trainyard, ran: Ran, scenario: Path
) -> None:
    result = trainyard("run", scenario, "--perfetto", scenario / "run.json")
    assert (result.exit_code, ran) == (2, [])
    assert str(scenario) in result.stderr


def test_a_file_for_perfetto_needs_no_extra(scenario: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['jinja2'] = sys.modules['matplotlib'] = None; from trainyard.cli import main; "
        f"sys.argv = ['trainyard', 'run', {str(scenario)!r}, '--on', 'simulator', '--perfetto', "
        f"{str(tmp_path / 'run.json')!r}]; main()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "crux: job a" in TraceFile(tmp_path / "run.json").processes


def test_a_missing_extra_is_named_before_the_run(scenario: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['jinja2'] = None; from trainyard.cli import main; "
        f"sys.argv = ['trainyard', 'run', {str(scenario)!r}, '--report', {str(tmp_path / 'page.html')!r}]; main()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (2, "this needs the package jinja2: install trainyard[report]\n")


def test_a_page_that_cannot_be_written_is_refused_before_the_run(
    trainyard: Trainyard, ran: Ran, scenario: Path
) -> None:
    result = trainyard("run", scenario, "--report", scenario / "page.html")
    assert result.exit_code == 2
    assert str(scenario) in result.stderr
    assert not ran


@pytest.mark.usefixtures("ran")
def test_a_run_that_fails_is_status_1_and_says_why(trainyard: Trainyard, scenario: Path) -> None:
    result = trainyard("run", scenario, "--seed", "13", "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "small under crux: the run failed: no job has departed\n"


@pytest.mark.parametrize("arguments", [("--on", "paper"), ("--policy", "magic"), ("--seed", "x"), ("--fast",)])
def test_a_wrong_option_is_bad_input(
    trainyard: Trainyard, ran: Ran, scenario: Path, arguments: tuple[str, ...]
) -> None:
    result = trainyard("run", scenario, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert arguments[0] in result.stderr
    assert not ran


def test_what_the_backend_does_not_carry_is_refused_before_the_run(
    trainyard: Trainyard, ran: Ran, document: dict[str, Any], write: Callable[[object], Path]
) -> None:
    document["topology"] |= {"nics_per_host": 2, "pcie": {"gbps": 50, "nics_per_switch": 2}}
    path = write(document)
    assert trainyard("check", path).exit_code == 0
    result = trainyard("run", path, "--on", "emulator", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    expected = "the emulator supports PCIe switches with one NIC, not with 2"
    assert result.stderr == f"{path}: topology.pcie.nics_per_switch: {expected}\n"
    assert not ran


def test_a_tofino_is_planned_for_but_not_emulated(
    trainyard: Trainyard, ran: Ran, document: dict[str, Any], write: Callable[[object], Path]
) -> None:
    built = TypeAdapter[Topology](Topology).validate_python(document["topology"]).build()
    tofinos = expanded(with_tofinos(built, {built.switches[0]}))
    path = write(document | {"topology": tofinos.model_dump(mode="json")})
    assert trainyard("plan", path, "--json").exit_code == 0
    result = trainyard("run", path, "--on", "emulator", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    expected = f"target of {built.switches[0]} is tofino, which the emulator is not; expected --on simulator"
    assert result.stderr == f"{path}: topology: {expected}\n"
    assert not ran


def test_a_bad_scenario_is_refused_before_the_run(
    trainyard: Trainyard, ran: Ran, document: dict[str, Any], write: Callable[[object], Path]
) -> None:
    path = write(document | {"colour": "red"})
    result = trainyard("run", path, "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"{path}: colour: unknown key")
    assert not ran


@pytest.mark.slow
def test_the_simulator_runs_the_same_scenario(trainyard: Trainyard, scenario: Path) -> None:
    ended = trainyard("run", scenario, "--on", "simulator", "--policy", "varys", "--enforcement", "ideal", "--json")
    assert ended.exit_code == 0
    found = json.loads(ended.stdout)
    assert (found["backend"], found["enforcement"], found["policy"]) == ("simulator", "ideal", "varys")
    words = trainyard("run", scenario, "--on", "simulator", "--enforcement", "ideal").stdout
    assert "ideal rates" in words


def test_a_controller_that_hears_no_ports_is_the_emulators_alone(
    trainyard: Trainyard, ran: Ran, document: dict[str, Any], write: Callable[[object], Path]
) -> None:
    path = write(document | {"reads_ports": False})
    assert trainyard("run", path).exit_code == 0
    assert len(ran) == 1
    result = trainyard("run", path, "--on", "simulator")
    assert result.exit_code == 2
    assert "reads_ports: only the emulator" in result.stderr


def test_ideal_rates_are_the_simulators_alone(trainyard: Trainyard, ran: Ran, scenario: Path) -> None:
    ended = trainyard("run", scenario, "--enforcement", "ideal")
    assert (ended.exit_code, ended.stdout, ran) == (2, "", [])
    assert "--enforcement ideal: only the simulator" in ended.stderr


def test_the_simulator_lets_events_happen(
    trainyard: Trainyard, document: dict[str, Any], write: Callable[[object], Path]
) -> None:
    times = ((0.1, "down"), (2.0, "up"))
    events = [{"at_s": at_s, "link": ["t0", "t1"], "state": state} for at_s, state in times]
    cut, whole = (
        json.loads(trainyard("run", write({**document, "events": of}), "--on", "simulator", "--json").stdout)
        for of in (events, [])
    )
    assert cut.keys() == whole.keys()
    assert cut["jobs"][0]["jct_s"] > whole["jobs"][0]["jct_s"] + 1.0


def test_the_demo_runs_every_mix_without_with_levels_and_with_paths(
    trainyard: Trainyard, ran: Ran, tmp_path: Path
) -> None:
    result = trainyard("demo", "--out", tmp_path / "pictures")
    assert result.exit_code == 0
    policies = ["ecmp", "crux-pa", "crux"]
    assert [(scenario.name, policy) for scenario, policy in ran] == list(product(DEMO_SCENARIOS, policies))
    assert "fig19-n4" in DEMO_SCENARIOS
    overview = result.stdout.rpartition("GPU utilisation")[2]
    page = (tmp_path / "pictures" / "demo.html").read_text(encoding="utf-8")
    for name in DEMO_SCENARIOS:
        row = next(line for line in overview.splitlines() if name in line)
        assert row.replace("\N{NO-BREAK SPACE}", " ").split()[1:7] == ["50.0", "%", "75.0", "%", "75.0", "%"]
        assert f"Scenario {name}" in page
    assert str(tmp_path / "pictures" / "demo.html") in result.stderr


def test_failures_are_shown_between_one_event_and_the_next(trainyard: Trainyard, ran: Ran, tmp_path: Path) -> None:
    result = trainyard("demo", "--failures", "--out", tmp_path)
    assert result.exit_code == 0
    policies = ["ecmp", "crux"]
    assert [(scenario.name, policy) for scenario, policy in ran] == list(product(FAILURE_SCENARIOS, policies))
    assert all(scenario.events for scenario, _ in ran)
    between = result.stdout.partition("utilisation between")[2].replace("\N{NO-BREAK SPACE}", " ").splitlines()
    rows = [line.split() for line in between if " s " in line]
    # From where measuring begins.
    assert rows[0] == ["1", "s", "50.0", "%", "75.0", "%", "cable", "t0", "to", "a0", "down"]
    assert (tmp_path / "failures.html").is_file()


def test_jobs_that_need_pytorch_say_how_to_install_it(
    trainyard: Trainyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.scenarios.backend.find_spec", lambda _name: None)
    result = trainyard("demo", "--real", "--out", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "--real: jobs[0].workload: PyTorch is not installed: pip install torch==2.13.0"
    ]
    assert list(tmp_path.iterdir()) == []


def test_the_demo_is_one_at_a_time(trainyard: Trainyard) -> None:
    for options in (("--real", "--failures"), ("--islands", "--real")):
        result = trainyard("demo", *options)
        says = "--failures, --real and --islands: expected one of them\n"
        assert (result.exit_code, result.stderr) == (2, says)


@pytest.mark.slow
def test_the_demo_of_islands_says_what_each_tenant_gets_and_what_was_known(
    trainyard: Trainyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainyard.cli.islands_demo.POLICIES", ("crux",))
    monkeypatch.setattr("trainyard.cli.islands_demo._FOR_S", 3.0)
    result = trainyard("demo", "--islands", "--out", tmp_path)
    if "hosts of the islands" in result.stderr:
        pytest.skip(result.stderr)
    assert result.exit_code == 0, result.stderr
    assert [row.split()[0] for row in result.stdout.splitlines() if row.strip().startswith(("alone", "crux"))] == [
        "alone",
        "crux",
    ]
    transfers = [
        each
        for each in json.loads((tmp_path / "islands.perfetto.json").read_text())["traceEvents"]
        if each.get("cat") == "transfer"
    ]
    assert {each["args"]["job"].partition("#")[0] for each in transfers} == {"pipeline", "replicas"}
    assert "Under crux" in (tmp_path / "islands.html").read_text(encoding="utf-8")


def test_a_pytorch_job_is_not_measured_by_the_controller(
    trainyard: Trainyard, document: dict[str, Any], write: Callable[[object], Path]
) -> None:
    workload = {"type": "torch", "parallelism": "ddp", "parameter_bytes": 1e9, "layers": 2, "compute_s": 0.5}
    job = document["jobs"][0] | {"workload": workload, "profile": "measured"}
    result = trainyard("run", write(document | {"jobs": [job]}), "--on", "namespaces")
    assert result.exit_code == 2
    assert "jobs[0].profile: the ranks of a PyTorch job measure and report it; expected told" in result.stderr
