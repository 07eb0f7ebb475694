from pathlib import Path

import pytest

from controller.policy.policy_name import PolicyName
from tests.cli.conftest import Trainyard
from workloads.scenario import Scenario

Ran = list[tuple[Scenario, PolicyName]]


def test_the_demo_compares_fig_19_without_and_with_scheduling(trainyard: Trainyard, ran: Ran, tmp_path: Path) -> None:
    result = trainyard("demo", "--out", tmp_path / "pictures")
    assert result.exit_code == 0
    assert [(scenario.name, policy) for scenario, policy in ran] == [
        ("fig19-n4", PolicyName.ECMP),
        ("fig19-n4", PolicyName.CRUX),
    ]
    assert "50.0" in result.stdout
    assert "75.0" in result.stdout
    page = tmp_path / "pictures" / "demo.html"
    assert str(page) in result.stderr
    assert "fig19-n4" in page.read_text(encoding="utf-8")


def test_pictures_go_to_out_where_nothing_else_is_said(
    trainyard: Trainyard, ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trainyard("demo")
    assert (tmp_path / "out" / "demo.html").is_file()
    assert len(ran) == 2
