from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policies.registry import find_policy, policy_names
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
    for key in ("colour", "policy", "jobs[0].hosts[1]", "jobs[1].workload.bytes"):
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
