"""Remaining bytes of flow groups by link: what SEBF and BSSI order open groups by."""

import numpy as np
from scipy.sparse import csr_array

from policies.jit import compiled
from policies.rates.network import FloatArray, IntArray, Network, Order, check_values


def remaining_by_link(network: Network, order: Order, remaining_bytes: FloatArray) -> csr_array:
    """Return the bytes that every tier (row) still has for every link (column).

    Linear in the hops of the active flows.

    Raises:
        ValueError: Remaining bytes of an active flow are negative or not finite.
    """
    check_values(remaining_bytes, "remaining_bytes", network, order)
    hops = len(order.flows) * network.longest_path
    row_ends, columns, values = np.zeros(len(order.starts) + 1, np.int64), np.empty(hops, np.int64), np.empty(hops)
    _sum_tiers(
        network.starts, network.links, order.flows, order.starts, order.stops,
        remaining_bytes, network.scratch.sums, row_ends, columns, values,
    )  # fmt: skip
    size, shape = row_ends[-1], (len(order.starts), len(network.capacities_bps))
    return csr_array((values[:size], columns[:size], row_ends), shape=shape)


@compiled
def _sum_tiers(
    first_hop: IntArray,
    links: IntArray,
    flows: IntArray,
    starts: IntArray,
    stops: IntArray,
    remaining: FloatArray,
    loads: FloatArray,
    row_ends: IntArray,
    columns: IntArray,
    values: FloatArray,
) -> None:
    for tier in range(len(starts)):
        begin = row_ends[tier]
        used = columns[begin:]
        num_used = add_loads(first_hop, links, flows, starts[tier], stops[tier], remaining, loads, used)
        for index in range(num_used):
            values[begin + index] = loads[used[index]]
            loads[used[index]] = 0.0
        row_ends[tier + 1] = begin + num_used


@compiled
def add_loads(
    first_hop: IntArray,
    links: IntArray,
    flows: IntArray,
    start: int,
    stop: int,
    remaining: FloatArray,
    loads: FloatArray,
    used: IntArray,
) -> int:
    """Sum a tier's bytes by link, list the links it uses, and return their number; ``loads`` must be 0 before."""
    num_used = 0
    for position in range(start, stop):
        flow = flows[position]
        if remaining[flow] > 0.0:
            for hop in range(first_hop[flow], first_hop[flow + 1]):
                link = links[hop]
                if loads[link] == 0.0:
                    used[num_used] = link
                    num_used += 1
                loads[link] += remaining[flow]
    return num_used
