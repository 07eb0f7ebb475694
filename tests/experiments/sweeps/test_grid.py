from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from experiments.scenarios.backend import Backend
from experiments.sweeps.grid import Axis, build_grid, combinations, format_settings, read_files, with_settings
from policies.enforcement import Enforcement
from tests.experiments.sweeps.builders import write
from workloads.loading import ScenarioError

ON = (Backend.SIMULATOR, Enforcement.LEVELS)


def test_a_grid_has_every_run_once_seed_by_seed(tmp_path: Path) -> None:
    files = read_files([write(tmp_path, "one"), write(tmp_path, "two", policy="ecmp"), write(tmp_path, "one")])
    settings = list(combinations([Axis.parse("reaction_delay_s=0,1")]))
    grid = build_grid(files, settings, (), range(1, 4), *ON)
    assert len(grid) == len({case.description.key for case in grid}) == 2 * 2 * 3
    assert Counter(case.description.policy for case in grid) == {"crux": 6, "ecmp": 6}
    assert [case.description.seed for case in grid] == [1] * 4 + [2] * 4 + [3] * 4
    for case in grid:
        assert case.scenario.seed == case.description.seed
        assert case.scenario.reaction_delay_s == case.description.settings["reaction_delay_s"]
        assert case.scenario.name == case.description.scenario
    asked = build_grid(files, [{}], ("fifo",), [1], *ON)
    assert [case.description.policy for case in asked] == ["fifo"] * 2


def test_all_problems_are_reported_with_file_and_settings(tmp_path: Path) -> None:
    files = read_files([write(tmp_path, "one"), write(tmp_path, "two")])
    with pytest.raises(ScenarioError) as refused:
        build_grid(files, [{"reaction_delay_s": -1}, {"colour": "red"}, {"jobs[2].name": "c"}, {}], (), [1], *ON)
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


def test_unsupported_scenarios_are_refused(tmp_path: Path) -> None:
    files = read_files([write(tmp_path)])
    with pytest.raises(ScenarioError, match=r"small.yaml: --enforcement ideal: only the simulator"):
        build_grid(files, [{}], (), [1], Backend.EMULATOR, Enforcement.IDEAL)
    assert build_grid(files, [{}], (), [1], Backend.SIMULATOR, Enforcement.IDEAL)


def test_duplicate_names_and_invalid_files_are_reported_together(tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    with pytest.raises(ScenarioError) as refused:
        read_files([write(tmp_path), write(folder), tmp_path / "none.yaml"])
    twice, unreadable = refused.value.messages
    assert twice == f"{folder}/small.yaml: name: expected one of its own, 'small' is {tmp_path}/small.yaml"
    assert "none.yaml: cannot be read" in unreadable


@pytest.mark.parametrize(
    ("text", "key", "values"),
    [
        ("reaction_delay_s=0,1,10", "reaction_delay_s", (0, 1, 10)),
        ("scale=1e3", "scale", (1000.0,)),
        ("steering=rule,source_port", "steering", ("rule", "source_port")),
        (
            "measure={from_s: 0, to_s: 1},{from_s: 1, to_s: 2}",
            "measure",
            ({"from_s": 0, "to_s": 1}, {"from_s": 1, "to_s": 2}),
        ),
        ("jobs[1].workload.bytes=1e9,2e9", "jobs[1].workload.bytes", (1e9, 2e9)),
    ],
)
def test_axis_values_are_yaml(text: str, key: str, values: tuple[Any, ...]) -> None:
    assert Axis.parse(text) == Axis(key, values)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("reaction_delay_s", "expected KEY=VALUE"),
        ("=1", "expected KEY=VALUE"),
        ("a..b=1", "expected KEY=VALUE"),
        ("scale=", "scale: expected at least one value"),
        ("scale=1,2,1", "scale: expected every value once, got 1 twice"),
        ("scale=[1", "not YAML values"),
        ("scale=1],[2", "not YAML values"),
        ("measure={a: 1, a: 2}", "not YAML values"),
        ("seed=1,2", "seed: expected --seeds instead"),
        ("policy=crux", "policy: expected --policy instead"),
    ],
)
def test_invalid_axes_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace("[", r"\[")):
        Axis.parse(text)


def test_combinations_change_the_last_axis_fastest() -> None:
    axes = [Axis.parse("scale=1,2"), Axis.parse("compute_jitter=0,0.1")]
    assert [format_settings(settings) for settings in combinations(axes)] == [
        "scale=1, compute_jitter=0",
        "scale=1, compute_jitter=0.1",
        "scale=2, compute_jitter=0",
        "scale=2, compute_jitter=0.1",
    ]
    assert list(combinations([])) == [{}]
    with pytest.raises(ValueError, match="scale: expected once"):
        list(combinations([*axes, axes[0]]))


def test_settings_replace_keys_in_a_copy() -> None:
    document = {"jobs": [{"name": "a"}, {"name": "b"}], "seed": 3}
    settings = {"jobs[1].name": "c", "measure.from_s": 2, "seed": 4}
    changed = {"jobs": [{"name": "a"}, {"name": "c"}], "seed": 4, "measure": {"from_s": 2}}
    assert with_settings(document, settings) == changed
    assert document == {"jobs": [{"name": "a"}, {"name": "b"}], "seed": 3}


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("jobs[2].name", r"there is no \[2\]"),
        ("jobs.name", "'name' needs a mapping"),
        ("seed[0]", r"no \[0\]"),
        ("seed.a", "'a' needs"),
    ],
)
def test_a_missing_place_is_named(key: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        with_settings({"jobs": [{}, {}], "seed": 1}, {key: 1})
