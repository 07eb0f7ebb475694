"""The public Python API: its names, its results, and its errors."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import trainyard as ty
from tests.docs.pages import ROOT
from trainyard.cli.application import application

pytestmark = pytest.mark.slow

TWO_JOBS = ROOT / "docs" / "examples" / "two-jobs.yaml"


def test_exported_names_are_there_and_no_others() -> None:
    assert sorted(ty.__all__) == sorted(set(ty.__all__))
    assert all(getattr(ty, name) is not None for name in ty.__all__)
    public = {name for name in vars(ty) if not name.startswith("_")}
    modules = {"advice", "cli", "frames", "models", "plans", "progress", "runs", "scenarios", "sweeps"}
    assert public - modules - {"TYPE_CHECKING", "import_module"} == set(ty.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'fly'"):
        _ = ty.fly


def test_import_needs_no_heavy_package() -> None:
    code = (
        "import sys, trainyard; assert not {'numpy', 'numba', 'pydantic', 'matplotlib', 'pandas'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def _printed(*arguments: str) -> list[dict[str, object]]:
    result = CliRunner().invoke(application, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("policy", ["crux", "trainyard"])
def test_plan_is_what_the_command_prints(policy: str) -> None:
    (printed,) = _printed("plan", str(TWO_JOBS), "--policy", policy)
    assert json.loads(json.dumps(ty.plan(TWO_JOBS, policy).to_dict())) == printed


_PROVENANCE = {"file", "sha256", "seed", "versions"}


def test_compare_is_what_the_command_prints() -> None:
    printed = _printed("run", str(TWO_JOBS), "--on", "simulator", "--policy", "ecmp", "--policy", "crux")
    compared = ty.compare(TWO_JOBS, ["ecmp", "crux"], on="simulator", progress=False)
    assert list(compared) == ["ecmp", "crux"]
    made = json.loads(json.dumps(list(compared.to_dict().values())))
    assert made == [{key: value for key, value in run.items() if key not in _PROVENANCE} for run in printed]
    assert list(compared.to_frame()["policy"]) == ["ecmp", "crux"]


def test_a_typed_scenario_runs_like_its_file() -> None:
    loaded = ty.load_scenario(TWO_JOBS)
    built = ty.Scenario.model_validate(loaded.model_dump(exclude_unset=True))
    of_file = ty.run(TWO_JOBS, on="simulator", progress=False)
    assert ty.run(built, on="simulator", progress=False).to_dict() == of_file.to_dict()


def test_a_sweep_goes_on_from_its_output(tmp_path: Path) -> None:
    output = tmp_path / "sweep.jsonl"
    first = ty.sweep(TWO_JOBS, ["ecmp"], seeds=1, output=output, progress=False)
    both = ty.sweep(TWO_JOBS, ["ecmp", "crux"], seeds=1, output=output, progress=False)
    assert len(first.lines) == 1
    assert first.lines[0] in both.lines
    assert [cell.policy for cell in both.cells] == ["ecmp", "crux"]
    assert len(output.read_text().splitlines()) == 2
    assert not both.failures


def test_progress_is_told_to_a_function() -> None:
    told: list[tuple[float, float]] = []
    ty.run(TWO_JOBS, on="simulator", progress=lambda now_s, end_s: told.append((now_s, end_s)))
    assert told
    assert all(now_s <= end_s for now_s, end_s in told)


def test_errors_name_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ty.PolicyError, match="unknown policy 'fly'"):
        ty.plan(TWO_JOBS, "fly")
    with pytest.raises(ty.PolicyError, match="names code to import"):
        ty.plan(TWO_JOBS, "os:path")
    with pytest.raises(ty.ScenarioError, match="cannot be read"):
        ty.plan(tmp_path / "nowhere.yaml")
    with pytest.raises(ValueError, match="only the simulator sets rates"):
        ty.run(TWO_JOBS, on="emulator", enforcement="ideal")
    with pytest.raises(ValueError, match="twice"):
        ty.compare(TWO_JOBS, ["ecmp", "ecmp"], on="simulator")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"settings": {"seed": [7]}}, "seed: expected --seeds instead"),
        ({"settings": {"policy": ["ecmp"]}}, "policy: expected --policy instead"),
        ({"settings": {"reaction_delay_s": 0}}, "reaction_delay_s: expected a sequence of values, got 0"),
        ({"settings": {"reaction_delay_s": []}}, "reaction_delay_s: expected at least one value"),
        ({"policies": ["ecmp", "ecmp"]}, "policies: expected each once, got 'ecmp' twice"),
        ({"policies": "ecmp"}, "policies: expected a sequence, got 'ecmp'"),
        ({"seeds": [1, 1]}, "seeds: expected each once, got 1 twice"),
        ({"seeds": 0}, "seeds: expected at least one"),
        ({"workers": -1}, "workers: expected at least 1, got -1"),
        ({"scenarios": [TWO_JOBS, TWO_JOBS]}, "scenarios: expected each once, got 'two-jobs' twice"),
    ],
)
def test_a_sweep_refuses_what_it_would_count_or_label_wrongly(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        ty.sweep(**{"scenarios": TWO_JOBS, "progress": False} | arguments)


@pytest.mark.parametrize("policies", ["ecmp", []])
def test_a_comparison_needs_a_sequence_of_policies(policies: Any) -> None:
    with pytest.raises(ValueError, match="policies: expected a sequence of at least one policy"):
        ty.compare(TWO_JOBS, policies, on="simulator")
