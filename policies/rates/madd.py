"""Minimum allocation for desired duration (MADD) with work-conserving backfill: the rates of Varys.

Varys (Chowdhury et al., SIGCOMM 2014): the flows of a group need not end before its slowest one can, so each gets just
the rate with which all end together. Groups are served in order, each on what those before it left. A group that needs
a link which is used up waits. What is left then is handed out flow by flow in the same order.

The duration of a group is the smallest that its links allow. ``policies.rates.echelon`` has the durations that ideal
finish times ask for; order, tiers and backfill are the same.
"""

import numpy as np

from policies.jit import compiled
from policies.rates.loads import add_loads
from policies.rates.network import FloatArray, IntArray, Network, Order, check_values
from policies.rates.order_greedy import hand_out

_NOTHING_LEFT = 1e-12
"""A link with less than this share of its capacity left counts as used up; the rest is rounding."""


def madd(network: Network, order: Order, remaining_bytes: FloatArray) -> FloatArray:
    """Return the rate of every flow in ``order.flows``, in bit/s; 0 for a flow with nothing left to send.

    Finished flows may stay in the order. Linear in the hops of the active flows.

    Args:
        network: Links and paths.
        order: The active flows; a tier is a flow group.
        remaining_bytes: By flow number.

    Raises:
        ValueError: Remaining bytes of an active flow are negative or not finite.
    """
    check_values(remaining_bytes, "remaining_bytes", network, order)
    rates_bps, left = np.zeros(len(order.flows)), network.full_capacities(order)
    where = network.starts, network.links, order.flows, order.starts, order.stops
    sums, used = network.scratch.sums, network.scratch.used
    _reserve(*where, remaining_bytes, network.capacities_bps, left, sums, used, rates_bps)
    hand_out(*where, remaining_bytes, left, rates_bps)
    return rates_bps


@compiled
def _reserve(
    first_hop: IntArray,
    links: IntArray,
    flows: IntArray,
    starts: IntArray,
    stops: IntArray,
    remaining: FloatArray,
    capacities: FloatArray,
    left: FloatArray,
    loads: FloatArray,
    used: IntArray,
    rates: FloatArray,
) -> None:
    """Give group after group the rates with which it ends soonest on what is left."""
    for tier in range(len(starts)):
        end_together(
            first_hop, links, flows, starts[tier], stops[tier], remaining, 0.0, capacities, left, loads, used, rates
        )


@compiled
def end_together(
    first_hop: IntArray,
    links: IntArray,
    flows: IntArray,
    start: int,
    stop: int,
    remaining: FloatArray,
    shortest: float,
    capacities: FloatArray,
    left: FloatArray,
    loads: FloatArray,
    used: IntArray,
    rates: FloatArray,
) -> None:
    """Give flows the rates with which all end together: as soon as the links allow, but not before ``shortest``.

    They get nothing where a link that they need is used up. ``shortest`` is a duration in the units of ``remaining``
    over ``left``. ``loads`` is 0 before and after.
    """
    num_used = add_loads(first_hop, links, flows, start, stop, remaining, loads, used)
    duration = reserve_loads(used, num_used, shortest if num_used else 0.0, capacities, left, loads)
    if 0.0 < duration < np.inf:
        for position in range(start, stop):
            rates[position] = remaining[flows[position]] / duration


@compiled
def reserve_loads(
    used: IntArray, num_used: int, shortest: float, capacities: FloatArray, left: FloatArray, loads: FloatArray
) -> float:
    """Reserve what sends the loads of the ``used`` links in one time, the shortest they allow, and return this time.

    It is at least ``shortest``. Where a link is used up it is infinite, and nothing is reserved. ``loads`` is 0
    afterwards.
    """
    duration = shortest
    for index in range(num_used):
        link = used[index]
        duration = max(duration, loads[link] / left[link])
    for index in range(num_used):
        link = used[index]
        left[link] -= loads[link] / duration
        if left[link] < _NOTHING_LEFT * capacities[link]:
            left[link] = 0.0
        loads[link] = 0.0
    return duration
