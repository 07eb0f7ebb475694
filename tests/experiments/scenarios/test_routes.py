import numpy as np

from experiments.scenarios.routes import host_queues, tiers_of_levels
from policies.plan import FlowPlan


def test_each_rank_at_a_nic_has_its_own_queue() -> None:
    orders = {1: 4, 2: 9, 3: 4, 4: 9}
    assert host_queues(orders, {1: 10, 2: 10, 3: 11, 4: 12}) == {1: 7, 2: 6, 3: 7, 4: 7}


def test_ranks_after_the_eighth_share_the_last_queue() -> None:
    orders = {flow: flow for flow in range(10)}
    assert list(host_queues(orders, dict.fromkeys(orders, 1)).values()) == [7, 6, 5, 4, 3, 2, 1, 0, 0, 0]


def test_a_first_place_inside_a_level_is_the_same_tier_at_every_nic() -> None:
    """Flows of another level at one NIC change nothing for those that meet on links of the network."""
    urgent, first, second, elsewhere = (
        FlowPlan(None, 7, 0),
        FlowPlan(None, 6, 1),
        FlowPlan(None, 6, 2),
        FlowPlan(None, 6, 1),
    )
    tiers = tiers_of_levels([urgent, first, second, elsewhere], np.array([10, 10, 10, 11])).tolist()
    assert tiers[0] < tiers[1] < tiers[2]
    assert tiers[3] == tiers[1]
