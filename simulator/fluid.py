"""Fluid engine: flows share links at rates that are constant between two events.

Only events cost time. When a flow starts or ends, rates change only where shared links connect flows with it: there, an
allocator of ``policies.rates`` computes new rates. A flow whose rate does not change keeps its end.

Time counts picoseconds, so that ends which coincide in arithmetic coincide here. A flow occupies its links until all
its bytes are sent; the last byte arrives after the path's latency (Hockney's alpha and beta).
"""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from policies.enforcement import Allocator, RateAllocator
from policies.jit import compiled
from policies.model.bundles import Bundles
from policies.model.contention import Contention
from policies.model.picoseconds import NEVER_PS, PS_PER_S
from policies.model.transmission import sent_bytes, set_rates
from policies.rates.echelon import echelon_madd
from policies.rates.madd import madd
from policies.rates.max_min import max_min
from policies.rates.network import FloatArray, IntArray, Network, Order
from policies.rates.order_greedy import order_greedy

NUM_LEVELS = 8

NO_BUNDLE = -1


@dataclass(frozen=True, slots=True)
class Allocation:
    """An allocator: computes rates in bit/s by flow number.

    Its arguments are the network, an order, weights, remaining bytes and seconds until due. Flows of a tier are in the
    order in which they are due. With ``joins_tiers`` flows of one tier affect each other even without a shared link, as
    in MADD.
    """

    rates_bps: Callable[[Network, Order, FloatArray, FloatArray, FloatArray], FloatArray]
    joins_tiers: bool


class Fluid:
    """Bundles of flows on one network.

    ``remaining_bytes`` and ``rates_bps`` are totals of a bundle; the former is as of the bundle's last change of rate.
    """

    def __init__(self, bundles: Bundles, allocation: Allocation) -> None:
        self.now_ps = 0
        self._allocation = allocation
        self._carried_bytes = np.zeros((len(bundles.network.capacities_bps), NUM_LEVELS))
        self._arriving: list[tuple[int, list[int]]] = []
        self._install(bundles)

    def _install(self, bundles: Bundles) -> None:
        num_bundles = bundles.network.num_flows
        self.bundles = bundles
        self._tiers = bundles.tiers
        self._due_s = np.zeros(num_bundles)
        self.contention = Contention.of(bundles.network)
        self.remaining_bytes = np.zeros(num_bundles)
        self.rates_bps = np.zeros(num_bundles)
        self._since_ps = np.zeros(num_bundles, dtype=np.int64)
        self._ends_ps = np.full(num_bundles, NEVER_PS)
        self._active = np.zeros(0, dtype=np.int64)
        self._is_paused = np.zeros(num_bundles, dtype=np.bool_)
        self._touched: list[IntArray] = []

    @property
    def active(self) -> IntArray:
        """Bundles with bytes left to send, ascending; paused ones are not included."""
        return self._active

    def replace_bundles(self, bundles: Bundles, continued: IntArray) -> None:
        """Replace the bundles; ``continued`` maps each new bundle to the old one that it continues, or to NO_BUNDLE.

        Several bundles may continue an old one; they divide its remaining bytes by weight. Raises ValueError if an
        active bundle is not continued with its whole weight.
        """
        self._settle(self._active)
        before, arriving = self.bundles, self._arriving
        remaining_bytes, is_paused = self.remaining_bytes, self._is_paused
        goes_on = continued != NO_BUNDLE
        weights = np.bincount(continued[goes_on], bundles.weights[goes_on], minlength=len(remaining_bytes))
        arriving_bundles = np.array([bundle for _, bundles in arriving for bundle in bundles], dtype=np.int64)
        under_way = np.concatenate((self._active, arriving_bundles, np.flatnonzero(is_paused)))
        if (lost := weights[under_way] != before.weights[under_way]).any():
            raise ValueError(f"bundle {under_way[lost.argmax()]}: it is under way, and not all of it goes on")
        is_active = np.zeros(len(remaining_bytes), dtype=np.bool_)
        is_active[self._active] = True
        self._install(bundles)
        heirs = np.flatnonzero(goes_on)
        self._arriving = [
            (time_ps, heirs[np.isin(continued[heirs], together)].tolist()) for time_ps, together in arriving
        ]
        heapq.heapify(self._arriving)
        old = continued[heirs]
        shares_bytes = remaining_bytes[old] * bundles.weights[heirs] / before.weights[old]
        paused, sending = is_paused[old], is_active[old]
        self._is_paused[heirs[paused]], self.remaining_bytes[heirs[paused]] = True, shares_bytes[paused]
        self._join(heirs[sending], shares_bytes[sending])

    def reorder(self, tiers: IntArray, due_s: FloatArray) -> None:
        """Change the tier and the due time of every bundle."""
        differs = (self._tiers != tiers) | (self._due_s != due_s)
        self._touched.append(self._active[differs[self._active]])
        self._tiers, self._due_s = tiers, due_s

    def start(self, bundles: IntArray, size_bytes: FloatArray) -> None:
        """Start idle bundles with so many bytes each; a bundle without bytes arrives after its latency."""
        self._send_off(bundles[size_bytes <= 0])
        self._join(bundles[size_bytes > 0], size_bytes[size_bytes > 0])

    def pause(self, bundles: IntArray) -> None:
        """Pause active bundles: they keep their remaining bytes and use no link until ``resume``."""
        self._settle(bundles)
        self.contention.leave(bundles)
        self._active = np.setdiff1d(self._active, bundles, assume_unique=True)
        self._is_paused[bundles] = True
        self.rates_bps[bundles], self._ends_ps[bundles] = 0.0, NEVER_PS
        self._touched.append(bundles)

    def resume(self, bundles: IntArray) -> None:
        """Resume paused bundles."""
        self._is_paused[bundles] = False
        self._join(bundles, self.remaining_bytes[bundles])

    def run(self, until_ps: int) -> list[int]:
        """Run until something arrives, at most until a time; return the bundles that have arrived."""
        while True:
            self._reallocate()
            end_ps = int(self._ends_ps[self._active].min(initial=NEVER_PS))
            arrival_ps = self._arriving[0][0] if self._arriving else NEVER_PS
            self.now_ps = max(self.now_ps, min(end_ps, arrival_ps, until_ps))
            if end_ps <= self.now_ps:
                self._end(self._active[self._ends_ps[self._active] <= self.now_ps])
            arrived: list[int] = []
            while self._arriving and self._arriving[0][0] <= self.now_ps:
                arrived += heapq.heappop(self._arriving)[1]
            if arrived or self.now_ps >= until_ps:
                return sorted(arrived)

    def carried_bytes(self) -> FloatArray:
        """Return the bytes that every link has carried so far, by level."""
        self._settle(self._active)
        return self._carried_bytes.copy()

    def settled_bytes(self) -> FloatArray:
        """Return the bytes that every bundle has left now."""
        self._settle(self._active)
        return self.remaining_bytes

    def _join(self, bundles: IntArray, size_bytes: FloatArray) -> None:
        if not len(bundles):
            return
        self.remaining_bytes[bundles] = size_bytes
        self._since_ps[bundles] = self.now_ps
        self.contention.join(bundles)
        self._active = np.sort(np.concatenate((self._active, bundles)))
        self._touched.append(bundles)

    def _end(self, bundles: IntArray) -> None:
        self._settle(bundles)
        self.contention.leave(bundles)
        self._active = self._active[self._ends_ps[self._active] > self.now_ps]
        self.remaining_bytes[bundles] = self.rates_bps[bundles] = 0.0
        self._ends_ps[bundles] = NEVER_PS
        self._touched.append(bundles)
        self._send_off(bundles)

    def _send_off(self, bundles: IntArray) -> None:
        """Let the last bytes of bundles travel."""
        latency_ps = self.bundles.latency_ps[bundles]
        for each_ps in set(latency_ps.tolist()):
            heapq.heappush(self._arriving, (self.now_ps + each_ps, bundles[latency_ps == each_ps].tolist()))

    def _settle(self, bundles: IntArray) -> None:
        network, levels = self.bundles.network, self.bundles.levels
        state = self._since_ps, self.rates_bps, self.remaining_bytes, self._carried_bytes
        _settle(network.starts, network.links, levels, bundles, self.now_ps, *state)

    def _affected(self, touched: IntArray) -> IntArray:
        """Return all active flows whose rates may change with the touched ones."""
        flows = self.contention.reach(touched)
        while self._allocation.joins_tiers:
            tiers = np.union1d(self._tiers[touched], self._tiers[flows])
            joined = self._active[np.isin(self._tiers[self._active], tiers)]
            wider = self.contention.reach(np.union1d(flows, joined))
            if len(wider) == len(flows):
                break
            flows = wider
        return flows

    def _reallocate(self) -> None:
        """Set rates anew wherever a start, an end or a new order reaches."""
        if not self._touched:
            return
        touched = self._touched[0] if len(self._touched) == 1 else np.concatenate(self._touched)
        self._touched = []
        flows = self._affected(touched)
        if not len(flows):
            return
        self._settle(flows)
        flows = flows[self._due_s[flows].argsort(kind="stable")]
        order = Order.by_rank(flows, self._tiers[flows])
        network, weights, due_s = self.bundles.network, self.bundles.weights, self._due_s - self.now_ps / PS_PER_S
        rates_bps = self._allocation.rates_bps(network, order, weights, self.remaining_bytes, due_s)
        set_rates(order.flows, rates_bps, self.now_ps, self.remaining_bytes, self.rates_bps, self._ends_ps)


