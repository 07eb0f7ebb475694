"""The budget controller with what Trainyard's controller tells: rates and slack, believed where they hold."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from hostlib.compression.agreement import Proposal
from hostlib.compression.control.cost import MeasuredCosts
from hostlib.compression.control.explanation import Outcome, RateSource
from tests.hostlib.compression.control.devices import CPU, FOLLOWS_IN, GPU
from tests.hostlib.compression.control.plant import TOLERATED_LOSS, Plant, fastest, run


def told(**said: float) -> Callable[[int, Proposal], Proposal]:
    def says(_: int, proposal: Proposal) -> Proposal:
        return replace(proposal, **said)

    return says


def test_a_controllers_rate_is_kept_where_the_link_would_give_more() -> None:
    plant = Plant(2e9)
    ran = run(plant, 20, heard=told(rate_bps=200e6))
    decision = ran.decisions[-1]
    assert decision.explanation.rate_source == RateSource.CONTROLLER
    assert decision.explanation.rate_bps == pytest.approx(200e6, rel=1e-6)
    assert ran.steps[-1].sent_bytes <= 200e6 / 8 * plant.compute_s


def test_a_controllers_rate_that_the_link_does_not_give_is_not_believed() -> None:
    plant = Plant(200e6)
    ran = run(plant, 20, heard=told(rate_bps=100e9))
    assert ran.share(plant, since=8) >= 0.97
    assert ran.decisions[-1].explanation.rate_source == RateSource.MEASURED


@pytest.mark.parametrize(("costs", "tolerated_share"), [(CPU, 0), (MeasuredCosts(), 1)])
def test_a_job_that_encodes_for_others_sake_does_not_lose_what_it_tolerates_besides(
    costs: MeasuredCosts, tolerated_share: float
) -> None:
    """At 1 Mbit/s nothing fits. Who has no more takes 2 % of a step for a higher ratio; who leaves it may not."""
    slow, fast = Plant(1e6, costs=costs), Plant(50e9, costs=costs)
    has_no_more = run(slow, 20).decisions[-1].explanation
    leaves_it = run(fast, 20, heard=told(rate_bps=1e6)).decisions[-1].explanation
    assert has_no_more.outcome == leaves_it.outcome == Outcome.NOTHING_FITS
    tolerated_s = TOLERATED_LOSS * slow.compute_s
    less_s = (1 - tolerated_share) * tolerated_s
    # What is estimated of hops differs a little.
    assert leaves_it.deadline_s == pytest.approx(has_no_more.deadline_s - less_s, abs=0.3 * tolerated_s)


@pytest.mark.parametrize("slack_s", [0.0, 0.05, 0.1])
def test_slack_of_the_controller_is_filled(slack_s: float) -> None:
    plant = Plant(200e6, slack_s=slack_s)
    ran = run(plant, 40, heard=told(slack_s=slack_s))
    assert ran.share(plant, since=5) >= 0.97
    assert ran.used(plant, since=5) >= 0.8


@pytest.mark.parametrize("compute_s", [0.25, 0.6])
@pytest.mark.parametrize(("streams", "delay_s"), [(1, 0.005), (2, 0.011), (4, 0.022)])
def test_where_exchanges_get_more_of_a_shared_link_no_ring_is_late(
    streams: int, delay_s: float, compute_s: float
) -> None:
    """Streams of others share a link of 1 Gbit/s with one flow of a ring, or with seven of an exchange."""
    gain = 7 / (7 + streams) * (1 + streams)
    plant = Plant(1e9 / (1 + streams), compute_s, exchange_gain=gain, delay_s=delay_s, costs=GPU, has_remainder=True)
    ran = run(plant, 60)
    tolerated_s = TOLERATED_LOSS * compute_s
    assert max(one.step_s for one in ran.steps[2 * FOLLOWS_IN :]) <= fastest(plant) + 2 * tolerated_s


def test_more_slack_than_a_step_is_not_believed() -> None:
    plant = Plant(200e6)
    ran = run(plant, 20, heard=told(slack_s=3600.0))
    assert max(one.step_s for one in ran.steps) <= 2.1 * plant.compute_s
