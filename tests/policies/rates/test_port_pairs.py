import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.rates.max_min import max_min
from policies.rates.network import Network, Order
from policies.rates.port_pairs import port_shares

PORTS = 4


@given(st.lists(st.integers(0, 3), min_size=PORTS**2, max_size=PORTS**2).filter(any))
def test_the_lesser_share_of_its_two_ports_is_a_flows_max_min_rate(numbers: list[int]) -> None:
    from_ingress = np.array(numbers, dtype=np.float64).reshape(PORTS, PORTS)
    shares = np.empty(2 * PORTS)
    port_shares(from_ingress, from_ingress.T.copy(), 12.0, np.empty(2 * PORTS), shares)

    paths = [(ingress, PORTS + egress) for ingress in range(PORTS) for egress in range(PORTS)]
    network, flows = Network.of(np.full(2 * PORTS, 12.0), paths), np.flatnonzero(from_ingress)
    expected = max_min(network, Order.by_rank(flows, np.zeros_like(flows)), from_ingress.ravel())
    rates = [min(shares[list(paths[flow])]) * numbers[flow] for flow in flows.tolist()]
    assert rates == pytest.approx(expected.tolist(), rel=1e-12)


def test_a_port_that_stops_nobody_has_no_share() -> None:
    shares = np.empty(4)
    port_shares(np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 0.0]]), 1.0, np.empty(4), shares)
    assert shares.tolist() == [0.5, np.inf, np.inf, np.inf]
