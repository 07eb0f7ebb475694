import math
from collections.abc import Callable

import numpy as np
import pytest

from controller.policy.rates.flows import FloatArray, FlowLinks, Order
from controller.policy.rates.loads import remaining_by_link
from controller.policy.rates.madd import madd
from controller.policy.rates.max_min import max_min
from controller.policy.rates.order_greedy import order_greedy

Allocate = Callable[[FloatArray, FlowLinks, Order, FloatArray], FloatArray]
ALLOCATORS = pytest.mark.parametrize("allocate", [max_min, madd, order_greedy])

LINKS = FlowLinks.of([(0,), (0, 1), (1,)], 2)
ALL = Order.by_rank(np.arange(3), np.zeros(3, dtype=np.int64))


def test_ranks_become_tiers() -> None:
    order = Order.by_rank(np.array([4, 5, 6, 7]), np.array([2, 0, 2, 1]))
    tiers = [order.flows[start:stop].tolist() for start, stop in zip(order.starts, order.stops, strict=True)]
    assert tiers == [[5], [7], [4, 6]]


def test_levels_become_tiers_by_their_negatives() -> None:
    order = Order.by_rank(np.arange(4), -np.array([0, 1, 7, 1]))
    assert order.flows.tolist() == [2, 1, 3, 0]
    assert (order.starts.tolist(), order.stops.tolist()) == ([0, 1, 3], [1, 3, 4])


def test_tiers_change_places() -> None:
    order = Order.by_rank(np.arange(3), np.array([0, 1, 1])).rearranged(np.array([1, 0]))
    assert order_greedy(np.array([8.0, 8.0]), LINKS, order, np.ones(3)).tolist() == [0.0, 8.0, 0.0]


@ALLOCATORS
def test_without_active_flows_there_are_no_rates(allocate: Allocate) -> None:
    nobody = Order.by_rank(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    assert allocate(np.array([8.0, 8.0]), LINKS, nobody, np.ones(3)).tolist() == []


@ALLOCATORS
def test_a_flow_outside_all_tiers_gets_nothing(allocate: Allocate) -> None:
    first = Order(np.arange(3), np.array([0]), np.array([1]))
    assert allocate(np.array([8.0, 8.0]), LINKS, first, np.ones(3)).tolist() == [8.0, 0.0, 0.0]


@ALLOCATORS
def test_arguments_stay_as_they_are(allocate: Allocate) -> None:
    capacities, values = np.array([8.0, 8.0]), np.ones(3)
    allocate(capacities, LINKS, ALL, values)
    assert (capacities.tolist(), values.tolist()) == ([8.0, 8.0], [1.0, 1.0, 1.0])


@ALLOCATORS
@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_bad_numbers_name_the_link_or_the_flow(allocate: Allocate, bad: float) -> None:
    with pytest.raises(ValueError, match="link 1: its capacity"):
        allocate(np.array([8.0, bad]), LINKS, ALL, np.ones(3))
    with pytest.raises(ValueError, match=r"flow 2: (weights|remaining_bytes) must be finite"):
        allocate(np.array([8.0, 8.0]), LINKS, ALL, np.array([1.0, 1.0, bad]))


@ALLOCATORS
def test_arrays_of_another_network_are_refused(allocate: Allocate) -> None:
    with pytest.raises(ValueError, match="the capacities of 2 links, got 3"):
        allocate(np.ones(3), LINKS, ALL, np.ones(3))
    with pytest.raises(ValueError, match="of 3 flows, got 2"):
        allocate(np.ones(2), LINKS, ALL, np.ones(2))


def test_bad_paths_name_the_flow() -> None:
    with pytest.raises(ValueError, match="flow 1: it crosses no link"):
        FlowLinks.of([(0,), ()], 2)
    with pytest.raises(ValueError, match="flow 1: its links must lie between 0 and 1"):
        FlowLinks.of([(0,), (0, 2), (-1,)], 2)
    with pytest.raises(ValueError, match="starts must lead"):
        FlowLinks(np.array([0, 1]), np.array([0, 1]), 2)


def test_tiers_outside_the_flows_are_refused() -> None:
    with pytest.raises(ValueError, match="within the 3 flows"):
        Order(np.arange(3), np.array([0]), np.array([4]))


def test_bytes_of_groups_by_link() -> None:
    order = Order.by_rank(np.arange(3), np.array([1, 0, 1]))
    by_link = remaining_by_link(LINKS, order, np.array([2.0, 3.0, 0.0]))
    assert by_link.toarray().tolist() == [[3.0, 3.0], [2.0, 0.0]]
