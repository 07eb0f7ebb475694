import pytest

from experiments.papers import robustness
from experiments.papers.robustness import (
    DISTURBANCES,
    MIXES,
    NONE,
    POLICIES,
    DisturbanceMeasured,
    Robustness,
    RobustnessCase,
    RunMeasured,
)
from tests.experiments.papers.combining import combine_all
from workloads.validation import find_problems

ECMP, CRUX = "ecmp", "crux"


def test_disturbances_are_valid_and_distinct_scenarios() -> None:
    scenarios = [RobustnessCase("fig21", 3, CRUX, disturbance).scenario for disturbance in DISTURBANCES]
    for scenario in scenarios:
        assert not find_problems(scenario.model_dump(mode="json", exclude_none=True))
    assert len({scenario.model_dump_json() for scenario in scenarios}) == len(DISTURBANCES)
    assert {scenario.seed for scenario in scenarios} == {3}


def test_cases_leave_out_ecmp_where_a_disturbance_cannot_affect_it() -> None:
    found = Robustness(seeds=2).cases()
    assert len(found) == len(set(found)) == 2 * len(MIXES) * (3 * len(DISTURBANCES) + 3)
    assert [run.seed for run in found] == sorted(run.seed for run in found)
    reached = {run.disturbance for run in found if run.policy == ECMP}
    assert reached == {"none", "jitter 2%", "jitter 10%"}


def test_disturbances_left_out_for_ecmp_change_nothing() -> None:
    """One of each kind, on a mix in which hashes collide."""
    shares = {
        disturbance: Robustness.measure(RobustnessCase("random on fewer-uplinks", 2, ECMP, disturbance)).share
        for disturbance in ("none", "all three 50%", "2 levels", "jitter 10%")
    }
    undisturbed, jitter = shares.pop("none"), shares.pop("jitter 10%")
    assert undisturbed < 0.95
    assert set(shares.values()) == {undisturbed}
    assert jitter != undisturbed


def test_shares_and_losses_follow_from_the_runs() -> None:
    undisturbed = {RobustnessCase(mix, seed, CRUX, NONE): 0.9 for mix in ("fig20", "fig21") for seed in (1, 2)}
    late = "delay 1 s"
    shares = {RobustnessCase("fig20", 1, ECMP, NONE): 0.4} | undisturbed
    shares |= {
        RobustnessCase("fig21", 1, CRUX, late): 0.6,
        RobustnessCase("fig20", 1, CRUX, late): 0.8,
        RobustnessCase("fig20", 2, CRUX, late): 0.7,
        RobustnessCase("fig22", 1, CRUX, late): 0.5,
    }
    evaluation = Robustness()
    runs = {case: RunMeasured(share, share / 2, int(share < 0.55)) for case, share in shares.items()}
    ecmp, crux, delayed = combine_all(evaluation, runs)
    assert (ecmp.policy, ecmp.mean_loss, crux.mean, crux.worst_loss) == (ECMP, 0.0, pytest.approx(0.9), 0.0)
    assert delayed == DisturbanceMeasured(
        disturbance=late,
        policy=CRUX,
        num_runs=4,
        mean=pytest.approx(0.65),
        worst=0.5,
        worst_mix="fig22",
        worst_seed=1,
        by_mix={"fig20": pytest.approx(0.75), "fig21": 0.6, "fig22": 0.5},
        # Of fig22 there is no run undisturbed.
        mean_loss=pytest.approx((0.3 + 0.1 + 0.2) / 3),
        worst_loss=pytest.approx(0.3),
        worst_speed=0.25,
        starved_jobs=1,
    )
    assert evaluation.json_object(delayed)["worst_mix"] == "fig22"
    shown, changes, worst_jobs = evaluation.findings([ecmp, crux, delayed]).tables
    assert shown.columns == ("Disturbance", *POLICIES)
    dash = "\N{EN DASH}"
    assert shown.rows == (("none", "40.0/40.0", "90.0/90.0", dash, dash), (late, dash, "65.0/50.0", dash, dash))
    assert worst_jobs.rows[1][2] == "4.00/1"
    assert changes.rows[1][2] == "\N{MINUS SIGN}20.0/\N{MINUS SIGN}30.0"


def test_only_random_mixes_depend_on_the_seed() -> None:
    jobs = {mix: [RobustnessCase(mix, seed, CRUX, NONE).scenario.jobs for seed in (1, 2)] for mix in MIXES}
    assert {mix for mix, (one, other) in jobs.items() if one != other} == set(robustness.RANDOM_MIXES)
