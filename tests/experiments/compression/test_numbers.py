"""The numbers to reach, from small made-up measurements."""

import pytest

from experiments.compression.numbers import Numbers, finite
from experiments.compression.outcomes import (
    AtRate,
    FoldCurve,
    JobName,
    MethodAtRate,
    Part,
    RateCase,
    Scenario,
    ScenarioCase,
    Trained,
    UnderScenario,
    time_to,
)

STEPS = (1, 2, 3, 4)


def _at(method: str, share: float, step_s: float) -> MethodAtRate:
    return MethodAtRate(method, share, 100.0, 1.0, tuple(step_s * step for step in STEPS), (1.0,) * 4)


def _rate(rate_mbps: float, compute_s: float = 0.25, device: str = "GPU", ours: float = 0.9) -> AtRate:
    methods = (_at("AllReduce", 0.1, 10.0), _at("TopK-0.1", 0.2, 8.0), _at("fp16", 0.2, 5.0), _at("budget", ours, 1.0))
    return AtRate(RateCase(JobName("ResNet18", compute_s, device), rate_mbps, 4), methods)


def _trained(method: str, rate_mbps: float | None, *folds: tuple[int, ...]) -> Trained:
    return Trained("digits", method, rate_mbps, tuple(FoldCurve(STEPS, fold, 100) for fold in folds))


DENSE = _trained("AllReduce", None, (10, 50, 80, 90), (10, 50, 80, 92))
OURS = _trained("budget", 200.0, (10, 50, 80, 90), (10, 50, 80, 91))
TOP_K = _trained("TopK-0.1", None, (10, 50, 80, 80), (10, 50, 80, 80))
FP16 = _trained("fp16", None, (10, 50, 80, 90), (10, 50, 80, 92))


def test_a_share_is_that_of_the_worse_job_on_the_keys_device() -> None:
    measured = [_rate(200.0), _rate(200.0, 0.6, ours=0.8), _rate(200.0, device="CPU", ours=0.1), _rate(200.0, 0.1)]
    assert Numbers(measured, [], []).throughput_share(200.0) == 0.8
    assert Numbers(measured, [], []).throughput_share(500.0) is None


def test_overhead_is_over_plain_ddps_step() -> None:
    assert Numbers([_rate(10_000.0, ours=0.08)], [], []).overhead_10_gbps() == pytest.approx(0.25)


def test_differences_are_paired_by_fold() -> None:
    numbers = Numbers([], [], [DENSE, OURS])
    assert OURS.differences(DENSE) == (0.0, -1.0)
    assert numbers.accuracy_difference_points_worst() == pytest.approx(-0.5)


def test_time_to_accuracy_is_linear_between_tests() -> None:
    assert time_to(((1, 0.2), (3, 0.6)), (10.0, 20.0, 30.0), 0.5) == pytest.approx(25.0)
    assert time_to(((1, 0.2), (3, 0.6)), (10.0, 20.0, 30.0), 0.2) == 10.0
    assert time_to(((1, 0.2), (3, 0.6)), (10.0, 20.0, 30.0), 0.7) is None


def test_time_ratios_are_over_the_best_baseline() -> None:
    numbers = Numbers([_rate(200.0)], [], [DENSE, OURS, TOP_K, FP16])
    # Dense ends at 91 %, so 90.5 % is wanted: ours at its last step, after 4 s, fp16 near the end of its 20 s.
    assert numbers.time_to_accuracy("digits", "budget", 200.0) == pytest.approx(4.0)
    fp16_s = 15.0 + 5.0 * (90.5 - 80) / (91 - 80)
    assert numbers.time_ratios(200.0) == {"digits": pytest.approx(4.0 / fp16_s)}
    assert numbers.time_ratios(200.0, ("AllReduce", "TopK-0.1")) == {"digits": pytest.approx(4.0 / (2 * fp16_s))}


def test_ours_that_never_reaches_the_accuracy_takes_for_ever() -> None:
    late = _trained("budget", 200.0, (0, 0, 0, 50), (0, 0, 0, 50))
    assert Numbers([_rate(200.0)], [], [DENSE, late]).time_ratios(200.0) == {"digits": float("inf")}


def test_hindsight_chooses_among_those_that_are_accurate() -> None:
    part = Part(200e6, 0, {"budget": 0.9}, {"TopK-0.1": 0.99, "fp16": 0.6, "AllReduce": 0.5}, 0.7)
    case = ScenarioCase(JobName("ResNet18", 0.25, "GPU"), Scenario.FALLING)
    numbers = Numbers([], [UnderScenario(case, (part,), ())], [DENSE, TOP_K, FP16])
    assert numbers.eligible() == ("AllReduce", "fp16")
    assert numbers.scenario_share(Scenario.FALLING) == pytest.approx(1.5)
    assert numbers.scenario_share(Scenario.CONTENDED) is None
    assert numbers.budget_used() == 0.7


def test_keys_without_measurements_are_none() -> None:
    keys = Numbers([], [], []).keys()
    assert set(keys.values()) == {None}
    assert len(keys) == 12


def test_what_is_never_reached_is_null_in_json() -> None:
    assert finite({"never": float("inf"), "unknown": None, "share": 0.5}) == {
        "never": None,
        "unknown": None,
        "share": 0.5,
    }
