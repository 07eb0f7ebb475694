from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from policies.registry import find_policy, policy_names
from tests.docs.pages import ROOT
from tests.trainyard.cli.conftest import Trainyard
from workloads.loading import SHIPPED_SCENARIOS


@pytest.mark.parametrize("scenario", sorted(SHIPPED_SCENARIOS.glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_scenarios_are_ok(trainyard: Trainyard, scenario: Path) -> None:
    result = trainyard("check", scenario)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "ok\n", "")


def test_all_that_is_wrong_is_said_with_file_and_key(
    trainyard: Trainyard, document: dict[str, Any], write: Callable[[object], Path]
) -> None:
    document["colour"] = "red"
    document["policy"] = "magic"
    document["jobs"][0]["hosts"][1] = "h9"
    document["jobs"][1]["workload"] = document["jobs"][1]["workload"] | {"bytes": -1.0}
    path = write(document)
    result = trainyard("check", path)
    assert (result.exit_code, result.stdout) == (2, "")
    lines = result.stderr.splitlines()
    assert len(lines) == 4
    for key in ("colour", "policy", "jobs[0] a, hosts[1]", "jobs[1] b, workload.bytes"):
        assert any(line.startswith(f"{path}: {key}: ") for line in lines)


def test_a_policy_that_nobody_knows_is_refused(
    trainyard: Trainyard, document: dict[str, Any], write: Callable[[object], Path]
) -> None:
    path = write(document | {"policy": "magic"})
    result = trainyard("check", path)
    assert result.exit_code == 2
    assert result.stderr == f"{path}: policy: expected one of {', '.join(policy_names())}, got 'magic'\n"


def test_every_policy_has_its_line_with_where_it_comes_from_and_what_it_does(trainyard: Trainyard) -> None:
    result = trainyard("policies")
    assert result.exit_code == 0
    lines = [line.split(maxsplit=3) for line in result.stdout.splitlines()]
    assert [name for name, *_ in lines] == list(policy_names())
    assert {distribution for _, distribution, *_ in lines} == {"trainyard"}
    assert [summary for *_, summary in lines] == [find_policy(name).summary for name in policy_names()]


def test_a_configuration_that_names_its_fabric_file_is_checked_as_one(trainyard: Trainyard, tmp_path: Path) -> None:
    rack = yaml.safe_load((ROOT / "docs/examples/rack.yaml").read_text())
    del rack["topology"]["switches"][0]["p4runtime"]
    (tmp_path / "rack.yaml").write_text(yaml.safe_dump(rack))
    (tmp_path / "controller.yaml").write_text("topology: rack.yaml")
    assert trainyard("check", tmp_path / "rack.yaml").stdout == "ok\n"
    result = trainyard("check", tmp_path / "controller.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "switches: no address for leaf-1" in result.stderr


def test_the_program_of_a_tofino_is_looked_for_where_there_is_one(trainyard: Trainyard, tmp_path: Path) -> None:
    rack = yaml.safe_load((ROOT / "docs/examples/rack.yaml").read_text())
    rack["topology"]["switches"][0]["target"] = "tofino"
    (tmp_path / "rack.yaml").write_text(yaml.safe_dump(rack))
    document = {"topology": "rack.yaml", "pipeline": str(tmp_path), "device_config": str(tmp_path / "made")}
    (tmp_path / "controller.yaml").write_text(yaml.safe_dump(document))
    result = trainyard("check", tmp_path / "controller.yaml")
    assert result.exit_code == 2
    assert [line.partition(": ")[2] for line in result.stderr.splitlines()] == [
        f"pipeline: {tmp_path} has no tna/trainyard.p4info.txtpb",
        f"pipeline: {tmp_path} has no trainyard.json",
        f"pipeline: {tmp_path} has no trainyard.p4info.txtpb",
        f"device_config: there is no file {tmp_path / 'made'}",
    ]


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("/dev/null", "there is no file /dev/null"),
        ("/proc/self/mem", "/proc/self/mem cannot be read: "),
        ("made", "made is empty"),
    ],
)
def test_a_device_config_that_nobody_can_load_is_named(
    trainyard: Trainyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made").touch()
    document = yaml.safe_load((ROOT / "docs/examples/controller.yaml").read_text()) | {"device_config": file}
    (tmp_path / "controller.yaml").write_text(yaml.safe_dump(document))
    result = trainyard("check", "controller.yaml")
    assert result.exit_code == 2
    assert f"controller.yaml: device_config: {problem}" in result.stderr


def test_files_that_a_configuration_names_are_checked_too(trainyard: Trainyard, tmp_path: Path) -> None:
    document = yaml.safe_load((ROOT / "docs/examples/controller.yaml").read_text())
    (tmp_path / "tokens").write_text("no token")
    document |= {"tokens": str(tmp_path / "tokens"), "jwt": {"key": str(tmp_path / "key.pem"), "algorithm": "ES256"}}
    document |= {"pipeline": str(tmp_path), "policy": "tests.nowhere:policy"}
    path = tmp_path / "controller.yaml"
    path.write_text(yaml.safe_dump(document))
    result = trainyard("check", path)
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert [line.split(": ")[1] for line in lines] == ["tokens", "jwt", "pipeline", "pipeline"]
    assert all(line.startswith(f"{path}: ") for line in lines)
    assert "key.pem" in lines[1]
    # Only who allows it has the code of a policy imported.
    more = trainyard("check", path, "--allow-policy-import").stderr.splitlines()
    assert more[:4] == lines
    assert [line.split(": ")[1] for line in more[4:]] == ["policy"]
