import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.trainyard.cli.conftest import Trainyard

pytestmark = pytest.mark.slow

Write = Callable[[object], Path]


@pytest.fixture
def short(document: dict[str, Any]) -> dict[str, Any]:
    """Two jobs whose transfers share the cable between the switches, at the same time."""
    for job in document["jobs"]:
        job["workload"] = job["workload"] | {"compute_s": 0.1, "bytes": 5e8}
    return document


def iteration_times_s(trainyard: Trainyard, *arguments: str | Path) -> list[float]:
    result = trainyard("run", *arguments, "--on", "emulator", "--policy", "ecmp", "--json")
    assert result.exit_code == 0, result.stderr
    return [job["iteration_time_s"] for job in json.loads(result.stdout)["jobs"]]


def test_hosts_have_the_congestion_control_of_the_scenario_or_of_the_option(
    trainyard: Trainyard, short: dict[str, Any], write: Write
) -> None:
    fixed = iteration_times_s(trainyard, write(short))
    by_option = iteration_times_s(trainyard, write(short), "--congestion-control", "dctcp")
    chosen = short | {"congestion_control": {"name": "dctcp"}}
    assert iteration_times_s(trainyard, write(chosen)) == by_option != fixed
    assert iteration_times_s(trainyard, write(chosen), "--congestion-control", "fixed") == fixed
    slow = short | {"congestion_control": {"name": "dctcp", "parameters": {"initial_window": 1}}}
    assert iteration_times_s(trainyard, write(slow)) not in (by_option, fixed)


@pytest.mark.parametrize("backend", ["simulator", "namespaces", "mininet"])
def test_other_back_ends_refuse_a_congestion_control(
    trainyard: Trainyard, document: dict[str, Any], write: Write, backend: str
) -> None:
    plain, chosen = document, document | {"congestion_control": {"name": "dctcp"}}
    reason = "only the emulator has hosts with one; expected --on emulator"
    by_option = trainyard("run", write(plain), "--on", backend, "--congestion-control", "dctcp")
    assert (by_option.exit_code, by_option.stderr) == (2, f"--congestion-control: {reason}\n")
    by_file = trainyard("run", write(chosen), "--on", backend)
    assert by_file.exit_code == 2
    assert f"congestion_control: {reason}" in by_file.stderr


@pytest.mark.parametrize(
    ("choice", "problem"),
    [
        ({"name": "cubic"}, "unknown congestion control 'cubic': expected one of fixed, dctcp, reno, swift"),
        ({"name": "module:control"}, "'module:control' names code to import"),
        ({"name": "reno", "parameters": {"colour": 1}}, "congestion control 'reno' has no parameter 'colour'"),
    ],
)
def test_what_is_wrong_with_a_congestion_control_is_named(
    trainyard: Trainyard, document: dict[str, Any], write: Write, choice: dict[str, Any], problem: str
) -> None:
    result = trainyard("run", write(document | {"congestion_control": choice}), "--on", "emulator")
    assert result.exit_code == 2
    assert f"congestion_control: {problem}" in result.stderr


def test_an_unknown_name_of_the_option_is_not_laid_to_the_file(
    trainyard: Trainyard, document: dict[str, Any], write: Write
) -> None:
    result = trainyard("run", write(document), "--on", "emulator", "--congestion-control", "cubic")
    assert result.exit_code == 2
    assert result.stderr.startswith("--congestion-control: unknown congestion control 'cubic': expected one of fixed,")


def test_an_empty_name_is_refused(trainyard: Trainyard, document: dict[str, Any], write: Write) -> None:
    result = trainyard("run", write(document), "--on", "emulator", "--congestion-control", "")
    assert (result.exit_code, result.stderr) == (2, "--congestion-control: expected a name, got ''\n")
