"""The budget controller on a simulated job and link: what it gains, and what it uses."""

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hostlib.compression.agreement import Agreed, agreed
from hostlib.compression.choice import Choice, Collective, Precision
from hostlib.compression.control.budget import Budget, BudgetSettings
from hostlib.compression.control.cost import Bucket, MeasuredCosts
from hostlib.compression.control.explanation import Outcome, RateSource
from tests.hostlib.compression.control.devices import CPU, FOLLOWS_IN, GPU
from tests.hostlib.compression.control.plant import TOLERATED_LOSS, Plant, fastest, run


def dense_share(plant: Plant) -> float:
    step_s = replace(plant).step([bucket.dense_choice for bucket in plant.buckets])[1].step_s
    return plant.compute_s / step_s


@pytest.mark.parametrize("compute_s", [0.1, 0.25, 0.3, 0.6])
@pytest.mark.parametrize(("mbps", "share"), [(200, 0.90), (500, 0.95), (800, 0.97)])
def test_resnet18_hardly_waits_for_slow_links(mbps: float, share: float, compute_s: float) -> None:
    """The shares of issue 21's table, from the first step on; dense reaches a fifth to two thirds."""
    plant = Plant(mbps * 1e6, compute_s)
    dense = dense_share(plant)
    ran = run(plant, 100)
    assert ran.share(plant) >= share > dense
    assert ran.used(plant, since=5) >= 0.8
    assert ran.decisions[-1].explanation.outcome == Outcome.COMPRESSED


@pytest.mark.parametrize(("mbps", "share"), [(200, 0.90), (500, 0.95), (800, 0.97)])
@pytest.mark.parametrize("compute_s", [0.25, 0.6])
def test_codecs_of_a_gpu_leave_the_budget_to_be_used(mbps: float, share: float, compute_s: float) -> None:
    """Encoding takes of the tolerance, so the last bucket gets less of it; the others still fill the link."""
    plant = Plant(mbps * 1e6, compute_s, costs=GPU)
    ran = run(plant, 60)
    assert ran.share(plant) >= share
    assert ran.used(plant, since=5) >= 0.8


@pytest.mark.parametrize(("mbps", "share"), [(200, 0.90), (500, 0.95), (800, 0.97)])
@pytest.mark.parametrize("compute_s", [0.25, 0.6])
def test_the_ratio_that_keeps_accuracy_keeps_the_shares(mbps: float, share: float, compute_s: float) -> None:
    plant = Plant(mbps * 1e6, compute_s)
    ran = run(plant, 60, settings=BudgetSettings())
    assert ran.share(plant) >= share
    assert min(choice.ratio for choice in ran.decisions[-1].choices) >= BudgetSettings().lowest_ratio


@pytest.mark.parametrize("mbps", [200, 800, 2000, 10_000])
@pytest.mark.parametrize("compute_s", [0.1, 0.25, 0.6])
def test_codecs_of_a_cpu_cost_no_more_than_in_the_fastest_fixed_choice(mbps: float, compute_s: float) -> None:
    plant = Plant(mbps * 1e6, compute_s, costs=CPU)
    least_s = fastest(plant)
    assert run(plant, 20).steps[-1].step_s <= least_s + compute_s * TOLERATED_LOSS + 1e-6


@pytest.mark.parametrize("compute_s", [0.25, 0.3, 0.6])
def test_at_10_gbps_the_ratio_is_1(compute_s: float) -> None:
    plant = Plant(10e9, compute_s)
    dense_s = compute_s / dense_share(plant)
    ran = run(plant, 30)
    assert ran.decisions[-1].explanation.ratio == 1
    assert ran.steps[-1].step_s <= dense_s


def test_dense_goes_as_plain_ddp_where_it_fits() -> None:
    plant = Plant(40e9, 0.25, hop_s=5e-6)
    decision = run(plant, 20).decisions[-1]
    assert set(decision.choices) == {Choice(1, Precision.FP32, Collective.ALL_REDUCE)}
    assert decision.explanation.outcome == Outcome.DENSE


