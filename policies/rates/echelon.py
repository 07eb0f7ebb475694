"""MADD for EchelonFlows: every flow just as fast as keeps its group in formation, with work-conserving backfill.

EchelonFlow (Pan et al., HotNets 2022, section 3.3, property 4) adapts MADD by its metric: inside a group the flow with
the largest tardiness sets the rates. ``docs/echelonflow.md`` derives what follows. If the latest flow must be z late,
the group is z late whatever the others do. Each of these may then end z after its ideal finish too, and no link should
carry it faster. Flows of one ideal finish are a coflow, a *stage*, and end together.

On each link, z is at least the time for the bytes of the first k stages less the time until the ideal finish of the
k-th. On one link, serving in order of ideal finish reaches this, and nothing does better. A group's z is the largest
over its links, on what the groups before it left. Stage after stage then gets the rates to end z after its ideal
finish, or as soon after as its links allow. With one stage this equals MADD to the last bit.
"""

import numpy as np

from policies.jit import compiled
from policies.rates.madd import end_together
from policies.rates.network import FloatArray, IntArray, Network, Order, check_values
from policies.rates.order_greedy import hand_out

_EIGHTH = 0.125
"""Remaining bytes over bit/s give eighths of seconds. Due times are compared in this unit, which rounds nothing."""


def echelon_madd(network: Network, order: Order, remaining_bytes: FloatArray, due_s: FloatArray) -> FloatArray:
    """Return the rate of every flow in ``order.flows``, in bit/s. Linear in the hops of the active flows.

    Args:
        network: Links and paths.
        order: The active flows; a tier is a flow group, its flows in order of ``due_s``.
        remaining_bytes: By flow number.
        due_s: By flow number, how long from now the flow may take without making its group later than it is: its ideal
            finish, plus the tardiness of those of the group that have ended (0 if less), minus now.

    Raises:
        ValueError: For an active flow, remaining bytes are negative or not finite, ``due_s`` is not finite, or is
            smaller than that of the flow before it in its tier; the message names the flow.
    """
    _check(network, order, remaining_bytes, due_s)
    rates_bps, left = np.zeros(len(order.flows)), network.full_capacities(order)
    where = network.starts, network.links, order.flows, order.starts, order.stops
    sums, used = network.scratch.sums, network.scratch.used
    _reserve(*where, remaining_bytes, due_s, network.capacities_bps, left, sums, used, rates_bps)
    hand_out(*where, remaining_bytes, left, rates_bps)
    return rates_bps


def further_tardiness_s(network: Network, order: Order, remaining_bytes: FloatArray, due_s: FloatArray) -> FloatArray:
    """Return by tier how much later than ``due_s`` the group's latest flow would end if the group were served alone.

    This is the bound of the module's docstring with the whole capacities of the links. It is negative where all flows
    can still end before they are due, and minus infinity without anything to send. Arguments, cost and errors as for
    ``echelon_madd``.
    """
    _check(network, order, remaining_bytes, due_s)
    late, left = np.empty(len(order.starts)), network.full_capacities(order)
    where = network.starts, network.links, order.flows, order.starts, order.stops
    _project(*where, remaining_bytes, due_s, left, network.scratch.sums, network.scratch.used, late)
    return late


def pressing_s(network: Network, order: Order, remaining_bytes: FloatArray, due_s: FloatArray) -> FloatArray:
    """Return by tier what ranks groups, least first: how long a group delays others, plus how long it can wait itself.

    Served alone in formation, stage k ends D_k from now, when the link has carried the B_k seconds' worth of all stages
    up to it. Take another group that needs h seconds. If it lets this group go first, it waits longer than this group
    would have to wait, if and only if more than h of this group's work is due within 2h. So work counts up to the last
    stage whose B_k is at least half of D_k, on the link where that is most. To this comes the time for which the group
    can wait without getting later than it is. With one stage that is due no later than it can end, the result is the
    time that its bottleneck link needs. It is 0 without anything to send. Arguments, cost and errors as for
    ``echelon_madd``.
    """
    _check(network, order, remaining_bytes, due_s)
    pressing, left = np.empty(len(order.starts)), network.full_capacities(order)
    where = network.starts, network.links, order.flows, order.starts, order.stops
    _press(*where, remaining_bytes, due_s, left, network.scratch.sums, network.scratch.used, pressing)
    return pressing


def in_order_of_due(order: Order, due_s: FloatArray) -> Order:
    """Return the same tiers, the flows of each in order of ``due_s``, as ``echelon_madd`` requires.

    Ties keep their order. Flows outside all tiers are left out.
    """
    sizes = order.stops - order.starts
    ends = np.cumsum(sizes)
    starts = ends - sizes
    flows = order.flows[np.arange(sizes.sum()) + np.repeat(order.starts - starts, sizes)]
    tier_of = np.repeat(np.arange(len(sizes)), sizes)
    return Order(flows[np.lexsort((due_s[flows], tier_of))], starts, ends)


def _check(network: Network, order: Order, remaining_bytes: FloatArray, due_s: FloatArray) -> None:
    check_values(remaining_bytes, "remaining_bytes", network, order)
    if len(due_s) != network.num_flows:
        raise ValueError(f"expected due_s of {network.num_flows} flows, got {len(due_s)}")
    active = due_s[order.flows]
    if not np.isfinite(active).all():
        flow = int(order.flows[(~np.isfinite(active)).argmax()])
        raise ValueError(f"flow {flow}: due_s must be finite, not {due_s[flow]}")
    position = _first_out_of_order(order.flows, order.starts, order.stops, due_s)
    if position >= 0:
        flow = int(order.flows[position])
        raise ValueError(f"flow {flow}: due_s, {due_s[flow]}, is smaller than that of the flow before it in its tier")


