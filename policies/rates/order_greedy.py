"""Order-greedy rates: every flow in turn takes all that its links have left.

Sincronia (Agarwal et al., SIGCOMM 2018) proves that with its order, any rates that keep the order and leave no link
idle are within a factor of four of the best weighted completion time. This is the simplest such rule. Flows of one tier
go in the order in which they stand. Linear in the hops of the active flows.
"""

import numpy as np

from policies.jit import compiled
from policies.rates.network import FloatArray, IntArray, Network, Order, check_values


def order_greedy(network: Network, order: Order, remaining_bytes: FloatArray) -> FloatArray:
    """Return the rate of every flow in ``order.flows``, in bit/s; 0 for a flow with nothing left to send.

    Args:
        network: Links and paths.
        order: The active flows.
        remaining_bytes: By flow number.

    Raises:
        ValueError: Remaining bytes of an active flow are negative or not finite.
    """
    check_values(remaining_bytes, "remaining_bytes", network, order)
    rates_bps, left = np.zeros(len(order.flows)), network.full_capacities(order)
    hand_out(network.starts, network.links, order.flows, order.starts, order.stops, remaining_bytes, left, rates_bps)
    return rates_bps


@compiled
def hand_out(
    first_hop: IntArray,
    links: IntArray,
    flows: IntArray,
    starts: IntArray,
    stops: IntArray,
    remaining: FloatArray,
    left: FloatArray,
    rates: FloatArray,
) -> None:
    """Add to the rates, flow by flow, what is left on the links; ``left`` keeps what no flow can use."""
    for tier in range(len(starts)):
        for position in range(starts[tier], stops[tier]):
            flow = flows[position]
            if remaining[flow] > 0.0:
                rates[position] += take_all(first_hop, links, flow, left)


@compiled
def take_all(first_hop: IntArray, links: IntArray, flow: int, left: FloatArray) -> float:
    """Take from ``left`` all that a flow can use, and return it. One of the flow's links then has nothing left."""
    rate = np.inf
    for hop in range(first_hop[flow], first_hop[flow + 1]):
        rate = min(rate, left[links[hop]])
    if rate > 0.0:
        for hop in range(first_hop[flow], first_hop[flow + 1]):
            left[links[hop]] -= rate
    return rate
