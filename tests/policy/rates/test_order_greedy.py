import pytest
from hypothesis import given

from controller.policy.rates.order_greedy import order_greedy
from tests.policy.rates.references import Network, networks, plain_order_greedy


def test_the_first_flow_takes_all_and_the_blocked_let_others_pass() -> None:
    network = Network([8.0, 8.0], [(0,), (0, 1), (1,)], [[0], [1], [2]], [1.0, 1.0, 1.0])
    assert order_greedy(*network.arrays).tolist() == [8.0, 0.0, 8.0]


@given(networks())
def test_agrees_with_the_plain_version(network: Network) -> None:
    assert order_greedy(*network.arrays) == pytest.approx(plain_order_greedy(network))
