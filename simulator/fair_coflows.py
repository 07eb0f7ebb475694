"""Coflows on one big switch under exact max-min fair sharing of flows.

Flows between the same two ports always have the same rate, so they form a bundle with as many flows as remain. Each
bundle counts the bytes sent to each of its flows; a flow ends when that count has grown by the flow's size. An event
costs time in proportion to the bundles, at most one per pair of ports.
"""

import numpy as np

from policies.jit import compiled
from policies.rates.network import FloatArray, IntArray
from policies.rates.port_pairs import port_shares
from simulator.big_switch import BigSwitch

_NOTHING = 1e-9
"""A flow with less than this share of its size left has ended."""
_NONE = -1


def share_fairly(switch: BigSwitch, arrivals_s: FloatArray, *, at_every_flow: bool) -> FloatArray:
    """Return the end of each coflow, in order of arrival.

    Rates are recomputed when coflows arrive and end, and with ``at_every_flow`` also when flows end.
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
    capacity_bytes_per_s: float,
    num_ports: int,
    arrivals_s: FloatArray,
    at_every_flow: bool,
    ends_s: FloatArray,
) -> None:
    """Bundle b has the flows ``first[b]``, ``following[first[b]]`` and so on, in the order of their ends.

    Flow f ends when each flow of its bundle has received ``target_bytes[f]``; the next one does in ``to_go_bytes[b]``.
    """
    num_bundles = num_ports * num_ports
    first, following = np.full(num_bundles, _NONE), np.full(len(size_bytes), _NONE)
    target_bytes, to_go_bytes = np.empty(len(size_bytes)), np.zeros(num_bundles)
    active, rates_bytes_per_s = np.empty(num_bundles, np.int64), np.empty(num_bundles)
    from_ingress, from_egress = np.zeros((num_ports, num_ports)), np.zeros((num_ports, num_ports))
    left, shares = np.empty(2 * num_ports), np.empty(2 * num_ports)
    num_flows = np.diff(starts)
    num_active, come, now_s = 0, 0, 0.0
    is_changed = False
    while come < len(arrivals_s) or num_active:
        if is_changed:
            port_shares(from_ingress, from_egress, capacity_bytes_per_s, left, shares)
            for position in range(num_active):
                bundle = active[position]
                rates_bytes_per_s[position] = min(shares[bundle // num_ports], shares[num_ports + bundle % num_ports])
        step_s = np.inf
        for position in range(num_active):
            step_s = min(step_s, to_go_bytes[active[position]] / rates_bytes_per_s[position])
        is_arrival = come < len(arrivals_s) and now_s + step_s >= arrivals_s[come]
        if is_arrival:
            step_s = max(arrivals_s[come] - now_s, 0.0)
            now_s = arrivals_s[come]
        else:
            now_s += step_s
        is_changed = is_arrival or at_every_flow

        num_left = 0
        for position in range(num_active):
            bundle = active[position]
            to_go_bytes[bundle] -= rates_bytes_per_s[position] * step_s
            flow = first[bundle]
            while flow != _NONE and to_go_bytes[bundle] <= _NOTHING * size_bytes[flow]:
                after = following[flow]
                to_go_bytes[bundle] += target_bytes[after] - target_bytes[flow] if after != _NONE else 0.0
                from_ingress[sources[flow], destinations[flow]] -= 1.0
                from_egress[destinations[flow], sources[flow]] -= 1.0
                num_flows[coflow_of[flow]] -= 1
                if not num_flows[coflow_of[flow]]:
                    ends_s[coflow_of[flow]] = now_s
                    is_changed = True
                flow = after
            first[bundle] = flow
            if flow != _NONE:
                active[num_left], rates_bytes_per_s[num_left] = bundle, rates_bytes_per_s[position]
                num_left += 1
        num_active = num_left

        while come < len(arrivals_s) and arrivals_s[come] <= now_s:
            for flow in range(starts[come], starts[come + 1]):
                bundle = sources[flow] * num_ports + destinations[flow]
                if first[bundle] == _NONE:
                    active[num_active] = bundle
                    num_active += 1
                    target_bytes[flow] = to_go_bytes[bundle] = size_bytes[flow]
                    first[bundle], following[flow] = flow, _NONE
                else:
                    sent_bytes = target_bytes[first[bundle]] - to_go_bytes[bundle]
                    target_bytes[flow] = sent_bytes + size_bytes[flow]
                    first[bundle] = _inserted(flow, first[bundle], target_bytes, following)
                    to_go_bytes[bundle] = target_bytes[first[bundle]] - sent_bytes
                from_ingress[sources[flow], destinations[flow]] += 1.0
                from_egress[destinations[flow], sources[flow]] += 1.0
            come += 1


@compiled
def _inserted(flow: int, first: int, target_bytes: FloatArray, following: IntArray) -> int:
    """Insert a flow into a list sorted by end; return the first of the list."""
    before, after = _NONE, first
    while after != _NONE and target_bytes[after] <= target_bytes[flow]:
        before, after = after, following[after]
    following[flow] = after
    if before == _NONE:
        return flow
    following[before] = flow
    return first
