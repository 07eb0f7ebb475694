"""Each mode as the hooks use it: the first choices, and what decisions make of them."""

import pytest

from hostlib.compression.agreement import Agreed
from hostlib.compression.control.budget import BudgetSettings
from hostlib.compression.control.cost import Bucket, MeasuredCosts
from hostlib.compression.control.paper import PaperParameters
from hostlib.compression.controllers import MODES, Controller, controllers_of

BUCKETS = [Bucket(6_000_000, 8), Bucket(5_500_000, 8)]
READY_S = (0.1, 0.2)


def controller(mode: str) -> Controller:
    return controllers_of(mode, BudgetSettings(), PaperParameters())(BUCKETS, MeasuredCosts(hop_s=1e-5))


def measured(network_s: float) -> Agreed:
    """A step whose two buckets take so long each."""
    return Agreed((network_s, network_s), READY_S, (0.0, 0.0), compute_s=0.3, backward_s=0.2, step_s=0.3 + network_s)


@pytest.mark.parametrize("mode", MODES)
def test_there_is_one_choice_for_each_bucket_and_a_reason(mode: str) -> None:
    made = controller(mode)
    assert len(made.choices) == len(BUCKETS)
    made.decide(made.choices, measured(0.05))
    assert len(made.choices) == len(BUCKETS)
    assert made.reason.endswith(".")


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_decided_from_nothing(mode: str) -> None:
    made = controller(mode)
    before = made.choices
    made.decide(before, None)
    assert made.choices == before


def test_budget_sends_dense_what_fits_and_less_where_it_does_not() -> None:
    made = controller("budget")
    dense = [bucket.dense_choice for bucket in BUCKETS]
    for _ in range(4):
        made.decide(dense, measured(0.001))
    assert list(made.choices) == dense
    for _ in range(4):
        made.decide(dense, measured(2.0))
    assert all(choice.ratio < 1 for choice in made.choices)


def test_paper_and_windowed_have_one_ratio_for_all() -> None:
    for mode in ("paper", "windowed"):
        made = controller(mode)
        for _ in range(5):
            made.decide(made.choices, measured(0.5))
            assert len(set(made.choices)) == 1


def test_paper_starts_as_printed() -> None:
    made = controller("paper")
    assert {choice.ratio for choice in made.choices} == {0.02}  # 0.01, doubled as it is quantised
    made.decide(made.choices, measured(0.5))
    assert [choice.ratio for choice in made.choices] == pytest.approx([0.11, 0.11])


def test_there_is_no_other_mode() -> None:
    with pytest.raises(ValueError, match="mode: expected one of budget, windowed, paper, got 'best'"):
        controllers_of("best", BudgetSettings(), PaperParameters())
