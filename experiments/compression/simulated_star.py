"""The star on the flow-level simulator: flows share links max-min fairly.

A ring is as fast as its slowest flow, for each host sends on what it has received. Messages that wait for each other
take ``hop_s`` each beside that.
"""

import numpy as np

from experiments.compression.conditions import FAST_BPS, Condition, Conditions
from experiments.compression.star import HOP_S, HOSTS, PAIRS, SLOW_HOSTS, STREAM_ENDS, Pattern, Transfer
from policies.enforcement import Allocator
from policies.model.bundles import Bundles
from policies.model.picoseconds import NEVER_PS, PS_PER_S
from policies.rates.network import FloatArray, Network
from simulator.fluid import ALLOCATIONS, Fluid

_ENDLESS_BYTES = 1e15


def _bundles(condition: Condition) -> Bundles:
    """Return all flows that there may be, under a condition: rings, exchanges, streams of others."""
    rates_bps = np.full(2 * (HOSTS + 1), FAST_BPS)
    for host in SLOW_HOSTS:
        rates_bps[[host, HOSTS + 1 + host]] = condition.rate_bps
    ends = [*PAIRS[Pattern.RING], *PAIRS[Pattern.EXCHANGE], *STREAM_ENDS]
    paths = [(source, HOSTS + 1 + sink) for source, sink in ends]
    weights = np.ones(len(ends))
    weights[-len(STREAM_ENDS) :] = max(condition.streams, 1)
    none = np.zeros(len(ends), dtype=np.int64)
    return Bundles(Network.of(rates_bps, paths), weights, tiers=none, levels=none, latency_ps=none)


_NUMBERS = {
    Pattern.RING: np.arange(len(PAIRS[Pattern.RING])),
    Pattern.EXCHANGE: len(PAIRS[Pattern.RING]) + np.arange(len(PAIRS[Pattern.EXCHANGE])),
}
_STREAMS = sum(map(len, PAIRS.values())) + np.arange(len(STREAM_ENDS))


class SimulatedStar:
    """The network under conditions; one collective at a time, in the order of their starts.

    What a collective takes while one condition holds is remembered.
    """

    def __init__(self, conditions: Conditions, hop_s: float = HOP_S) -> None:
        self._conditions = conditions
        self._hop_s = hop_s
        self._remembered_s: dict[tuple[Transfer, float, int], float] = {}

    def finish_s(self, transfer: Transfer, start_s: float) -> float:
        """Return when all hosts have all of a collective that starts at a time, both in seconds."""
        return self._flows_end_s(transfer, start_s) + transfer.hops * self._hop_s

    def _flows_end_s(self, transfer: Transfer, start_s: float) -> float:
        condition, change_s = self._conditions.at(start_s), self._conditions.change_after(start_s)
        key = (transfer, condition.rate_bps, condition.streams)
        if key not in self._remembered_s:
            self._remembered_s[key] = _Flows(transfer).run(condition)
        end_s = start_s + self._remembered_s[key]
        if end_s <= change_s:
            return end_s
        flows = _Flows(transfer)
        while end_s > change_s:
            flows.run(condition, change_s - start_s)
            start_s, condition, change_s = (
                change_s,
                self._conditions.at(change_s),
                self._conditions.change_after(change_s),
            )
            end_s = start_s + _Flows(transfer, flows.left_bytes).run(condition)
        return end_s


class _Flows:
    """The flows of a collective, on the simulator."""

    def __init__(self, transfer: Transfer, left_bytes: FloatArray | None = None) -> None:
        self._numbers = _NUMBERS[transfer.pattern]
        self.left_bytes = np.full(len(self._numbers), transfer.flow_bytes) if left_bytes is None else left_bytes

    def run(self, condition: Condition, most_s: float = float("inf")) -> float:
        """Run under a condition until all flows end, at most so long; return how long it was, in seconds."""
        fluid = Fluid(_bundles(condition), ALLOCATIONS[Allocator.MAX_MIN])
        if condition.streams:
            fluid.start(_STREAMS, np.full(len(_STREAMS), _ENDLESS_BYTES))
        is_left = self.left_bytes > 0
        fluid.start(self._numbers[is_left], self.left_bytes[is_left])
        until_ps = NEVER_PS if most_s == float("inf") else round(most_s * PS_PER_S)
        num_left = int(is_left.sum())
        while num_left and (arrived := fluid.run(until_ps)):
            num_left -= len(arrived)
        self.left_bytes = fluid.settled_bytes()[self._numbers].copy()
        return fluid.now_ps / PS_PER_S
