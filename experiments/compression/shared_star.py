"""Several jobs in virtual time on one star, on the flow-level simulator: their collectives share links by level.

Each job has its ranks on the same 8 hosts (``star``) and flows of its own, at the level and order that it has. Inside a
level flows share max-min fairly.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np

from experiments.compression.conditions import FAST_BPS
from experiments.compression.star import HOP_S, HOSTS, PAIRS, SLOW_HOSTS, Pattern, Transfer
from experiments.compression.timeline import Job, Planned, Plans, Step, Transfers, begun
from hostlib.compression.agreement import Proposal
from policies.enforcement import Allocator
from policies.model.bundles import Bundles
from policies.model.picoseconds import PS_PER_S
from policies.model.tiers import places_on_hops, tiers_and_places
from policies.rates.network import Network
from simulator.fluid import ALLOCATIONS, Fluid

_RING, _EXCHANGE = PAIRS[Pattern.RING], PAIRS[Pattern.EXCHANGE]
_FLOWS = len(_RING) + len(_EXCHANGE)
"""Of each job."""
_FIRST = {Pattern.RING: 0, Pattern.EXCHANGE: len(_RING)}
_HOPS = 2


def host_rates_bps(slow_bps: float) -> list[float]:
    """Return the rates of the hosts' links where those of the slow ones have this one: the others are never fuller."""
    return [slow_bps if host in SLOW_HOSTS else max(FAST_BPS, 2 * slow_bps) for host in range(HOSTS)]


@dataclass(frozen=True, slots=True)
class Served:
    """At which level a job sends, 7 the most urgent, and in which order at hosts, 0 first."""

    level: int = 0
    order: int = 0


Observe = Callable[[int, float, Step, Proposal], tuple[Proposal, Sequence[Served] | None]]
"""Is told the job's number, the time, and the step that has ended with what a rank measured of it. It returns what the
rank proposes, and how all jobs are served from now on where that changes."""


class SharedStar:
    """Plays jobs that share the links of a star.

    Args:
        jobs: The jobs.
        plans: By job, what its steps send.
        begins_s: By job, when its first step begins.
        rate_bps: Of the slow hosts' links.
        observe: Is told of each step; None: nobody is.

    Attributes:
        steps: By job, its steps that have ended.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        plans: Sequence[Plans],
        begins_s: Sequence[float],
        rate_bps: float,
        observe: Observe | None = None,
    ) -> None:
        self._jobs = jobs
        self._plans = plans
        self._rate_bps = rate_bps
        self._observe = observe
        self._fluid = Fluid(self._bundles([Served()] * len(jobs)), ALLOCATIONS[Allocator.MAX_MIN])
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = count()
        self._under_way: list[tuple[Transfers, Transfer] | None] = [None] * len(jobs)
        self._flows_left = [0] * len(jobs)
        self.steps: list[list[Step]] = [[] for _ in jobs]
        for number, (each, begin_s) in enumerate(zip(plans, begins_s, strict=True)):
            self._at(begin_s, partial(self._begin, number, next(each)))

    def run(self, until_s: float) -> None:
        """Play until a time."""
        until_ps = round(until_s * PS_PER_S)
        while self._fluid.now_ps < until_ps:
            next_ps = min(self._events[0][0] if self._events else until_ps, until_ps)
            for flow in self._fluid.run(next_ps):
                self._arrived(flow // _FLOWS)
            while self._events and self._events[0][0] <= self._fluid.now_ps:
                heapq.heappop(self._events)[2]()

    def _at(self, time_s: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._events, (round(time_s * PS_PER_S), next(self._numbers), do))

    def _begin(self, number: int, plan: Planned) -> None:
        self._advance(number, begun(self._jobs[number], plan, self._now_s), None)

    def _advance(self, number: int, transfers: Transfers, finish_s: float | None) -> None:
        """Have a step's next transfer begin once it can; None: its first one."""
        try:
            transfer, begin_s = next(transfers) if finish_s is None else transfers.send(finish_s)
        except StopIteration as stop:
            step, proposal = stop.value
            self._at(step.end_s, lambda: self._ended(number, step, proposal))
            return
        self._at(begin_s, lambda: self._send(number, transfers, transfer))

    def _send(self, number: int, transfers: Transfers, transfer: Transfer) -> None:
        flows = number * _FLOWS + _FIRST[transfer.pattern] + np.arange(len(PAIRS[transfer.pattern]))
        self._under_way[number] = transfers, transfer
        self._flows_left[number] = len(flows)
        self._fluid.start(flows, np.full(len(flows), float(transfer.flow_bytes)))

    def _arrived(self, number: int) -> None:
        self._flows_left[number] -= 1
        under_way = self._under_way[number]
        if self._flows_left[number] == 0 and under_way is not None:
            transfers, transfer = under_way
            self._advance(number, transfers, self._now_s + transfer.hops * HOP_S)

    def _ended(self, number: int, step: Step, proposal: Proposal) -> None:
        self.steps[number].append(step)
        if self._observe is not None:
            proposal, served = self._observe(number, self._now_s, step, proposal)
            if served is not None:
                bundles = self._bundles(served)
                self._fluid.replace_bundles(bundles, np.arange(len(bundles.weights)))
        self._begin(number, self._plans[number].send((step, proposal)))

    @property
    def _now_s(self) -> float:
        return self._fluid.now_ps / PS_PER_S

    def _bundles(self, served: Sequence[Served]) -> Bundles:
        rates_bps = np.tile(host_rates_bps(self._rate_bps), 2)
        ends = [*_RING, *_EXCHANGE] * len(served)
        paths = [(source, HOSTS + sink) for source, sink in ends]
        levels = np.repeat([each.level for each in served], _FLOWS)
        orders = np.repeat([each.order for each in served], _FLOWS)
        tiers, places = tiers_and_places(levels, orders, np.array([source for source, _ in ends]))
        hops = np.full(len(ends), _HOPS)
        network = Network.of(rates_bps, paths, places_on_hops(places, hops, hops))
        none = np.zeros(len(ends), dtype=np.int64)
        return Bundles(network, np.ones(len(ends)), tiers, levels, latency_ps=none)
