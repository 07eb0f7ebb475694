"""The budget controller where clocks jump, proposals are missing and settings are wrong: nothing misleads it."""

from dataclasses import replace
from typing import Any

import pytest

from hostlib.compression.agreement import Agreed, Proposal
from hostlib.compression.choice import Choice, Collective, Precision
from hostlib.compression.control.budget import Budget, BudgetSettings
from hostlib.compression.control.cost import Bucket, MeasuredCosts
from hostlib.compression.control.explanation import Outcome
from tests.hostlib.compression.control.plant import FREELY, Plant, run


def test_a_clock_that_jumps_changes_one_step_at_most() -> None:
    """An hour in every number of one step's proposal: no rate can be that low, but the next two samples say so."""

    def jumps(step: int, proposal: Proposal) -> Proposal:
        hour = tuple(3600.0 for _ in proposal.ready_s)
        if step != 20:
            return proposal
        return replace(proposal, network_s=hour, ready_s=hour, compute_s=3600.0, backward_s=3600.0, step_s=3600.0)

    plant = Plant(200e6)
    ran = run(plant, 40, heard=jumps)
    assert ran.share(plant) >= 0.97
    assert ran.decisions[-1].explanation.ratio == pytest.approx(ran.decisions[19].explanation.ratio, rel=0.2)


def test_computation_that_seems_to_take_an_hour_changes_nothing() -> None:
    def jumps(step: int, proposal: Proposal) -> Proposal:
        return replace(proposal, compute_s=3600.0, backward_s=3600.0) if step == 20 else proposal

    plant = Plant(200e6)
    assert max(one.step_s for one in run(plant, 40, heard=jumps).steps) <= 1.03 * plant.compute_s


@pytest.mark.parametrize("network_s", [0.0, 1e-12])
def test_a_network_time_that_cannot_be_is_no_sample(network_s: float) -> None:
    def too_fast(step: int, proposal: Proposal) -> Proposal:
        return replace(proposal, network_s=(network_s,) * 3) if step % 7 == 3 else proposal

    plant = Plant(200e6)
    assert run(plant, 60, heard=too_fast).share(plant, since=5) >= 0.97


def test_missing_proposals_change_nothing_and_are_counted() -> None:
    plant = Plant(200e6)
    ran = run(plant, 40, heard=lambda step, proposal: None if 10 <= step < 20 else proposal)
    assert ran.decisions[25].state.ignored == 10
    assert ran.decisions[20].choices == ran.decisions[12].choices
    assert ran.decisions[20].explanation.outcome == Outcome.UNCHANGED
    assert ran.share(plant, since=5) >= 0.97


def test_proposals_of_other_buckets_are_ignored() -> None:
    control = Budget([Bucket(1000, 8)] * 2, MeasuredCosts())
    first = control.start()
    decision = control.decide(first.state, first.choices, Agreed((1.0,), (1.0,), (0.0,), 1.0, 1.0, 1.0))
    assert (decision.choices, decision.state.ignored) == (first.choices, 1)


def test_a_job_without_buckets_has_nothing_to_decide() -> None:
    control = Budget([], MeasuredCosts())
    assert control.start().choices == ()
    assert control.decide(control.start().state, (), Agreed((), (), (), 1.0, 1.0, 1.0)).choices == ()


def test_numbers_with_a_remainder_that_did_not_travel_are_ignored() -> None:
    control = Budget([Bucket(1000, 8), Bucket(1000, 8, has_remainder=True)], MeasuredCosts())
    first = control.start()
    measured = Agreed((1.0,) * 3, (1.0,) * 3, (0.0,) * 3, 1.0, 1.0, 1.0)
    assert control.decide(first.state, first.choices, measured).state.ignored == 1
    assert (
        control.decide(
            first.state, first.choices, measured, Choice(0.5, Precision.INT8, Collective.REDUCE_SCATTER)
        ).state.ignored
        == 0
    )


@pytest.mark.parametrize("delay_s", [0.002, 0.005])
def test_waiting_for_cores_is_no_slow_network(delay_s: float) -> None:
    """Each transmission waits for a core. Taken for the network's, that would have the ratio fall to the lowest."""
    plant = Plant(20e9, 0.25, (600_000, 1_600_000, 50_000), hop_s=5e-6, delay_s=delay_s)
    ran = run(plant, 60)
    assert ran.decisions[-1].explanation.ratio == 1
    assert ran.decisions[-1].explanation.rate_bps >= 0.5 * 20e9


def test_nothing_fits_is_said_and_no_ratio_is_below_the_lowest() -> None:
    plant = Plant(1e6, 0.05)
    decision = run(plant, 20).decisions[-1]
    assert decision.explanation.outcome == Outcome.NOTHING_FITS
    assert min(choice.ratio for choice in decision.choices) == FREELY.lowest_ratio
    assert str(decision.explanation).startswith("Nothing fits")


@pytest.mark.parametrize(
    "wrong",
    [
        {"tolerated_loss": -0.1},
        {"tolerated_loss": 2.0},
        {"lowest_ratio": 0.0},
        {"start_ratio": 0.0001},
        {"low_rank": (4, 0)},
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        BudgetSettings(**wrong)
