from collections import Counter
from pathlib import Path

import pytest

from experiments.scenarios.backend import Backend
from experiments.sweeps.axes import Axis, combinations
from experiments.sweeps.grid import cases, read_files
from policies.enforcement import Enforcement
from tests.experiments.sweeps.builders import write
from workloads.loading import ScenarioError

ON = (Backend.SIMULATOR, Enforcement.LEVELS)


def test_a_grid_has_every_run_once_and_every_cell_before_the_next_seed(tmp_path: Path) -> None:
    files = read_files([write(tmp_path, "one"), write(tmp_path, "two", policy="ecmp"), write(tmp_path, "one")])
    settings = list(combinations([Axis.parse("reaction_delay_s=0,1")]))
    grid = cases(files, settings, (), range(1, 4), *ON)
    assert len(grid) == len({case.asked.key for case in grid}) == 2 * 2 * 3
    assert Counter(case.asked.policy for case in grid) == {"crux": 6, "ecmp": 6}
    assert [case.asked.seed for case in grid] == [1] * 4 + [2] * 4 + [3] * 4
    for case in grid:
        assert case.scenario.seed == case.asked.seed
        assert case.scenario.reaction_delay_s == case.asked.settings["reaction_delay_s"]
        assert case.scenario.name == case.asked.scenario
    asked = cases(files, [{}], ("fifo",), [1], *ON)
    assert [case.asked.policy for case in asked] == ["fifo"] * 2


def test_all_that_is_wrong_is_told_with_its_file_and_settings(tmp_path: Path) -> None:
    files = read_files([write(tmp_path, "one"), write(tmp_path, "two")])
    with pytest.raises(ScenarioError) as refused:
        cases(files, [{"reaction_delay_s": -1}, {"colour": "red"}, {"jobs[2].name": "c"}, {}], (), [1], *ON)
    assert len(refused.value.messages) == 6
    beginnings = [
        f"{tmp_path}/{name}.yaml with {problem}"
        for name in ("one", "two")
        for problem in (
            "reaction_delay_s=-1: reaction_delay_s: expected",
            "colour=red: colour: unknown key",
            "jobs[2].name=c: jobs[2].name: there is no [2]",
        )
    ]
    for message, beginning in zip(refused.value.messages, beginnings, strict=True):
        assert message.startswith(beginning)


def test_what_the_backend_cannot_run_is_refused(tmp_path: Path) -> None:
    files = read_files([write(tmp_path)])
    with pytest.raises(ScenarioError, match=r"small.yaml: --enforcement ideal: only the simulator"):
        cases(files, [{}], (), [1], Backend.EMULATOR, Enforcement.IDEAL)
    assert cases(files, [{}], (), [1], Backend.SIMULATOR, Enforcement.IDEAL)


def test_scenarios_of_one_name_and_files_that_are_wrong_are_refused_together(tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    with pytest.raises(ScenarioError) as refused:
        read_files([write(tmp_path), write(folder), tmp_path / "none.yaml"])
    twice, unreadable = refused.value.messages
    assert twice == f"{folder}/small.yaml: name: expected one of its own, 'small' is {tmp_path}/small.yaml"
    assert "none.yaml: cannot be read" in unreadable
