"""Max-min fair rates inside a tier, strict priority between tiers: what the levels of switch queues give.

The algorithm is progressive filling by bottlenecks: the link with the smallest fair share fixes the rates of its flows,
these leave, and so on. Shares only grow as flows leave, so a heap of links whose entries are updated when they come up
finds the next bottleneck. A tier takes time linear in its hops, and logarithmic in the number of links for every link.
A flow of weight w counts as w flows, so that flows of one path and tier can be bundled; a flow of weight 0 gets
nothing.

Flows of one tier may have places on a link, which a host serves one after another (``Network.places``). To each place
the link is a link of its own, with the room that the places before it leave. As what they leave depends on whom they
meet elsewhere, a tier in which places meet is filled again and again until rooms and rates agree.
"""

import numpy as np

from policies.jit import compiled
from policies.rates.network import FloatArray, IntArray, Network, Order, check_values

_NOTHING_LEFT = 1e-12
_SAME_ROOM = 1e-9
_MOST_ROUNDS = 64
_UNDAMPED_ROUNDS = 24


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
        network.starts, network.links, network.places, order.flows, order.starts, order.stops,
        weights, network.capacities_bps, left, scratch.sums, scratch.counts, scratch.ends,
        np.empty(len(order.flows) * network.longest_path, np.int64), scratch.used, scratch.shares, rates_bps,
    )  # fmt: skip
    return np.where(rates_bps > 0.0, rates_bps, 0.0)


@compiled
def fill_tiers(
    first_hop: IntArray,
    links: IntArray,
    places: IntArray,
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
    hops. ``places`` is empty, or has a place for each of ``links``.
    """
    for tier in range(len(starts)):
        start, stop = starts[tier], stops[tier]
        if len(places) and _places_meet(first_hop, links, places, flows[start:stop], unfixed_on):
            tier_flows, tier_rates = flows[start:stop], rates[start:stop]
            _fill_places(first_hop, links, places, tier_flows, weights, capacities, left, unfixed_on, tier_rates)
        else:
            _fill_tier(
                first_hop, links, flows, start, stop, weights, capacities, left, weight_on, unfixed_on, members_end,
                members, heap, shares, rates,
            )  # fmt: skip


@compiled
def _fill_tier(
    first_hop: IntArray,
    links: IntArray,
    flows: IntArray,
    start: int,
    stop: int,
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
    """Fill the tier of ``flows[start:stop]`` without regard to places."""
    size = 0
    for position in range(start, stop):
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
    for position in range(start, stop):
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
def _places_meet(first_hop: IntArray, links: IntArray, places: IntArray, flows: IntArray, place_on: IntArray) -> bool:
    """Return whether flows of different places share a link; ``place_on`` is 0 before and after."""
    do_meet = False
    for flow in flows:
        for hop in range(first_hop[flow], first_hop[flow + 1]):
            if place_on[links[hop]] == 0:
                place_on[links[hop]] = 1 + places[hop]
            elif place_on[links[hop]] != 1 + places[hop]:
                do_meet = True
    for flow in flows:
        for hop in range(first_hop[flow], first_hop[flow + 1]):
            place_on[links[hop]] = 0
    return do_meet


@compiled
def _fill_places(
    first_hop: IntArray,
    links: IntArray,
    places: IntArray,
    flows: IntArray,
    weights: FloatArray,
    capacities: FloatArray,
    left: FloatArray,
    part_on: IntArray,
    rates: FloatArray,
) -> None:
    """Fill a tier in which places meet; ``part_on`` is 0 before and after.

    A part is a link for one of its places. Later places have no room at first and get, one after another, what the
    rates so far leave them: so of flows that could share two equally narrow links, the one served first has both.
    """
    num_flows = len(flows)
    first_part_hop, part_weights = np.zeros(num_flows + 1, np.int64), np.empty(num_flows)
    for index in range(num_flows):
        flow = flows[index]
        first_part_hop[index + 1] = first_part_hop[index] + first_hop[flow + 1] - first_hop[flow]
        part_weights[index] = weights[flow]
    num_hops = first_part_hop[num_flows]
    parts, link_of, place_of = np.empty(num_hops, np.int64), np.empty(num_hops, np.int64), np.empty(num_hops, np.int64)
    other_part = np.empty(num_hops, np.int64)
    num_parts = 0
    for index in range(num_flows):
        for number in range(first_part_hop[index + 1] - first_part_hop[index]):
            hop = first_hop[flows[index]] + number
            part = part_on[links[hop]] - 1
            while part >= 0 and place_of[part] != places[hop]:
                part = other_part[part]
            if part < 0:
                part = num_parts
                num_parts += 1
                link_of[part], place_of[part], other_part[part] = links[hop], places[hop], part_on[links[hop]] - 1
                part_on[links[hop]] = part + 1
            parts[first_part_hop[index] + number] = part
    widths, room, loads = np.empty(num_parts), np.zeros(num_parts), np.zeros(num_parts)
    left_of, weight_on, shares = np.empty(num_parts), np.zeros(num_parts), np.empty(num_parts)
    unfixed_on, members_end, num_before = np.zeros((3, num_parts), np.int64)
    heap, members, numbers = np.empty(num_parts, np.int64), np.empty(num_hops, np.int64), np.arange(num_flows)
    for part in range(num_parts):
        widths[part] = capacities[link_of[part]]
        other = part_on[link_of[part]] - 1
        while other >= 0:
            num_before[part] += place_of[other] < place_of[part]
            other = other_part[other]
        room[part] = 0.0 if num_before[part] else left[link_of[part]]
    rounds, is_settled = 0, False
    while not is_settled and rounds < _MOST_ROUNDS:
        rounds += 1
        left_of[:], rates[:], loads[:] = room, -1.0, 0.0
        _fill_tier(
            first_part_hop, parts, numbers, 0, num_flows, part_weights, widths, left_of, weight_on, unfixed_on,
            members_end, members, heap, shares, rates,
        )  # fmt: skip
        for index in range(num_flows):
            for hop in range(first_part_hop[index], first_part_hop[index + 1]):
                loads[parts[hop]] += rates[index]
        is_settled = True
        for part in range(num_parts):
            if num_before[part] > rounds:
                is_settled = False
                continue
            following = left[link_of[part]]
            other = part_on[link_of[part]] - 1
            while other >= 0:
                if place_of[other] < place_of[part]:
                    following -= loads[other]
                other = other_part[other]
            following, near = max(following, 0.0), _SAME_ROOM * widths[part]
            is_full = loads[part] >= room[part] - near
            if loads[part] > following + near or (is_full and following > room[part] + near):
                is_settled = False
            if _UNDAMPED_ROUNDS < rounds < _MOST_ROUNDS:
                following = (following + room[part]) / 2
            room[part] = following
    for index in range(num_flows):
        if not is_settled:
            for hop in range(first_part_hop[index], first_part_hop[index + 1]):
                if loads[parts[hop]] > room[parts[hop]]:
                    rates[index] *= room[parts[hop]] / loads[parts[hop]]
    for index in range(num_flows):
        for hop in range(first_part_hop[index], first_part_hop[index + 1]):
            link = link_of[parts[hop]]
            part_on[link] = 0
            left[link] -= rates[index]
            if left[link] < _NOTHING_LEFT * capacities[link]:
                left[link] = 0.0


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
