"""What the runs of the evaluation come to: means, ratios, JSON and tables."""

import json
from collections.abc import Sequence

import pytest

from experiments.papers.echelon import Echelon, GapsMeasured, MixCase, MixesMeasured, SmallCase
from experiments.papers.echelon_mixes import Kind
from experiments.papers.echelon_runs import CONTENDERS, RunMeasured
from experiments.papers.open_loop_policies import random_cases, tardiness_gap
from policies.enforcement import Enforcement

EXCESS_S = {
    "fair": 4.0,
    "varys, groups": 2.0,
    "sincronia, groups": 1.0,
    "varys, stages": 0.5,
    "sincronia, stages": 0.0,
    "echelonflow": 1.0,
}
"""Of seed 1; seed 2 has twice as much."""


def mixes(kind: Kind = Kind.GPIPE, times: float = 1.0) -> MixesMeasured:
    def run(name: str, seed: int) -> RunMeasured:
        return RunMeasured(1.0 + EXCESS_S[name], 1.0, 5.0, EXCESS_S[name] * seed * times, 0.5, 0)

    results = {
        MixCase(kind, 0.8, seed, Enforcement.IDEAL): tuple(run(contender.name, seed) for contender in CONTENDERS)
        for seed in (1, 2)
    }
    measured = Echelon().combine(list(results), results)
    assert isinstance(measured, MixesMeasured)
    return measured


def gaps_measured(gaps: Sequence[dict[str, float]]) -> GapsMeasured:
    cases = random_cases(1, len(gaps))
    results = {SmallCase(number, case): of for number, (case, of) in enumerate(zip(cases, gaps, strict=True))}
    measured = Echelon().combine(list(results), results)
    assert isinstance(measured, GapsMeasured)
    return measured


def test_ratios_are_of_means_over_seeds() -> None:
    found = json.loads(json.dumps(Echelon().json_object(mixes())))
    assert (found["case"], found["load"], found["seeds"]) == ("gpipe", 0.8, [1, 2])
    by_name = {one["name"]: one for one in found["contenders"]}
    assert list(by_name) == list(EXCESS_S)
    assert by_name["fair"]["excess_tardiness_s"] == 6.0
    assert by_name["fair"]["excess_tardiness_s_by_seed"] == [4.0, 8.0]
    assert found["excess_tardiness_over"] == {
        "varys, groups": 0.5,
        "sincronia, groups": 1.0,
        "varys, stages": 2.0,
        "sincronia, stages": None,
    }
    assert found["iteration_time_over"]["varys, groups"] == pytest.approx(2 / 3)


def test_all_kinds_of_a_load_are_summed() -> None:
    page = Echelon().findings([mixes(), mixes(Kind.FSDP, times=3.0)])
    _, excess, iteration = page.tables
    assert [row[0] for row in excess.rows] == ["gpipe at 0.8", "fsdp at 0.8", "all at 0.8"]
    assert excess.rows[-1][1:] == ("0.500", "1.000", "2.000", "\N{EN DASH}")
    assert iteration.rows[-1][1] == "0.667"
    assert [chart.title for chart in page.charts] == [
        "gpipe at 0.8: excess tardiness",
        "fsdp at 0.8: excess tardiness",
    ]
    assert any("rates of its own paper" in words for words in page.assumptions)


def test_gaps_have_mean_percentile_and_largest() -> None:
    gaps = gaps_measured([{"a": number / 10} for number in range(11)])
    assert gaps == GapsMeasured({"a": tuple(number / 10 for number in range(11))})
    (found,) = json.loads(json.dumps(Echelon().json_object(gaps)))["policies"]
    assert found == {"policy": "a", "mean_gap": 0.5, "p90_gap": 0.9, "largest_gap": 1.0}
    (table,) = Echelon().findings([gaps]).tables
    assert "11 small cases" in table.title


def test_echelonflow_is_near_the_optimum() -> None:
    gaps = gaps_measured(list(map(tardiness_gap, random_cases(seed=2, num_cases=4)))).gaps
    assert min(gap for of_policy in gaps.values() for gap in of_policy) >= -1e-6
    assert sum(gaps["echelonflow"]) / 4 <= 0.05
    assert sum(gaps["echelonflow"]) < sum(gaps["varys"])
