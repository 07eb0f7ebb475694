"""Max-min where hosts serve the flows of a tier in an order on the links by which they leave."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.rates.max_min import max_min
from policies.rates.network import FloatArray, Network, Order
from topologies.fabric import Path


@dataclass(frozen=True)
class Sent:
    """Flows by path, the first link of which leaves their host, with their tiers, places there and weights."""

    capacities: list[float]
    paths: list[Path]
    tiers: list[int]
    places: list[int]
    weights: list[float]

    def rates(self) -> FloatArray:
        """By flow."""
        by_hop = [
            place if hop == 0 else 0
            for place, path in zip(self.places, self.paths, strict=True)
            for hop in range(len(path))
        ]
        network = Network.of(np.array(self.capacities), self.paths, np.array(by_hop))
        order = Order.by_rank(np.arange(len(self.paths)), np.array(self.tiers))
        rates = np.empty(len(self.paths))
        rates[order.flows] = max_min(network, order, np.array(self.weights))
        return rates


def rates(capacities: list[float], *flows: tuple[Path, int]) -> list[float]:
    """Return the rates of flows of one tier, given by path and place."""
    ones = [1.0] * len(flows)
    return (
        Sent(capacities, [path for path, _ in flows], [0] * len(flows), [place for _, place in flows], ones)
        .rates()
        .tolist()
    )


NIC, OTHER_NIC, CABLE = 0, 1, 2


def test_the_first_place_has_the_nic_as_far_as_it_can_use_it() -> None:
    assert rates([10.0, 10.0, 4.0], ((NIC, CABLE), 0), ((NIC,), 1)) == [4.0, 6.0]
    assert rates([10.0, 10.0, 10.0], ((NIC, CABLE), 0), ((NIC,), 1)) == [10.0, 0.0]


def test_switches_let_a_later_place_share_with_flows_of_other_hosts() -> None:
    """As a strict order over whole paths, flows 0 and 2 would have 3 each and flow 1 nothing."""
    assert rates([10.0, 10.0, 6.0], ((NIC, CABLE), 0), ((NIC, CABLE), 1), ((OTHER_NIC, CABLE), 0)) == [2.0, 2.0, 2.0]


def test_a_later_place_sends_only_what_the_first_leaves_and_others_take_the_rest_of_the_cable() -> None:
    assert rates([10.0, 10.0, 9.0], ((NIC,), 0), ((NIC, CABLE), 1), ((OTHER_NIC, CABLE), 0)) == [10.0, 0.0, 9.0]
    assert rates([4.0, 10.0, 9.0], ((NIC, CABLE), 0), ((NIC, CABLE), 1), ((OTHER_NIC, CABLE), 0)) == [4.0, 0.0, 5.0]
    assert rates([5.0, 10.0, 9.0], ((NIC, CABLE), 0), ((NIC, CABLE), 1), ((OTHER_NIC, CABLE), 0)) == pytest.approx(
        [4.0, 1.0, 4.0]
    )


def test_equal_cables_leave_nothing_to_a_later_place() -> None:
    assert rates([10.0, 10.0, 10.0], ((NIC, CABLE), 0), ((NIC, CABLE), 1)) == [10.0, 0.0]


@st.composite
def sendings(draw: st.DrawFn) -> Sent:
    """Up to eight flows of three NICs over four links behind them; coarse numbers, so that ties are common."""
    capacity = st.sampled_from([1.0, 2.0, 3.0, 5.0, 10.0])
    number = draw(st.integers(1, 8))
    behind = st.lists(st.integers(3, 6), max_size=3, unique=True)
    return Sent(
        [draw(capacity) for _ in range(7)],
        [(draw(st.integers(0, 2)), *draw(behind)) for _ in range(number)],
        [draw(st.integers(0, 1)) for _ in range(number)],
        [draw(st.integers(0, 2)) for _ in range(number)],
        [float(draw(st.integers(1, 3))) for _ in range(number)],
    )


@given(sendings())
def test_every_flow_has_a_link_that_it_can_use_no_more_of(sent: Sent) -> None:
    """A full link where no flow that is served after it has anything, and none that is served with it has more."""
    rates = sent.rates()
    carried = np.zeros(len(sent.capacities))
    for path, rate in zip(sent.paths, rates, strict=True):
        carried[list(path)] += rate
    assert (carried <= np.array(sent.capacities) * (1 + 1e-8)).all()

    def turn(flow: int, link: int) -> tuple[int, int]:
        return sent.tiers[flow], sent.places[flow] if link == sent.paths[flow][0] else 0

    def is_bottleneck(flow: int, link: int) -> bool:
        others = [other for other, path in enumerate(sent.paths) if link in path]
        after = [other for other in others if turn(other, link) > turn(flow, link)]
        beside = [other for other in others if turn(other, link) == turn(flow, link)]
        share = rates[flow] / sent.weights[flow]
        return bool(
            carried[link] >= sent.capacities[link] * (1 - 1e-4)
            and all(rates[other] <= 1e-3 for other in after)
            and all(rates[other] / sent.weights[other] <= share + 1e-3 for other in beside)
        )

    for flow, path in enumerate(sent.paths):
        assert any(is_bottleneck(flow, link) for link in path)
