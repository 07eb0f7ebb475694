"""One switch with 8 hosts on the flow-level simulator: how long collectives take between them.

The links of two hosts are slow, those of the others have 10 Gbit/s; each link has two directions. A ring is one flow
from each host to the next. A ring is as fast as its slowest flow, for each host sends on what it has received.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from experiments.compression.conditions import FAST_BPS, Condition, Conditions
from policies.enforcement import Allocator
from policies.model.bundles import Bundles
from policies.model.picoseconds import NEVER_PS, PS_PER_S
from policies.rates.network import FloatArray, Network
from simulator.fluid import ALLOCATIONS, Fluid

HOSTS = 8
SLOW_HOSTS = (0, 4)
HOP_S = 25e-6
"""From one host to another for a message without content: a switch and two stacks in a data centre."""
_ENDLESS_BYTES = 1e15


class Pattern(StrEnum):
    """Which hosts send to which."""

    RING = "ring"
    """Each to the next."""
    EXCHANGE = "exchange"
    """Each to each other one."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """One collective on the wire.

    Attributes:
        pattern: Who sends to whom.
        flow_bytes: Of each flow.
        hops: Messages that wait for each other.
    """

    pattern: Pattern
    flow_bytes: float
    hops: int


def all_reduce(size_bytes: float) -> Transfer:
    """Return a ring all-reduce of so many bytes: 2 (W - 1) / W of them on each link, in 2 (W - 1) rounds."""
    return Transfer(Pattern.RING, 2 * (HOSTS - 1) / HOSTS * size_bytes, 2 * (HOSTS - 1))


def all_gather(payload_bytes: float) -> Transfer:
    """Return a ring all-gather of a payload of so many bytes from each host."""
    return Transfer(Pattern.RING, (HOSTS - 1) * payload_bytes, HOSTS - 1)


def exchange(part_bytes: float) -> Transfer:
    """Return an all-to-all in which each host sends so many bytes to each other one, all at once."""
    return Transfer(Pattern.EXCHANGE, part_bytes, 1)


def _pairs(pattern: Pattern) -> list[tuple[int, int]]:
    if pattern is Pattern.RING:
        return [(host, (host + 1) % HOSTS) for host in range(HOSTS)]
    return [(source, sink) for source in range(HOSTS) for sink in range(HOSTS) if source != sink]


PAIRS = {pattern: _pairs(pattern) for pattern in Pattern}
_STREAM_ENDS = ((SLOW_HOSTS[0], HOSTS), (HOSTS, SLOW_HOSTS[0]))
"""A ninth host, at the fast rate, sends the streams of others to a slow host, and receives as many."""


def _bundles(condition: Condition) -> Bundles:
    """Return all flows that there may be, under a condition: rings, exchanges, streams of others."""
    rates_bps = np.full(2 * (HOSTS + 1), FAST_BPS)
    for host in SLOW_HOSTS:
        rates_bps[[host, HOSTS + 1 + host]] = condition.rate_bps
    ends = [*PAIRS[Pattern.RING], *PAIRS[Pattern.EXCHANGE], *_STREAM_ENDS]
    paths = [(source, HOSTS + 1 + sink) for source, sink in ends]
    weights = np.ones(len(ends))
    weights[-len(_STREAM_ENDS) :] = max(condition.streams, 1)
    none = np.zeros(len(ends), dtype=np.int64)
    return Bundles(Network.of(rates_bps, paths), weights, tiers=none, levels=none, latency_ps=none)


_NUMBERS = {
    Pattern.RING: np.arange(len(PAIRS[Pattern.RING])),
    Pattern.EXCHANGE: len(PAIRS[Pattern.RING]) + np.arange(len(PAIRS[Pattern.EXCHANGE])),
}
_STREAMS = sum(map(len, PAIRS.values())) + np.arange(len(_STREAM_ENDS))


class Star:
    """The network under conditions; one collective at a time, in the order of their starts.

    What a collective takes while one condition holds is remembered.
    """

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self._remembered_s: dict[tuple[Transfer, float, int], float] = {}

    def finish_s(self, transfer: Transfer, start_s: float) -> float:
        """Return when all hosts have all of a collective that starts at a time, both in seconds."""
        return self._flows_end_s(transfer, start_s) + transfer.hops * HOP_S

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