def shares_of_fastest(plant: Plant, mbps: list[float], each: int) -> list[list[float]]:
    """Per rate, each step's throughput over that of the best fixed choice in hindsight."""
    least_s: list[float] = []

    def before(step: int, plant: Plant) -> None:
        if step % each == 0:
            plant.rate_bps = mbps[step // each] * 1e6
            least_s.append(fastest(plant))

    ran = run(plant, each * len(mbps), before=before)
    return [
        [least_s[number] / one.step_s for one in ran.steps[number * each : (number + 1) * each]]
        for number in range(len(mbps))
    ]


@pytest.mark.parametrize("compute_s", [0.1, 0.25, 0.6])
def test_scenario_2_bandwidth_falls_in_steps(compute_s: float) -> None:
    """2000 to 200 Mbit/s in steps of 200, as the paper's Figure 7."""
    for shares in shares_of_fastest(Plant(0.0, compute_s), [float(mbps) for mbps in range(2000, 0, -200)], 12):
        assert min(shares[FOLLOWS_IN:]) >= 0.95


@given(
    st.lists(st.floats(50, 10_000), min_size=2, max_size=4),
    st.lists(st.tuples(st.integers(1, 20_000_000), st.floats(0, 1)), min_size=1, max_size=5),
    st.sampled_from([1, 2, 3, 4, 8, 16]),
    st.floats(0.05, 1),
    st.floats(1e-6, 1e-4),
)
@example([50.0, 50.0], [(1, 0.0), (10_454, 1.0)], 8, 0.0625, 6.103515625e-05)
@example([50.0, 50.0], [*[(1, 0.0)] * 4, (187_808, 1.0)], 16, 0.5, 7.904396611443376e-05)  # most are hops alone
@example([2021.0, 2021.0], [(257, 0.05), (7233, 1.0), *[(7253, 1.0)] * 3], 16, 0.05, 1e-4)  # all are mostly hops
@settings(max_examples=60, deadline=None)
def test_it_follows_any_rates(
    mbps: list[float], buckets: list[tuple[int, float]], world_size: int, compute_s: float, hop_s: float
) -> None:
    """Up and down, by any factor, for buckets of any size and one alone: as fast as any fixed choice, but for 3 %.

    2 % are tolerated.
    """
    elements, ready = zip(*sorted(buckets, key=lambda bucket: bucket[1]), strict=True)
    plant = Plant(0.0, compute_s, elements, ready, world_size, hop_s)
    for shares in shares_of_fastest(plant, mbps, 10):
        assert min(shares[FOLLOWS_IN:]) >= 0.97


@pytest.mark.parametrize("world_size", [1, 2, 64, 1000])
def test_it_fills_the_budget_at_any_number_of_ranks(world_size: int) -> None:
    plant = Plant(500e6, 0.6, world_size=world_size, hop_s=5e-6)
    ran = run(plant, 60)
    assert ran.share(plant, since=20) >= 0.96
    if world_size == 1:
        assert set(ran.decisions[-1].choices) == {Choice(1, Precision.FP32, Collective.ALL_REDUCE)}
    else:
        assert ran.used(plant, since=20) >= 0.8


@pytest.mark.parametrize("period_s", [3.0, 7.0, 20.0])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_scenario_3_competing_streams_come_and_go(period_s: float, noise: float) -> None:
    """2 Gbit/s alone, 500 Mbit/s beside three streams. Two steps of each of their arrivals are lost; no others."""
    plant = Plant(lambda time_s: 2e9 if time_s // period_s % 2 else 0.5e9, noise=noise)
    ran = run(plant, 200)
    steps_s = sorted(one.step_s for one in ran.steps)
    arrivals = plant.time_s / (2 * period_s)
    assert steps_s[int(len(steps_s) - 3 * arrivals - 2)] <= 1.08 * plant.compute_s
    if period_s >= 7:
        assert ran.share(plant) >= 0.9
        assert ran.used(plant) >= 0.75


@pytest.mark.parametrize(("noise", "share"), [(0.05, 0.97), (0.1, 0.96), (0.2, 0.95)])
@pytest.mark.parametrize("mbps", [200, 800])
def test_noise_costs_budget_and_not_time(mbps: float, noise: float, share: float) -> None:
    plant = Plant(mbps * 1e6, noise=noise)
    ran = run(plant, 200)
    assert ran.share(plant, since=5) >= share
    assert ran.used(plant, since=5) >= 0.75  # int4 takes half of int8, and there is little between


@pytest.mark.parametrize("round_trip_error", [0, 0.3, 3, 100])
@pytest.mark.parametrize("mbps", [200, 2000])
def test_a_wrong_round_trip_costs_little(mbps: float, round_trip_error: float) -> None:
    plant = Plant(mbps * 1e6, round_trip_error=round_trip_error)
    ran = run(plant, 100)
    assert ran.share(plant, since=10) >= 0.96
    assert ran.used(plant, since=10) >= 0.8


def test_the_estimate_does_not_stay_low_when_little_was_sent() -> None:
    """Hops of 2 ms that nobody knows of make the first, small transmissions look slow; it climbs all the same."""
    plant = Plant(800e6, 0.6, hop_s=2e-3, round_trip_error=0, elements=(30_000_000, 1_000), ready=(0.1, 0.9))
    ran = run(plant, 60)
    assert ran.used(plant, since=30) >= 0.8


def test_probing_finds_the_rate_behind_the_latency() -> None:
    """63 hops of 0.25 ms: the first transmissions are hops and little else, and dense would fit several times."""
    plant = Plant(2e9, 0.6, (100_000, 3_000_000), (0.1, 0.2), world_size=64, hop_s=2.5e-4)
    ran = run(plant, 60)
    assert RateSource.PROBING in {decision.explanation.rate_source for decision in ran.decisions}
    assert ran.decisions[-1].explanation.ratio == 1
    assert ran.share(plant, since=40) >= 0.97


@pytest.mark.parametrize("mbps", [200, 500, 800])
@pytest.mark.parametrize("compute_s", [0.25, 0.6])
def test_what_the_last_bucket_leaves_out_travels_during_the_next_forward_pass(mbps: float, compute_s: float) -> None:
    plant = Plant(mbps * 1e6, compute_s, costs=GPU, has_remainder=True)
    ran, without = run(plant, 60), run(replace(plant, has_remainder=False, time_s=0), 60)
    last = ran.decisions[-1]
    assert last.remainder is not None
    assert last.remainder.ratio > last.choices[-1].ratio
    assert last.explanation.ratio > without.decisions[-1].explanation.ratio
    assert last.explanation.remainder_bytes > 0
    assert str(last.explanation).endswith("MB of what the last bucket left out.")
    # It takes none of the step's time but for its encoding, which the tolerance covers.
    assert ran.steps[-1].step_s <= without.steps[-1].step_s + TOLERATED_LOSS * compute_s
    # The link is busy all the time.
    assert sum(one.busy_s for one in ran.steps[-10:]) >= 0.8 * sum(one.step_s for one in ran.steps[-10:])


def test_there_is_no_remainder_of_a_bucket_that_is_sent_whole() -> None:
    for mbps in (10_000, 40_000):
        for decision in run(Plant(mbps * 1e6, 0.6, hop_s=5e-6, has_remainder=True), 20).decisions[5:]:
            assert decision.choices[-1].ratio == 1
            assert decision.remainder is None


def test_the_same_numbers_give_the_same_decision() -> None:
    plant = Plant(500e6)
    proposal, _ = plant.step(Budget(plant.buckets, GPU).start().choices)
    decisions = []
    for _ in range(2):
        control = Budget(plant.buckets, GPU)
        first = control.start()
        decisions.append(control.decide(first.state, first.choices, agreed([proposal] * 8)))
    assert decisions[0] == decisions[1]


def test_half_precision_gradients_stay_in_their_precision() -> None:
    control = Budget([Bucket(1_000_000, 8, Precision.BF16)], MeasuredCosts())
    first = control.start()
    decision = control.decide(first.state, first.choices, Agreed((1e-4,), (0.1,), (0.0,), 0.3, 0.2, 0.3))
    assert decision.choices == (Choice(1, Precision.BF16, Collective.ALL_REDUCE),)


def test_a_decision_says_why() -> None:
    explanation = run(Plant(200e6), 20).decisions[-1].explanation
    assert str(explanation) == (
        "Dense does not fit: 80.8 MB dense, 4.03 MB fit, at 200 Mbit/s (measured) until 172.7 ms after the backward "
        f"pass began (0 ms of slack); {explanation.sent_bytes / 1e6:.3g} MB are sent, ratio {explanation.ratio:.4g}, "
        f"and end at {explanation.finish_s * 1e3:.4g} ms."
    )
    assert explanation.sent_bytes <= explanation.fitting_bytes
    assert explanation.finish_s <= explanation.deadline_s
