"""How bundles send: what they have left, the rates at which they share links, and when they end."""

import numpy as np

from policies.jit import compiled
from policies.model.arrays import Layout, Scratch
from policies.model.contention import reach_flows
from policies.model.picoseconds import NEVER_PS, PS_PER_S
from policies.rates.max_min import fill_tiers
from policies.rates.network import FloatArray, IntArray, fill


@compiled
def sent_bytes(remaining_bytes: float, rate_bps: float, duration_ps: int) -> float:
    """Return the bytes that a flow sends in a time, at most what it has left."""
    return min(remaining_bytes, rate_bps / 8.0 * (duration_ps / PS_PER_S))


@compiled
def set_rates(
    flows: IntArray,
    rates_bps: FloatArray,
    now_ps: int,
    remaining_bytes: FloatArray,
    present_bps: FloatArray,
    ends_ps: IntArray,
) -> None:
    """Set the rates of flows and, for rates that change, their ends."""
    for position in range(len(flows)):
        flow, rate = flows[position], rates_bps[position]
        if rate != present_bps[flow] or ends_ps[flow] == NEVER_PS:
            present_bps[flow] = rate
            if rate > 0.0:
                duration_ps = remaining_bytes[flow] / rate * 8.0 * PS_PER_S
                ends_ps[flow] = now_ps + round(duration_ps) if duration_ps < 4e18 else NEVER_PS
            else:
                ends_ps[flow] = NEVER_PS


@compiled
def reached_bundles(layout: Layout, scratch: Scratch, num_touched: int) -> IntArray:
    """Return the bundles connected to the touched ones, the most urgent first."""
    number = reach_flows(
        layout.first_hop, layout.links, scratch.touched[:num_touched], scratch.first, scratch.following,
        layout.flow_of_hop, scratch.is_found, scratch.is_seen, scratch.found, scratch.seen,
    )  # fmt: skip
    return np.sort(scratch.found[:number])


@compiled
def shared_rates_bps(layout: Layout, scratch: Scratch, flows: IntArray) -> FloatArray:
    """Compute max-min fair rates of these bundles, tier by tier."""
    num_tiers = 0
    for position in range(len(flows)):
        if not position or layout.tiers[flows[position]] != layout.tiers[flows[position - 1]]:
            scratch.starts[num_tiers] = position
            num_tiers += 1
        scratch.stops[num_tiers - 1] = position + 1
    fill(layout.first_hop, layout.links, flows, layout.capacities_bps, scratch.left)
    rates_bps = scratch.rates_bps[: len(flows)]
    rates_bps[:] = -1.0
    fill_tiers(
        layout.first_hop, layout.links, layout.places, flows, scratch.starts[:num_tiers], scratch.stops[:num_tiers],
        layout.weights, layout.capacities_bps, scratch.left, scratch.weight_on, scratch.unfixed_on,
        scratch.members_end, scratch.members, scratch.heap, scratch.shares, rates_bps,
    )  # fmt: skip
    return rates_bps
