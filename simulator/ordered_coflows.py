"""Coflows on one big switch, served in an order by MADD or order-greedy, from one flow's end to the next.

The rates are those of ``policies.rates``, by the same kernels, but not every flow is visited at every event. Under MADD
the flows of a coflow keep their proportions, except for the few that get extra bandwidth. So a flow's remaining bytes
are a share of one number of its coflow, and an event touches coflows, their links, and those few flows. They are no
more than the links, because each of them uses up a link.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from policies.jit import compiled
from policies.rates.madd import reserve_loads
from policies.rates.network import FloatArray, IntArray
from policies.rates.order_greedy import take_all
from simulator.big_switch import PORTS_PER_WORD, BigSwitch

_NOTHING = 1e-9
"""A flow with less than this share of its size left has ended."""


@dataclass(frozen=True, slots=True, eq=False)
class OrderedState:
    """Remaining bytes: ``shares[f] * scales[c]`` for flow f of coflow c, and likewise for demands.

    ``num_flows`` counts the remaining flows by coflow, ``num_in_demand`` by demand. ``unfinished`` has their ingress
    ports, like ``BigSwitch.sources``.
    """

    shares: FloatArray
    scales: FloatArray
    demand_shares: FloatArray
    num_in_demand: IntArray
    num_flows: IntArray
    unfinished: IntArray

    @classmethod
    def of(cls, switch: BigSwitch) -> Self:
        """Return the state in which nothing has been sent."""
        num_demands = len(switch.demand_links)
        return cls(
            shares=switch.size_bytes.copy(),
            scales=np.ones(len(switch.starts) - 1),
            demand_shares=np.bincount(switch.demands_of, np.repeat(switch.size_bytes, 2), num_demands).astype(float),
            num_in_demand=np.bincount(switch.demands_of, minlength=num_demands),
            num_flows=np.diff(switch.starts),
            unfinished=switch.sources.copy(),
        )

    def demand_bytes(self, switch: BigSwitch) -> FloatArray:
        """Return the remaining bytes of every demand."""
        widths = np.diff(switch.first_demand)
        return self.demand_shares * np.repeat(self.scales, widths)


def serve(
    switch: BigSwitch,
    state: OrderedState,
    order: IntArray,
    now_s: float,
    until_s: float,
    *,
    reserves: bool,
    at_every_flow: bool,
) -> float:
    """Serve coflows in an order until one of them ends, at most until a time; return the time reached.

    ``reserves`` selects MADD, otherwise order-greedy. With ``at_every_flow``, rates are recomputed when a flow ends.
    Otherwise they hold, unless no coflow could ever end at these rates and none is to arrive; then they are recomputed
    at the next end of a flow.
    """
    capacities_bytes_per_s = np.full(switch.num_links, switch.port_bytes_per_s)
    return _serve(
        switch.first_hop, switch.links, switch.coflow_of, switch.first_demand, switch.demand_links, switch.demands_of,
        switch.first_flow, switch.sources, switch.num_before, state.shares, state.scales, state.demand_shares,
        state.num_in_demand, state.num_flows, state.unfinished, capacities_bytes_per_s, order, now_s, until_s, reserves,
        at_every_flow,
    )  # fmt: skip


@compiled
def _serve(
    first_hop: IntArray,
    links: IntArray,
    coflow_of: IntArray,
    first_demand: IntArray,
    demand_links: IntArray,
    demands_of: IntArray,
    first_flow: IntArray,
    sources: IntArray,
    num_before: IntArray,
    shares: FloatArray,
    scales: FloatArray,
    demand_shares: FloatArray,
    num_in_demand: IntArray,
    num_flows: IntArray,
    unfinished: IntArray,
    capacities_bytes_per_s: FloatArray,
    order: IntArray,
    now_s: float,
    until_s: float,
    reserves: bool,
    at_every_flow: bool,
) -> float:
    num_links = len(capacities_bytes_per_s)
    left, load_bytes = np.empty(num_links), np.zeros(num_links)
    used = np.empty(num_links, np.int64)
    extra_flows, extra_bytes_per_s = np.empty(num_links, np.int64), np.empty(num_links)
    durations_s, last_ends_s = np.empty(len(scales)), np.empty(len(scales))
    num_extra_of = np.zeros(len(scales), np.int64)
    has_ended = False
    while not has_ended and now_s < until_s:
        left[:] = capacities_bytes_per_s
        for coflow in order:
            durations_s[coflow] = np.inf
            num_used, is_blocked = 0, not reserves
            for demand in range(first_demand[coflow], first_demand[coflow + 1]):
                if is_blocked:
                    break
                if num_in_demand[demand]:
                    link = used[num_used] = demand_links[demand]
                    load_bytes[link] = demand_shares[demand] * scales[coflow]
                    num_used += 1
                    is_blocked = left[link] == 0.0
            if not is_blocked:
                durations_s[coflow] = reserve_loads(used, num_used, 0.0, capacities_bytes_per_s, left, load_bytes)
        num_extra = _hand_out(
            *(first_hop, links, first_demand, demand_links, first_flow, sources, num_before, unfinished, order, left),
            *(extra_flows, extra_bytes_per_s),
        )

        # Find the first end of a flow, and of a coflow, which ends with its last flow.
        for coflow in order:
            num_extra_of[coflow], last_ends_s[coflow] = 0, 0.0
        next_flow_s, next_coflow_s = np.inf, np.inf
        for index in range(num_extra):
            flow = extra_flows[index]
            coflow = coflow_of[flow]
            remaining_bytes = shares[flow] * scales[coflow]
            end_s = remaining_bytes / (remaining_bytes / durations_s[coflow] + extra_bytes_per_s[index])
            num_extra_of[coflow] += 1
            last_ends_s[coflow] = max(last_ends_s[coflow], end_s)
            next_flow_s = min(next_flow_s, end_s)
        for coflow in order:
            next_flow_s = min(next_flow_s, durations_s[coflow])
            alone = num_extra_of[coflow] < num_flows[coflow]
            next_coflow_s = min(next_coflow_s, durations_s[coflow] if alone else last_ends_s[coflow])
        step_s = next_flow_s if at_every_flow or (next_coflow_s == np.inf and until_s == np.inf) else next_coflow_s
        if now_s + step_s >= until_s:
            step_s = until_s - now_s
            now_s = until_s
        else:
            now_s += step_s

        for coflow in order:
            rest = 1.0 - step_s / durations_s[coflow]
            if rest < _NOTHING:
                num_flows[coflow] = 0
                has_ended = True
            else:
                scales[coflow] *= rest
        for index in range(num_extra):
            flow = extra_flows[index]
            coflow = coflow_of[flow]
            if num_flows[coflow]:
                sent = extra_bytes_per_s[index] * step_s / scales[coflow]
                ends = sent >= shares[flow] * (1.0 - _NOTHING)
                sent = shares[flow] if ends else sent
                shares[flow] -= sent
                for end in range(2):
                    demand = demands_of[2 * flow + end]
                    demand_shares[demand] -= sent
                    if ends:
                        num_in_demand[demand] -= 1
                        if not num_in_demand[demand]:
                            demand_shares[demand] = 0.0
                if ends:
                    port = links[2 * flow]
                    unfinished[demands_of[2 * flow + 1], port // PORTS_PER_WORD] ^= 1 << (port % PORTS_PER_WORD)
                    num_flows[coflow] -= 1
                    has_ended = has_ended or not num_flows[coflow]
    return now_s


@compiled
def _hand_out(
    first_hop: IntArray,
    links: IntArray,
    first_demand: IntArray,
    demand_links: IntArray,
    first_flow: IntArray,
    sources: IntArray,
    num_before: IntArray,
    unfinished: IntArray,
    order: IntArray,
    left: FloatArray,
    flows: IntArray,
    rates_bytes_per_s: FloatArray,
) -> int:
    """List the flows that get remaining bandwidth, in order, with their rates; return their number.

    Only flows are visited whose ingress and egress ports have bandwidth left, word by word.
    """
    num_words, num_ports = sources.shape[1], len(left) // 2
    usable = np.zeros(num_words, np.int64)
    for port in range(num_ports):
        if left[port] > 0.0:
            usable[port // PORTS_PER_WORD] |= 1 << (port % PORTS_PER_WORD)
    number = 0
    for coflow in order:
        if not usable.any():
            break
        for demand in range(first_demand[coflow], first_demand[coflow + 1]):
            egress = demand_links[demand]
            if egress < num_ports or left[egress] <= 0.0:
                continue
            for word in range(num_words):
                candidates = unfinished[demand, word] & usable[word]
                while candidates and left[egress] > 0.0:
                    bit = candidates & -candidates
                    candidates ^= bit
                    flow = first_flow[demand] + num_before[demand, word] + _num_bits(sources[demand, word] & (bit - 1))
                    flows[number], rates_bytes_per_s[number] = flow, take_all(first_hop, links, flow, left)
                    number += 1
                    if left[links[2 * flow]] <= 0.0:
                        usable[word] ^= bit
    return number


@compiled
def _num_bits(word: int) -> int:
    """Count the bits set among 32."""
    word -= (word >> 1) & 0x55555555
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    return ((((word + (word >> 4)) & 0x0F0F0F0F) * 0x01010101) & 0xFFFFFFFF) >> 24
