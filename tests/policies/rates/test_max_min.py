import numpy as np
import pytest
from hypothesis import given

from policies.rates.max_min import max_min
from tests.policies.rates.references import Case, cases, plain_max_min


def test_three_flows_on_two_links() -> None:
    case = Case([8.0, 16.0], [(0,), (0, 1), (1,)], [[0, 1, 2]], [1.0, 1.0, 1.0])
    assert max_min(*case.arguments).tolist() == [4.0, 4.0, 12.0]


def test_the_more_urgent_tier_takes_all_that_it_can_use() -> None:
    case = Case([8.0, 3.0], [(0,), (0,), (0, 1)], [[2], [0, 1]], [1.0, 1.0, 1.0])
    assert max_min(*case.arguments).tolist() == [3.0, 2.5, 2.5]


def test_a_flow_counts_as_often_as_its_weight() -> None:
    case = Case([8.0], [(0,), (0,), (0,)], [[0, 1, 2]], [3.0, 1.0, 0.0])
    assert max_min(*case.arguments).tolist() == [6.0, 2.0, 0.0]


@given(cases())
def test_agrees_with_the_plain_version(case: Case) -> None:
    assert max_min(*case.arguments) == pytest.approx(plain_max_min(case))


@given(cases())
def test_no_link_carries_more_than_it_can(case: Case) -> None:
    carried = case.carried(max_min(*case.arguments))
    assert all(load <= capacity * (1 + 1e-12) for load, capacity in zip(carried, case.capacities, strict=True))


@given(cases(smallest_value=1))
def test_every_flow_has_a_bottleneck_where_no_equal_gets_more(case: Case) -> None:
    """The definition of max-min fairness: a full link where no flow of its tier or a later one has a larger share."""
    rates = max_min(*case.arguments)
    carried = case.carried(rates)
    flows = [(number, flow) for number, tier in enumerate(case.tiers) for flow in tier]
    share = {flow: rate / case.values[flow] for (_, flow), rate in zip(flows, rates, strict=True)}

    def is_bottleneck(link: int, tier: int, flow: int) -> bool:
        if carried[link] < case.capacities[link] * (1 - 1e-9):
            return False
        others = (other for number, other in flows if number >= tier and link in case.paths[other])
        return all(share[other] <= share[flow] * (1 + 1e-9) + 1e-9 for other in others)

    for tier, flow in flows:
        assert any(is_bottleneck(link, tier, flow) for link in case.paths[flow])


def test_a_large_random_network() -> None:
    random = np.random.default_rng(1)
    paths = [(int(a), 20 + int(b)) for a, b in random.integers(0, 20, (600, 2))]
    tiers = [list(range(tier, 600, 3)) for tier in range(3)]
    case = Case(random.integers(1, 9, 40).astype(float).tolist(), paths, tiers, [1.0] * 600)
    assert max_min(*case.arguments) == pytest.approx(plain_max_min(case))