@compiled
def _settle(
    first_hop: IntArray,
    links: IntArray,
    levels: IntArray,
    flows: IntArray,
    now_ps: int,
    since_ps: IntArray,
    rates_bps: FloatArray,
    remaining_bytes: FloatArray,
    carried_bytes: npt.NDArray[np.float64],
) -> None:
    """Update the remaining bytes of flows and the carried bytes of links to the current time."""
    for flow in flows:
        if now_ps > since_ps[flow]:
            sent = sent_bytes(remaining_bytes[flow], rates_bps[flow], now_ps - since_ps[flow])
            since_ps[flow] = now_ps
            if sent > 0.0:
                remaining_bytes[flow] -= sent
                for hop in range(first_hop[flow], first_hop[flow + 1]):
                    carried_bytes[links[hop], levels[flow]] += sent


ALLOCATIONS: Mapping[Allocator, Allocation] = {
    Allocator.MAX_MIN: Allocation(
        lambda network, order, weights, _remaining, _due: max_min(network, order, weights), False
    ),
    Allocator.MADD: Allocation(lambda network, order, _weights, remaining, _due: madd(network, order, remaining), True),
    Allocator.ECHELON_MADD: Allocation(
        lambda network, order, _weights, remaining, due: echelon_madd(network, order, remaining, due), True
    ),
    Allocator.ORDER_GREEDY: Allocation(
        lambda network, order, _weights, remaining, _due: order_greedy(network, order, remaining), False
    ),
}
"""The allocators of ``policies.rates`` by name, in the form that the engine calls."""


def allocation(allocator: Allocator | RateAllocator) -> Allocation:
    """Return an allocator in the form that the engine calls; one that is not ours is given whole tiers."""
    return ALLOCATIONS[allocator] if isinstance(allocator, Allocator) else Allocation(allocator, joins_tiers=True)
