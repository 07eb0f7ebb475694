import math
from collections.abc import Callable

import numpy as np
import pytest

from policies.rates.loads import remaining_by_link
from policies.rates.madd import madd
from policies.rates.max_min import max_min
from policies.rates.network import FloatArray, Network, Order
from policies.rates.order_greedy import order_greedy

Allocate = Callable[[Network, Order, FloatArray], FloatArray]
ALLOCATORS = pytest.mark.parametrize("allocate", [max_min, madd, order_greedy])

NETWORK = Network.of(np.array([8.0, 8.0]), [(0,), (0, 1), (1,)])
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
    assert order_greedy(NETWORK, order, np.ones(3)).tolist() == [0.0, 8.0, 0.0]


@ALLOCATORS
def test_without_active_flows_there_are_no_rates(allocate: Allocate) -> None:
    nobody = Order.by_rank(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    assert allocate(NETWORK, nobody, np.ones(3)).tolist() == []


@ALLOCATORS
def test_a_flow_outside_all_tiers_gets_nothing(allocate: Allocate) -> None:
    first = Order(np.arange(3), np.array([0]), np.array([1]))
    assert allocate(NETWORK, first, np.ones(3)).tolist() == [8.0, 0.0, 0.0]


@ALLOCATORS
def test_a_network_serves_one_call_after_another(allocate: Allocate) -> None:
    values = np.array([1.0, 2.0, 1.0])
    fresh = allocate(Network(NETWORK.capacities_bps, NETWORK.starts, NETWORK.links), ALL, values).tolist()
    for other in (max_min, madd, order_greedy, remaining_by_link):
        other(NETWORK, ALL, np.ones(3))
        assert allocate(NETWORK, ALL, values).tolist() == fresh
    assert (NETWORK.capacities_bps.tolist(), values.tolist()) == ([8.0, 8.0], [1.0, 2.0, 1.0])


@ALLOCATORS
def test_a_link_that_goes_down_stops_its_flows(allocate: Allocate) -> None:
    half = NETWORK.with_capacities(np.array([8.0, 0.0]))
    assert allocate(half, ALL, np.ones(3)).tolist()[1:] == [0.0, 0.0]


@ALLOCATORS
@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_bad_numbers_name_the_flow(allocate: Allocate, bad: float) -> None:
    with pytest.raises(ValueError, match=r"flow 2: (weights|remaining_bytes) must be finite"):
        allocate(NETWORK, ALL, np.array([1.0, 1.0, bad]))


@ALLOCATORS
def test_values_of_other_flows_are_refused(allocate: Allocate) -> None:
    with pytest.raises(ValueError, match="of 3 flows, got 2"):
        allocate(NETWORK, ALL, np.ones(2))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_bad_capacities_name_the_link(bad: float) -> None:
    with pytest.raises(ValueError, match="link 1: its capacity"):
        NETWORK.with_capacities(np.array([8.0, bad]))


def test_bad_paths_name_the_flow() -> None:
    with pytest.raises(ValueError, match="flow 1: it crosses no link"):
        Network.of(np.ones(2), [(0,), ()])
    with pytest.raises(ValueError, match="flow 1: its links must lie between 0 and 1"):
        Network.of(np.ones(2), [(0,), (0, 2), (-1,)])
    with pytest.raises(ValueError, match="starts must begin"):
        Network(np.ones(2), np.array([0, 1]), np.array([0, 1]))
    with pytest.raises(ValueError, match="places on 2 hops, got 1"):
        Network.of(np.ones(2), [(0, 1)], np.array([1]))


def test_tiers_outside_the_flows_are_refused() -> None:
    with pytest.raises(ValueError, match="within the 3 flows"):
        Order(np.arange(3), np.array([0]), np.array([4]))


def test_bytes_of_groups_by_link() -> None:
    order = Order.by_rank(np.arange(3), np.array([1, 0, 1]))
    by_link = remaining_by_link(NETWORK, order, np.array([2.0, 3.0, 0.0]))
    assert by_link.toarray().tolist() == [[3.0, 3.0], [2.0, 0.0]]
