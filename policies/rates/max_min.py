"""Max-min fair rates inside a tier, strict priority between tiers: what the levels of switch queues give.

The algorithm is progressive filling by bottlenecks: the link with the smallest fair share fixes the rates of its flows,
these leave, and so on. Shares only grow as flows leave, so a heap of links whose entries are updated when they come up
finds the next bottleneck. A tier takes time linear in its hops, and logarithmic in the number of links for every link.
A flow of weight w counts as w flows, so that flows of one path and tier can be bundled; a flow of weight 0 gets
nothing.
"""

import numpy as np

from policies.jit import compiled
from policies.rates.network import FloatArray, IntArray, Network, Order, check_values

_NOTHING_LEFT = 1e-12


def max_min(network: Network, order: Order, weights: FloatArray) -> FloatArray:
    """Return the rate of every flow in ``order.flows``, in bit/s.

    Args:
        network: Links and paths.
        order: The active flows; a tier is a level.
        weights: By flow number.

    Raises:
        ValueError: The weight of an active flow is negative or not finite.
    """
    check_values(weights, "weights", network, order)
    rates_bps, left, scratch = np.full(len(order.flows), -1.0), network.full_capacities(order), network.scratch
    fill_tiers(
        network.starts, network.links, order.flows, order.starts, order.stops,
        weights, network.capacities_bps, left, scratch.sums, scratch.counts, scratch.ends,
        np.empty(len(order.flows) * network.longest_path, np.int64), scratch.used, scratch.shares, rates_bps,
    )  # fmt: skip
    return np.where(rates_bps > 0.0, rates_bps, 0.0)


@compiled
def fill_tiers(
    first_hop: IntArray,
    links: IntArray,
    flows: IntArray,
    starts: IntArray,
    stops: IntArray,
    weights: FloatArray,
    capacities: FloatArray,
    left: FloatArray,
    weight_on: FloatArray,
    unfixed_on: IntArray,
    members_end: IntArray,
    members: IntArray,
    heap: IntArray,
    shares: FloatArray,
    rates: FloatArray,
) -> None:
    """Fill tier after tier. A flow whose rate is not fixed yet has a negative rate, as all flows have at first.

    ``left`` is what links have left before. ``weight_on`` and ``unfixed_on`` are 0 before and after. The positions of
    the flows on a link are ``members[members_end[link] - number:members_end[link]]``; ``members`` has room for all
    hops.
    """
    for tier in range(len(starts)):
        size = 0
        for position in range(starts[tier], stops[tier]):
            flow = flows[position]
            if weights[flow] == 0.0:
                rates[position] = 0.0
            if rates[position] >= 0.0:
                continue
            for hop in range(first_hop[flow], first_hop[flow + 1]):
                link = links[hop]
                if unfixed_on[link] == 0:
                    heap[size] = link
                    size += 1
                unfixed_on[link] += 1
                weight_on[link] += weights[flow]
        begin = 0
        for index in range(size):
            link = heap[index]
            members_end[link] = begin
            begin += unfixed_on[link]
            shares[link] = left[link] / weight_on[link]
        for position in range(starts[tier], stops[tier]):
            flow = flows[position]
            if rates[position] >= 0.0:
                continue
            for hop in range(first_hop[flow], first_hop[flow + 1]):
                members[members_end[links[hop]]] = position
                members_end[links[hop]] += 1
        for index in range(size // 2 - 1, -1, -1):
            _sift_down(heap, shares, index, size)
        while size:
            link = heap[0]
            if unfixed_on[link]:
                share = left[link] / weight_on[link]
                if share > shares[link]:
                    shares[link] = share
                    _sift_down(heap, shares, 0, size)
                    continue
                first = members_end[link] - 1
                while unfixed_on[link]:
                    position = members[first]
                    first -= 1
                    if rates[position] < 0.0:
                        flow = flows[position]
                        rates[position] = share * weights[flow]
                        for hop in range(first_hop[flow], first_hop[flow + 1]):
                            _take(links[hop], rates[position], weights[flow], capacities, left, weight_on, unfixed_on)
            size -= 1
            heap[0] = heap[size]
            _sift_down(heap, shares, 0, size)


@compiled
def _take(
    link: int,
    rate: float,
    weight: float,
    capacities: FloatArray,
    left: FloatArray,
    weight_on: FloatArray,
    unfixed_on: IntArray,
) -> None:
    """Subtract a flow whose rate is now fixed from one of its links."""
    left[link] -= rate
    if left[link] < _NOTHING_LEFT * capacities[link]:
        left[link] = 0.0
    unfixed_on[link] -= 1
    # Rounding must not leave unfixed flows without weight.
    weight_on[link] = max(weight_on[link] - weight, _NOTHING_LEFT * weight) if unfixed_on[link] else 0.0


@compiled
def _sift_down(heap: IntArray, shares: FloatArray, index: int, size: int) -> None:
    """Restore the heap of links below one place: smallest share first, then smallest number."""
    while True:
        smallest = index
        for child in (2 * index + 1, 2 * index + 2):
            if child < size:
                one, other = heap[child], heap[smallest]
                if shares[one] < shares[other] or (shares[one] == shares[other] and one < other):
                    smallest = child
        if smallest == index:
            return
        heap[index], heap[smallest] = heap[smallest], heap[index]
        index = smallest
