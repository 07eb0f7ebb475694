"""Coflows on one big switch under exact max-min fair sharing: every flow alike, whatever coflow it is of.

Flows between the same two ports have the same rate always, so they are one bundle, of as many flows as have not ended.
What each of its flows has been sent counts for the bundle as a whole, and a flow ends when that has grown by its size
since it came. An event costs what there are bundles, of which there are never more than pairs of ports.
"""

import numpy as np

from controller.policy.rates.machine_code import compiled
from controller.policy.rates.network import FloatArray, IntArray
from controller.policy.rates.port_pairs import port_shares
from simulator.big_switch import BigSwitch

_NOTHING = 1e-9
"""What has less than this share of itself left has ended."""
_NONE = -1


def share_fairly(switch: BigSwitch, arrivals_s: FloatArray, *, at_every_flow: bool) -> FloatArray:
    """When each coflow ends, all of them in order of arrival.

    Rates are set anew as coflows come and end and, with ``at_every_flow``, as flows end.
    """
    ends_s = np.zeros(len(arrivals_s))
    num_ports = switch.num_links // 2
    _share(
        *(switch.starts, switch.coflow_of, switch.links[::2], switch.links[1::2] - num_ports, switch.size_bytes),
        *(switch.port_bytes_per_s, num_ports, arrivals_s, at_every_flow, ends_s),
    )
    return ends_s


@compiled
def _share(
    starts: IntArray,
    coflow_of: IntArray,
    sources: IntArray,
    destinations: IntArray,
    size_bytes: FloatArray,
    capacity: float,
    num_ports: int,
    arrivals: FloatArray,
    at_every_flow: bool,
    ends: FloatArray,
) -> None:
    """Bundle b has the flows ``first[b]``, ``following[first[b]]`` and so on, in the order in which they end.

    Flow f ends when each flow of its bundle has been sent ``targets[f]`` bytes, and the next one in ``to_go[b]`` bytes.
    """
    num_bundles = num_ports * num_ports
    first, following = np.full(num_bundles, _NONE), np.full(len(size_bytes), _NONE)
    targets, to_go = np.empty(len(size_bytes)), np.zeros(num_bundles)
    active, rates = np.empty(num_bundles, np.int64), np.empty(num_bundles)
    from_ingress, from_egress = np.zeros((num_ports, num_ports)), np.zeros((num_ports, num_ports))
    left, shares = np.empty(2 * num_ports), np.empty(2 * num_ports)
    num_flows = np.diff(starts)
    num_active, come, now = 0, 0, 0.0
    is_changed = False
    while come < len(arrivals) or num_active:
        if is_changed:
            port_shares(from_ingress, from_egress, capacity, left, shares)
            for position in range(num_active):
                bundle = active[position]
                rates[position] = min(shares[bundle // num_ports], shares[num_ports + bundle % num_ports])
        step = np.inf
        for position in range(num_active):
            step = min(step, to_go[active[position]] / rates[position])
        is_arrival = come < len(arrivals) and now + step >= arrivals[come]
        if is_arrival:
            step = max(arrivals[come] - now, 0.0)
            now = arrivals[come]
        else:
            now += step
        is_changed = is_arrival or at_every_flow

        num_left = 0
        for position in range(num_active):
            bundle = active[position]
            to_go[bundle] -= rates[position] * step
            flow = first[bundle]
            while flow != _NONE and to_go[bundle] <= _NOTHING * size_bytes[flow]:
                after = following[flow]
                to_go[bundle] += targets[after] - targets[flow] if after != _NONE else 0.0
                from_ingress[sources[flow], destinations[flow]] -= 1.0
                from_egress[destinations[flow], sources[flow]] -= 1.0
                num_flows[coflow_of[flow]] -= 1
                if not num_flows[coflow_of[flow]]:
                    ends[coflow_of[flow]] = now
                    is_changed = True
                flow = after
            first[bundle] = flow
            if flow != _NONE:
                active[num_left], rates[num_left] = bundle, rates[position]
                num_left += 1
        num_active = num_left

        while come < len(arrivals) and arrivals[come] <= now:
            for flow in range(starts[come], starts[come + 1]):
                bundle = sources[flow] * num_ports + destinations[flow]
                if first[bundle] == _NONE:
                    active[num_active] = bundle
                    num_active += 1
                    targets[flow] = to_go[bundle] = size_bytes[flow]
                    first[bundle], following[flow] = flow, _NONE
                else:
                    sent = targets[first[bundle]] - to_go[bundle]
                    targets[flow] = sent + size_bytes[flow]
                    first[bundle] = _inserted(flow, first[bundle], targets, following)
                    to_go[bundle] = targets[first[bundle]] - sent
                from_ingress[sources[flow], destinations[flow]] += 1.0
                from_egress[destinations[flow], sources[flow]] += 1.0
            come += 1


@compiled
def _inserted(flow: int, first: int, targets: FloatArray, following: IntArray) -> int:
    """Put a flow where it belongs in a list of flows by when they end; returns the list's first."""
    before, after = _NONE, first
    while after != _NONE and targets[after] <= targets[flow]:
        before, after = after, following[after]
    following[flow] = after
    if before == _NONE:
        return flow
    following[before] = flow
    return first