@compiled
def _first_out_of_order(flows: IntArray, starts: IntArray, stops: IntArray, due: FloatArray) -> int:
    for tier in range(len(starts)):
        for position in range(starts[tier] + 1, stops[tier]):
            if due[flows[position]] < due[flows[position - 1]]:
                return position
    return -1


@compiled
def _reserve(
    first_hop: IntArray,
    links: IntArray,
    flows: IntArray,
    starts: IntArray,
    stops: IntArray,
    remaining: FloatArray,
    due: FloatArray,
    capacities: FloatArray,
    left: FloatArray,
    loads: FloatArray,
    used: IntArray,
    rates: FloatArray,
) -> None:
    """Give group after group, stage after stage, the rates that keep it in formation on what is left."""
    for tier in range(len(starts)):
        stop = stops[tier]
        head = _head(flows, starts[tier], stop, remaining)
        if head == stop:
            continue
        head_due = due[flows[head]]
        # Count from the end of the head: for a single stage this gives the duration of MADD without rounding.
        first_end = _earliest_end(first_hop, links, flows, head, stop, remaining, due, left, loads, used)
        first_end = max(first_end, head_due * _EIGHTH)
        if first_end == np.inf:
            continue
        start = head
        while start < stop:
            stage_due = due[flows[start]]
            end = start + 1
            while end < stop and due[flows[end]] == stage_due:
                end += 1
            shortest = first_end + (stage_due - head_due) * _EIGHTH
            end_together(first_hop, links, flows, start, end, remaining, shortest, capacities, left, loads, used, rates)
            start = end


@compiled
def _project(
    first_hop: IntArray,
    links: IntArray,
    flows: IntArray,
    starts: IntArray,
    stops: IntArray,
    remaining: FloatArray,
    due: FloatArray,
    left: FloatArray,
    loads: FloatArray,
    used: IntArray,
    late: FloatArray,
) -> None:
    for tier in range(len(starts)):
        stop = stops[tier]
        head = _head(flows, starts[tier], stop, remaining)
        late[tier] = -np.inf
        if head < stop:
            end = _earliest_end(first_hop, links, flows, head, stop, remaining, due, left, loads, used)
            late[tier] = end / _EIGHTH - due[flows[head]]


@compiled
def _press(
    first_hop: IntArray,
    links: IntArray,
    flows: IntArray,
    starts: IntArray,
    stops: IntArray,
    remaining: FloatArray,
    due: FloatArray,
    left: FloatArray,
    loads: FloatArray,
    used: IntArray,
    pressing: FloatArray,
) -> None:
    for tier in range(len(starts)):
        stop = stops[tier]
        head = _head(flows, starts[tier], stop, remaining)
        pressing[tier] = 0.0
        if head == stop:
            continue
        head_due = due[flows[head]] * _EIGHTH
        earliest = _earliest_end(first_hop, links, flows, head, stop, remaining, due, left, loads, used)
        if earliest == np.inf:
            pressing[tier] = np.inf
            continue
        first_end = max(earliest, head_due)
        most = 0.0
        for position in range(head, stop):
            flow = flows[position]
            end = first_end + due[flow] * _EIGHTH - head_due
            if remaining[flow] > 0.0:
                for hop in range(first_hop[flow], first_hop[flow + 1]):
                    link = links[hop]
                    loads[link] += remaining[flow]
                    if 2.0 * loads[link] >= end * left[link]:
                        most = max(most, loads[link] / left[link])
        for position in range(head, stop):
            for hop in range(first_hop[flows[position]], first_hop[flows[position] + 1]):
                loads[links[hop]] = 0.0
        pressing[tier] = (most + first_end - earliest) / _EIGHTH


@compiled
def _head(flows: IntArray, start: int, stop: int, remaining: FloatArray) -> int:
    """Return the position of the first flow that has something left; ``stop`` if none has."""
    while start < stop and remaining[flows[start]] == 0.0:
        start += 1
    return start


@compiled
def _earliest_end(
    first_hop: IntArray,
    links: IntArray,
    flows: IntArray,
    head: int,
    stop: int,
    remaining: FloatArray,
    due: FloatArray,
    left: FloatArray,
    loads: FloatArray,
    used: IntArray,
) -> float:
    """Return how long from now the head takes if all flows are to be equally late, and no later than links make them.

    The result is in eighths of seconds. Every link's bytes are summed in order of ideal finish: when a stage is
    complete, its sum is what must have passed by its end. ``loads`` is 0 before and after.
    """
    end = 0.0
    num_used = 0
    head_due = due[flows[head]]
    for position in range(head, stop):
        flow = flows[position]
        if remaining[flow] > 0.0:
            after_head = (due[flow] - head_due) * _EIGHTH
            for hop in range(first_hop[flow], first_hop[flow + 1]):
                link = links[hop]
                if loads[link] == 0.0:
                    used[num_used] = link
                    num_used += 1
                loads[link] += remaining[flow]
                end = max(end, loads[link] / left[link] - after_head)
    for index in range(num_used):
        loads[used[index]] = 0.0
    return end
