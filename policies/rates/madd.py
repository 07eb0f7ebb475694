"""Minimum allocation for desired duration (MADD), with work-conserving backfill: the rates of Varys.

Varys (Chowdhury et al., SIGCOMM 2014): the flows of a group need not end before its slowest one can, so
each gets just the rate with which all end together. The groups are served in order, each on what those before it left;
one that finds a link of its own used up waits. What then is left is handed out flow by flow in the same order. A flow
that has nothing left to send gets nothing, so that finished flows may stay in an order until it suits the caller.

A group's duration is the smallest its links allow. Where ideal finish times ask for other durations, they are those of
``policies.rates.echelon``; order, tiers and backfill are the same.
"""

import numpy as np

from policies.jit import compiled
from policies.rates.loads import add_loads
from policies.rates.network import FloatArray, IntArray, Network, Order, check_values
from policies.rates.order_greedy import hand_out

_NOTHING_LEFT = 1e-12
"""A link with less than this share of its capacity left counts as used up: what is there is rounding."""


def madd(network: Network, order: Order, remaining_bytes: FloatArray) -> FloatArray:
    """Rate of every flow in ``order.flows``, in bit/s; a tier is a flow group, ``remaining_bytes`` is by flow number.

    Linear in the hops of the active flows. Raises ValueError for an active flow's remaining bytes that are negative or
    not finite.
    """
    check_values(remaining_bytes, "remaining_bytes", network, order)
    rates_bps, left = np.zeros(len(order.flows)), network.untouched(order)
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
    """Give flows the rates with which all end after the same time: as soon as the links allow, not before ``shortest``.

    They get nothing where a link that they need is used up. ``shortest`` is a duration by the units of ``remaining``
    and ``left``; ``loads`` must be 0 before, and is afterwards.
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
    """Reserve on the links ``used`` what sends their loads in one time, the shortest they allow, which it returns.

    At least ``shortest``; infinite, and nothing is reserved, where one of them is used up. ``loads`` are 0 afterwards.
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
