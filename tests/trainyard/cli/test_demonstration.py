from itertools import product
from pathlib import Path

import pytest

from tests.trainyard.cli.conftest import Trainyard
from trainyard.cli.demonstration import FAILURE_SCENARIOS, SCENARIOS
from workloads.scenario import Scenario

Ran = list[tuple[Scenario, str]]


def test_the_demo_runs_every_mix_without_with_levels_and_with_paths(
    trainyard: Trainyard, ran: Ran, tmp_path: Path
) -> None:
    result = trainyard("demo", "--out", tmp_path / "pictures")
    assert result.exit_code == 0
    policies = ["ecmp", "crux-pa", "crux"]
    assert [(scenario.name, policy) for scenario, policy in ran] == list(product(SCENARIOS, policies))
    assert "fig19-n4" in SCENARIOS
    overview = result.stdout.rpartition("GPU utilisation")[2]
    page = (tmp_path / "pictures" / "demo.html").read_text(encoding="utf-8")
    for name in SCENARIOS:
        row = next(line for line in overview.splitlines() if name in line)
        assert row.replace("\N{NO-BREAK SPACE}", " ").split()[1:7] == ["50.0", "%", "75.0", "%", "75.0", "%"]
        assert f"Scenario {name}" in page
    assert str(tmp_path / "pictures" / "demo.html") in result.stderr


def test_pictures_go_to_out_where_nothing_else_is_said(
    trainyard: Trainyard, ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trainyard("demo")
    assert (tmp_path / "out" / "demo.html").is_file()
    assert len(ran) == 3 * len(SCENARIOS)


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
