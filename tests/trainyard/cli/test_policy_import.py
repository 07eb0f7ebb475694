"""A command imports the policy that its user names, and none that a file names unless it may."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller.config import load_config
from tests.trainyard.cli.conftest import Trainyard
from workloads.scenario import Scenario

Ran = list[tuple[Scenario, str]]
OWN = "own_policy:POLICY"
MODULE = """
from policies import Plan, Policy, Snapshot, find_policy

POLICY = Policy("own", "as ecmp", find_policy("ecmp").decide)
"""
REFUSED = f"got {OWN!r}; no policy is imported for a scenario"


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the working directory, which is not on the path."""
    (tmp_path / "own_policy.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.delitem(sys.modules, "own_policy", raising=False)


def test_what_the_user_names_is_imported_from_the_working_directory(
    trainyard: Trainyard, ran: Ran, document: dict[str, Any], write: Callable[[object], Path]
) -> None:
    ended = trainyard("run", write(document), "--policy", OWN, "--policy", "crux")
    assert ended.exit_code == 0, ended.stderr
    assert [policy for _, policy in ran] == ["own", "crux"]


@pytest.mark.parametrize("command", ["check", "plan", "run"])
def test_what_a_scenario_names_is_imported_only_where_it_may(
    trainyard: Trainyard, ran: Ran, document: dict[str, Any], write: Callable[[object], Path], command: str
) -> None:
    path = write(document | {"policy": OWN})
    refused = trainyard(command, path)
    assert (refused.exit_code, refused.stderr.strip().endswith(REFUSED)) == (2, True), refused.stderr
    assert "own_policy" not in sys.modules
    allowed = trainyard(command, path, "--allow-policy-import")
    assert allowed.exit_code == 0, allowed.stderr
    assert "own_policy" in sys.modules
    assert [policy for _, policy in ran] == (["own"] if command == "run" else [])


def test_nor_is_what_a_swept_scenario_names(
    trainyard: Trainyard, document: dict[str, Any], write: Callable[[object], Path], tmp_path: Path
) -> None:
    refused = trainyard("sweep", write(document | {"policy": OWN}), "--out", tmp_path / "out.jsonl")
    assert (refused.exit_code, refused.stderr.strip().endswith(REFUSED)) == (2, True), refused.stderr
    assert "own_policy" not in sys.modules


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("magic", "--policy: unknown policy 'magic': expected one of cassini, "),
        ("no_such_module:POLICY", "--policy: policy 'no_such_module:POLICY' cannot be loaded: ModuleNotFoundError"),
        ("own_policy:MODULE", "--policy: policy 'own_policy:MODULE' cannot be loaded: AttributeError"),
        ("own_policy:Plan", "--policy: policy 'own_policy:Plan' is a type, expected a policies.Policy"),
    ],
)
def test_what_is_no_policy_is_refused_before_anything_starts(
    trainyard: Trainyard,
    ran: Ran,
    document: dict[str, Any],
    write: Callable[[object], Path],
    command: str,
    name: str,
    message: str,
) -> None:
    ended = trainyard(command, write(document), "--policy", "crux", "--policy", name)
    assert ended.exit_code == 2
    assert ended.stderr.startswith(message)
    assert not ran
    assert not ended.stdout


def test_the_controllers_own_configuration_may_name_code(trainyard: Trainyard, tmp_path: Path) -> None:
    config = """
        topology: {kind: dumbbell, hosts_per_side: 1, host_link_gbps: 100, bottleneck_gbps: 100}
        switches: [{name: t0, address: "127.0.0.1:1"}, {name: t1, address: "127.0.0.1:1"}]
        policy: own_policy:
    """
    path = tmp_path / "controller.yaml"
    path.write_text(config.replace("own_policy:", OWN))
    assert load_config(path).policy == OWN
    assert "own_policy" not in sys.modules
    path.write_text(config.replace("own_policy:", "own_policy:MISSING"))
    ended = trainyard("controller", "--config", path)
    assert ended.exit_code == 2
    assert ended.stderr.startswith(f"{path}: policy: policy 'own_policy:MISSING' cannot be loaded: AttributeError")
