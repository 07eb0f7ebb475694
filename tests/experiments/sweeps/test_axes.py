from typing import Any

import pytest

from experiments.sweeps.axes import Axis, combinations, described, with_settings


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
def test_values_are_those_of_yaml(text: str, key: str, values: tuple[Any, ...]) -> None:
    assert Axis.parse(text) == Axis(key, values)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("reaction_delay_s", "expected KEY=VALUE"),
        ("=1", "expected KEY=VALUE"),
        ("a..b=1", "expected KEY=VALUE"),
        ("scale=", "scale: expected at least one value"),
        ("scale=1,2,1", "scale: expected every value once, 1 is there twice"),
        ("scale=[1", "not YAML values"),
        ("scale=1],[2", "not YAML values"),
        ("measure={a: 1, a: 2}", "not YAML values"),
        ("seed=1,2", "seed: expected --seeds instead"),
        ("policy=crux", "policy: expected --policy instead"),
    ],
)
def test_what_is_no_axis_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace("[", r"\[")):
        Axis.parse(text)


def test_settings_are_all_combinations_the_last_axis_fastest() -> None:
    axes = [Axis.parse("scale=1,2"), Axis.parse("compute_jitter=0,0.1")]
    assert [described(settings) for settings in combinations(axes)] == [
        "scale=1, compute_jitter=0",
        "scale=1, compute_jitter=0.1",
        "scale=2, compute_jitter=0",
        "scale=2, compute_jitter=0.1",
    ]
    assert list(combinations([])) == [{}]
    with pytest.raises(ValueError, match="scale: expected once"):
        list(combinations([*axes, axes[0]]))


def test_settings_take_the_place_of_keys_and_leave_the_document_alone() -> None:
    document = {"jobs": [{"name": "a"}, {"name": "b"}], "seed": 3}
    settings = {"jobs[1].name": "c", "measure.from_s": 2, "seed": 4}
    changed = {"jobs": [{"name": "a"}, {"name": "c"}], "seed": 4, "measure": {"from_s": 2}}
    assert with_settings(document, settings) == changed
    assert document == {"jobs": [{"name": "a"}, {"name": "b"}], "seed": 3}


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("jobs[2].name", r"there is no \[2\]"),
        ("jobs.name", "'name' would have"),
        ("seed[0]", r"no \[0\]"),
        ("seed.a", "'a' would"),
    ],
)
def test_a_place_that_is_not_there_is_named(key: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        with_settings({"jobs": [{}, {}], "seed": 1}, {key: 1})
