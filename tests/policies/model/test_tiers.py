import numpy as np

from policies.model.tiers import host_queues, tiers_and_places


def test_each_rank_at_a_nic_has_its_own_queue() -> None:
    orders = {1: (5, 4), 2: (5, 9), 3: (5, 4), 4: (5, 9)}
    assert host_queues(orders, {1: 10, 2: 10, 3: 11, 4: 12}) == {1: 7, 2: 6, 3: 7, 4: 7}


def test_a_higher_level_precedes_an_earlier_order() -> None:
    assert host_queues({1: (5, 0), 2: (6, 1), 3: (5, 1)}, dict.fromkeys((1, 2, 3), 10)) == {1: 6, 2: 7, 3: 5}


def test_ranks_after_the_eighth_share_the_last_queue() -> None:
    orders = {flow: (0, flow) for flow in range(10)}
    assert list(host_queues(orders, dict.fromkeys(orders, 1)).values()) == [7, 6, 5, 4, 3, 2, 1, 0, 0, 0]


def test_places_count_inside_a_level_at_each_nic() -> None:
    """Flows of another level at one NIC change nothing for those that meet on links of the network."""
    levels, orders = np.array([7, 6, 6, 6]), np.array([0, 1, 2, 2])
    tiers, places = tiers_and_places(levels, orders, np.array([10, 10, 10, 11]))
    assert tiers.tolist() == [0, 1, 1, 1]
    assert places.tolist() == [0, 0, 1, 0]
