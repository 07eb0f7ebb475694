"""``trainyard evaluate islands``."""

import json

import pytest

from experiments.sweeps import processes
from tests.trainyard.cli.conftest import Trainyard, in_this_process


@pytest.mark.slow
def test_islands_has_a_line_for_every_policy_with_every_tenant(
    trainyard: Trainyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "on_processes", in_this_process)
    options = ("--islands", "16", "--devices", "32", "--seeds", "1", "--policy", "crux", "--policy", "echelonflow")
    ended = trainyard("evaluate", "islands", *options, "--json")
    assert ended.exit_code == 0
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [of["policy"] for of in found] == ["crux", "echelonflow"]
    for of in found:
        assert (of["islands"], of["devices"], of["seeds"]) == (16, 32, [1])
        assert [tenant["name"] for tenant in of["tenants"]] == ["pipeline 0", "data parallel 1"]
        assert all(0 <= tenant["share"] < 1.01 for tenant in of["tenants"])
        assert 0 < of["utilisation"] < 1.01 * of["ideal_utilisation"]
