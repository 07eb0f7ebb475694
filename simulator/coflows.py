"""Simulation of a coflow trace on one big switch under a policy."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from policies.enforcement import Allocator
from policies.open_groups import OpenGroups
from policies.policy import Policy
from policies.rates.network import FloatArray
from policies.registry import find_policy
from simulator.big_switch import BigSwitch
from simulator.coflow_options import CoflowPolicy, Recompute
from simulator.fair_coflows import share_fairly
from simulator.ordered_coflows import OrderedState, serve
from workloads.coflow_trace import CoflowTrace


@dataclass(frozen=True, slots=True, eq=False)
class CoflowRun:
    """Arrivals and ends of the coflows of a trace, in its order."""

    arrivals_s: FloatArray
    ends_s: FloatArray

    @property
    def average_cct_s(self) -> float:
        """Mean coflow completion time."""
        return float((self.ends_s - self.arrivals_s).mean())

    @property
    def p95_cct_s(self) -> float:
        """95th percentile of the completion times, linearly interpolated."""
        return float(np.percentile(self.ends_s - self.arrivals_s, 95))

    @property
    def makespan_s(self) -> float:
        """Time from the first arrival to the last end."""
        return float(self.ends_s.max() - self.arrivals_s.min())


def run_coflows(
    trace: CoflowTrace, policy: CoflowPolicy, recompute: Recompute, port_bps: float, *, offline: bool = False
) -> CoflowRun:
    """Run a trace on ports of this rate; with ``offline``, all coflows arrive at time 0.

    Coflows are ordered at arrivals and ends, whenever rates are recomputed.
    """
    arrivals_s = np.zeros_like(trace.arrivals_s) if offline else trace.arrivals_s
    switch = BigSwitch.of(trace, port_bps)
    at_every_flow = recompute is Recompute.FLOW
    if policy is CoflowPolicy.FAIR:
        ends_s = share_fairly(switch, arrivals_s, at_every_flow=at_every_flow)
    else:
        ends_s = _serve_in_order(switch, arrivals_s, find_policy(policy), at_every_flow=at_every_flow)
    return CoflowRun(arrivals_s, ends_s)


def _serve_in_order(switch: BigSwitch, arrivals_s: FloatArray, policy: Policy, *, at_every_flow: bool) -> FloatArray:
    reserves = policy.ideal_rates.allocator is Allocator.MADD
    assert policy.order_groups is not None  # CoflowPolicy names those that order groups
    state = OrderedState.of(switch)
    ends_s = np.zeros(len(arrivals_s))
    active, come, now_s = np.zeros(0, dtype=np.int64), 0, 0.0
    while come < len(arrivals_s) or len(active):
        next_arrival_s = arrivals_s[come] if come < len(arrivals_s) else np.inf
        if len(active):
            seconds_by_link = partial(switch.seconds_by_link, active, state.demand_bytes(switch))
            order = active[policy.order_groups(OpenGroups(arrivals_s[active], seconds_by_link))]
            times_s = now_s, next_arrival_s
            now_s = serve(switch, state, order, *times_s, reserves=reserves, at_every_flow=at_every_flow)
            has_ended = state.num_flows[active] == 0
            ends_s[active[has_ended]] = now_s
            active = active[~has_ended]
        if not len(active) or now_s >= next_arrival_s:
            now_s = max(now_s, next_arrival_s) if come < len(arrivals_s) else now_s
            until = int(arrivals_s.searchsorted(now_s, "right"))
            active = np.concatenate((active, np.arange(come, until)))
            come = until
    return ends_s
