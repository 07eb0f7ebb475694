"""The rate and the latency of a hop, from transmissions whose truth is known."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.compression.agreement import Agreed
from hostlib.compression.control.cost import Cost
from hostlib.compression.control.network import Network, link_times_s, sensed


def measured(
    *, ready_s: tuple[float, ...], costs: list[Cost], rate: float, hop_s: float, told_s: float | None
) -> Agreed:
    """What ranks agree on of a step over a link with this rate, in bytes per second."""
    free_s, network_s = 0.0, []
    for at_s, cost in zip(ready_s, costs, strict=True):
        issued_s = at_s + cost.encode_s
        free_s = max(free_s, issued_s) + cost.hops * hop_s + cost.link_bytes / rate
        network_s.append(free_s - issued_s)
    return Agreed(tuple(network_s), ready_s, (0.0,) * len(costs), 1.0, 0.7, 1.0, round_trip_s=told_s)


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.floats(1, 1e8), st.integers(1, 20), st.floats(0, 0.1)), min_size=1, max_size=6
    ),
    st.floats(1e5, 1e10),
)
def test_the_rate_is_exact_where_the_latency_is_known(
    buckets: list[tuple[float, float, int, float]], rate: float
) -> None:
    """Whatever the sizes, and though transmissions wait for each other; the hops take at most half of the smallest."""
    costs = [Cost(size, size, hops, encode_s, 0) for _, size, hops, encode_s in buckets]
    hop_s = min(cost.link_bytes / rate / cost.hops for cost in costs) / 2
    ready_s = tuple(sorted(bucket[0] for bucket in buckets))
    agreed = measured(ready_s=ready_s, costs=costs, rate=rate, hop_s=hop_s, told_s=2 * hop_s)
    busy_s = link_times_s(agreed, costs)
    assert sum(busy_s) == pytest.approx(sum(cost.hops * hop_s + cost.link_bytes / rate for cost in costs), abs=1e-9)
    value = sensed(Network(), 1.0, agreed, costs, 0).rate.value
    assert value is not None
    if sum(busy_s) > 1e-5:  # differences of seconds keep ten digits
        assert value == pytest.approx(rate, rel=1e-3)


COSTS = [Cost(1000, 1000, 10, 0, 0)]


def seen(rates: list[float]) -> list[float | None]:
    network, found = Network(), []
    for number, rate in enumerate(rates):
        agreed = measured(ready_s=(0.0,), costs=COSTS, rate=rate, hop_s=0, told_s=None)
        network = sensed(network, float(number), agreed, COSTS, 0)
        found.append(network.rate.value)
    return found


def test_the_rate_falls_at_once_and_rises_with_the_third_sample() -> None:
    assert seen([100, 100, 100, 50, 200, 200, 200, 1000, 200]) == pytest.approx(
        [100, 100, 100, 50, 50, 50, 200, 200, 200]
    )


def test_the_start_up_table_tells_the_hop_where_no_round_trip_is_known() -> None:
    agreed = measured(ready_s=(0.0,), costs=COSTS, rate=1000, hop_s=0.01, told_s=None)
    network = sensed(Network(), 1.0, agreed, COSTS, 0.01)
    assert network.hop_s == 0.01
    assert network.rate.value == pytest.approx(1000)


def test_a_round_trip_that_cannot_be_true_explains_half_of_a_transmission_at_most() -> None:
    agreed = measured(ready_s=(0.0,), costs=COSTS, rate=1000, hop_s=0, told_s=100.0)
    network = sensed(Network(), 1.0, agreed, COSTS, 0)
    assert network.hop_s == pytest.approx(0.05)
    assert network.rate.value == pytest.approx(2000)
    assert network.latency_share == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("network_s", "costs"), [((0.0,), COSTS), ((1.0,), [Cost(0, 0, 0, 0, 0)]), ((1e-12,), [Cost(1e9, 1e9, 14, 0, 0)])]
)
def test_a_step_that_tells_nothing_changes_nothing(network_s: tuple[float, ...], costs: list[Cost]) -> None:
    assert sensed(Network(), 1.0, Agreed(network_s, (0.0,), (0.0,), 1.0, 0.7, 1.0), costs, 0) == Network()


def test_a_round_trip_that_is_somewhat_too_long_explains_all_of_a_transmission() -> None:
    agreed = measured(ready_s=(0.0,), costs=COSTS, rate=1000, hop_s=0, told_s=0.3)
    network = sensed(Network(), 1.0, agreed, COSTS, 0)
    assert network.hop_s == pytest.approx(0.1)
    assert network.rate.value == pytest.approx(2000)  # half of the time is the bytes', all the same


def _grown(told_s: float, sent: Sequence[tuple[float, float]]) -> list[tuple[bool, float]]:
    """Whether each step lets the estimate grow, and its sample: of 10 hops, which take 100 ms, and bytes at a rate."""
    network, found = Network(), []
    for size, rate in sent:
        costs = [Cost(size, size, 10, 0, 0)]
        agreed = measured(ready_s=(0.0,), costs=costs, rate=rate, hop_s=0.01, told_s=told_s)
        network = sensed(network, 0.0, agreed, costs, 0)
        found.append((network.probing, network.rate.samples[-1][1]))
    return found


def test_transmissions_that_are_mostly_latency_let_the_rate_grow_until_it_shows() -> None:
    """10 bytes take 10 ms at 1000 bytes/s: too little to tell, as nobody knows the hops. 1000 bytes take a second."""
    found = _grown(0.04, [(1000, 1000), *[(10, 1000)] * 3, (1000, 1500), (1000, 900)])
    assert [probing for probing, _ in found] == [False, True, True, True, False, False]
    first = 1000 / 0.9  # the hops are taken for twice as long as they are
    assert [rate for _, rate in found[:4]] == pytest.approx([first, 1.25 * first, 1.25**2 * first, 1.25**3 * first])
    assert [rate for _, rate in found[4:]] == pytest.approx([1500, 900], rel=0.02)


def test_the_rate_grows_no_further_than_what_the_hops_leave_of_the_time_allows() -> None:
    """The hops are known, so 10 bytes tell. A rate that falls is noticed, and one that rises is by and by."""
    found = _grown(0.02, [(1000, 1000), (10, 1000), (10, 1000), (10, 500), *[(10, 600)] * 3])
    assert [probing for probing, _ in found[1:]] == [True] * 6
    assert [rate for _, rate in found] == pytest.approx([1000, 1000, 1000, 500, 600, 600, 600])


def _step(sizes: Sequence[float], rate: float, delays_s: Sequence[float]) -> tuple[Agreed, list[Cost]]:
    """Transmissions that follow each other after a second each."""
    costs = [Cost(size, size, 1, 0, 0) for size in sizes]
    network_s = tuple(size / rate + delay_s for size, delay_s in zip(sizes, delays_s, strict=True))
    return Agreed(network_s, tuple(map(float, range(len(sizes)))), (0.0,) * len(sizes), 9.0, 8.0, 9.0), costs


def test_what_transmissions_take_alike_is_a_delay_and_not_the_rate() -> None:
    agreed, costs = _step([100, 400, 800], 2000, [0.1, 0.15, 0.1])
    network = sensed(Network(), 1.0, agreed, costs, 0)
    assert network.delay_s == pytest.approx(0.1)
    assert network.rate.value == pytest.approx(1300 / (0.65 + 0.05))


@pytest.mark.parametrize(
    ("sizes", "delays_s"),
    [([100, 399], [0.1, 0.1]), ([100, 800], [0.9, 0.0]), ([800], [0.1]), ([100, 800], [0.0, 0.3])],
    ids=["alike", "slower while small", "alone", "slower while large"],
)
def test_where_sizes_do_not_tell_there_is_no_delay(sizes: list[float], delays_s: list[float]) -> None:
    agreed, costs = _step(sizes, 2000, delays_s)
    network = sensed(Network(), 1.0, agreed, costs, 0)
    assert network.delay_s == 0
    assert network.rate.value == pytest.approx(sum(sizes) / sum(agreed.network_s))


def test_a_remainder_has_the_link_before_the_first_bucket() -> None:
    """It ends half a second after the backward pass has begun, when the first bucket has waited for 0.3 s."""
    bucket, remainder = Cost(1000, 1000, 1, 0, 0), Cost(4000, 4000, 1, 0, 0)
    agreed = Agreed((1.3, 4.0), (0.2, 0.5), (0.0, 0.0), 3.0, 2.0, 3.0)
    assert link_times_s(agreed, [bucket], remainder) == pytest.approx([1.0, 4.0])
    assert sensed(Network(), 1.0, agreed, [bucket], 0, remainder).rate.value == pytest.approx(1000)


def _scattered(exchange_s: float, ring_s: float, *, size: float = 1000, delay_s: float = 0) -> tuple[Agreed, Cost]:
    """One reduce-scatter; the delay holds up both halves alike."""
    busy_s = exchange_s + ring_s + 2 * delay_s
    return Agreed((busy_s,), (0.0,), (exchange_s + delay_s,), 1.0, 0.7, 1.0), Cost(size, size, 2, 0, 0, True)


def test_a_reduce_scatter_tells_the_rates_of_exchanges_and_of_rings() -> None:
    agreed, cost = _scattered(0.25, 1.0)
    link = sensed(Network(), 1.0, agreed, [cost], 0).link
    assert link is not None
    assert (link.exchange_rate, link.rate) == pytest.approx((2000, 500))
    assert link.transmission_s(cost) == pytest.approx(1.25)
    assert link.transmission_s(Cost(1000, 1000, 2, 0, 0)) == pytest.approx(2.0)


@pytest.mark.parametrize("exchange_s", [0.0, 1e-12, 5.0])
def test_an_exchange_whose_time_cannot_be_tells_no_rate_of_its_own(exchange_s: float) -> None:
    agreed = Agreed((2.0,), (0.0,), (exchange_s,), 1.0, 0.7, 1.0)
    network = sensed(Network(), 1.0, agreed, [Cost(1000, 1000, 2, 0, 0, True)], 0)
    assert network.link is not None
    assert 250 <= network.link.rate <= 500
    assert 250 <= network.link.exchange_rate <= 500


def test_exchanges_that_no_step_has_or_that_are_too_small_stay_as_much_faster_than_rings() -> None:
    agreed, cost = _scattered(0.25, 1.0)
    network = sensed(Network(), 1.0, agreed, [cost], 0)
    ring = Cost(1000, 1000, 2, 0, 0)
    for rate in (400, 300, 200):  # streams of others come
        again = measured(ready_s=(0.0,), costs=[ring], rate=rate, hop_s=0, told_s=None)
        network = sensed(network, 1.0, again, [ring], 0)
    assert network.link is not None
    assert (network.link.rate, network.link.exchange_rate) == pytest.approx((200, 800))
    # Ten bytes beside many: they are held up for longer than their bytes take.
    small, _ = _scattered(0.00625, 0.025, size=10, delay_s=0.05)
    both = Agreed((5.1, *small.network_s), (0.0, 6.0), (0.0, *small.exchange_s), 9.0, 8.0, 9.0)
    for _ in range(3):
        network = sensed(network, 1.0, both, [ring, Cost(10, 10, 2, 0, 0, True)], 0)
    assert network.link is not None
    assert network.link.exchange_rate == pytest.approx(4 * network.link.rate)
