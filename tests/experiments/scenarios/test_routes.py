from experiments.scenarios.routes import host_queues


def test_each_rank_at_a_nic_has_its_own_queue() -> None:
    orders = {1: 4, 2: 9, 3: 4, 4: 9}
    assert host_queues(orders, {1: 10, 2: 10, 3: 11, 4: 12}) == {1: 7, 2: 6, 3: 7, 4: 7}


def test_ranks_after_the_eighth_share_the_last_queue() -> None:
    orders = {flow: flow for flow in range(10)}
    assert list(host_queues(orders, dict.fromkeys(orders, 1)).values()) == [7, 6, 5, 4, 3, 2, 1, 0, 0, 0]
