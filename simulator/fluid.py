"""The engine: flows as fluids that share links, from event to event.

Between two events every flow has a constant rate, so only events cost anything. A flow that starts or ends changes
rates where links connect it with others, and nowhere else: there, what each flow has left is brought up to date and an
allocator of ``policies.rates`` sets the rates anew. A flow whose rate stays what it was keeps its end too.

Time is a count of picoseconds: ends that fall together in arithmetic fall together here. A flow occupies its links
until it has sent all; the last of it arrives its path's latency later (Hockney's alpha and beta).
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from policies.machine_code import compiled
from policies.rates.network import FloatArray, IntArray, Network, Order
from simulator.bundles import Bundles
from simulator.contention import Contention

PS_PER_S = 1_000_000_000_000
NEVER_PS = np.iinfo(np.int64).max
NUM_LEVELS = 8

NO_BUNDLE = -1


@dataclass(frozen=True, slots=True)
class Allocation:
    """How rates are set: in bit/s of an order's flows, by flow number from weights, bytes left and seconds until due.

    The flows of a tier stand in the order in which they are due. With ``joins_tiers`` the flows of one tier depend on
    each other even where they share no link, as in MADD.
    """

    rates_bps: Callable[[Network, Order, FloatArray, FloatArray, FloatArray], FloatArray]
    joins_tiers: bool


class Fluid:
    """Bundles of flows under way on one network.

    ``remaining_bytes`` and ``rates_bps`` are those of whole bundles, the former as of each one's last change of rate.
    """

    def __init__(self, bundles: Bundles, allocation: Allocation) -> None:
        self.now_ps = 0
        self._allocation = allocation
        self._carried_bytes = np.zeros((len(bundles.network.capacities_bps), NUM_LEVELS))
        self._arriving: list[tuple[int, int]] = []
        self._lay(bundles)

    def _lay(self, bundles: Bundles) -> None:
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
        """Bundles that have something left to send, ascending; not those that are paused."""
        return self._active

    def relay(self, bundles: Bundles, continued: IntArray) -> None:
        """From now on there are these bundles; ``continued``, by bundle, is which of the old ones it goes on with.

        Or NO_BUNDLE, where it is to be started yet. An old bundle may be continued by several, which divide what it has
        left by their weights. Raises ValueError where one that is under way is not continued by all of its weight.
        """
        self._settle(self._active)
        before, arriving = self.bundles, self._arriving
        remaining_bytes, is_paused = self.remaining_bytes, self._is_paused
        goes_on = continued != NO_BUNDLE
        weights = np.bincount(continued[goes_on], bundles.weights[goes_on], minlength=len(remaining_bytes))
        arriving_bundles = np.array([bundle for _, bundle in arriving], dtype=np.int64)
        under_way = np.concatenate((self._active, arriving_bundles, np.flatnonzero(is_paused)))
        if (lost := weights[under_way] != before.weights[under_way]).any():
            raise ValueError(f"bundle {under_way[lost.argmax()]}: it is under way, and not all of it goes on")
        is_active = np.zeros(len(remaining_bytes), dtype=np.bool_)
        is_active[self._active] = True
        self._lay(bundles)
        heirs = np.flatnonzero(goes_on)
        self._arriving = [
            (time_ps, int(heir)) for time_ps, bundle in arriving for heir in heirs[continued[heirs] == bundle]
        ]
        heapq.heapify(self._arriving)
        old = continued[heirs]
        shares_bytes = remaining_bytes[old] * bundles.weights[heirs] / before.weights[old]
        paused, sending = is_paused[old], is_active[old]
        self._is_paused[heirs[paused]], self.remaining_bytes[heirs[paused]] = True, shares_bytes[paused]
        self._join(heirs[sending], shares_bytes[sending])

    def reorder(self, tiers: IntArray, due_s: FloatArray) -> None:
        """Serve the bundles in these tiers from now on, those of a tier as due at these times; both by bundle."""
        differs = (self._tiers != tiers) | (self._due_s != due_s)
        self._touched.append(self._active[differs[self._active]])
        self._tiers, self._due_s = tiers, due_s

    def start(self, bundles: IntArray, size_bytes: FloatArray) -> None:
        """Let bundles, none of which is under way, send so many bytes each; without any they arrive at once."""
        for bundle in bundles[size_bytes <= 0].tolist():
            self._send_off(bundle)
        self._join(bundles[size_bytes > 0], size_bytes[size_bytes > 0])

    def pause(self, bundles: IntArray) -> None:
        """Let bundles that are sending keep what they have left, and use no link, until they are to ``resume``."""
        self._settle(bundles)
        self.contention.leave(bundles)
        self._active = np.setdiff1d(self._active, bundles, assume_unique=True)
        self._is_paused[bundles] = True
        self.rates_bps[bundles], self._ends_ps[bundles] = 0.0, NEVER_PS
        self._touched.append(bundles)

    def resume(self, bundles: IntArray) -> None:
        """Let bundles that are paused go on."""
        self._is_paused[bundles] = False
        self._join(bundles, self.remaining_bytes[bundles])

    def run(self, until_ps: int) -> list[int]:
        """Let time pass until something arrives, at most until a time; returns the bundles that have arrived."""
        while True:
            self._reallocate()
            end_ps = int(self._ends_ps[self._active].min(initial=NEVER_PS))
            arrival_ps = self._arriving[0][0] if self._arriving else NEVER_PS
            self.now_ps = max(self.now_ps, min(end_ps, arrival_ps, until_ps))
            if end_ps <= self.now_ps:
                self._end(self._active[self._ends_ps[self._active] <= self.now_ps])
            arrived = []
            while self._arriving and self._arriving[0][0] <= self.now_ps:
                arrived.append(heapq.heappop(self._arriving)[1])
            if arrived or self.now_ps >= until_ps:
                return arrived

    def carried_bytes(self) -> FloatArray:
        """Bytes that every link has carried until now, by level."""
        self._settle(self._active)
        return self._carried_bytes.copy()

    def settled_bytes(self) -> FloatArray:
        """What every bundle has left now."""
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
        for bundle in bundles.tolist():
            self._send_off(bundle)

    def _send_off(self, bundle: int) -> None:
        heapq.heappush(self._arriving, (self.now_ps + int(self.bundles.latency_ps[bundle]), bundle))

    def _settle(self, bundles: IntArray) -> None:
        network, levels = self.bundles.network, self.bundles.levels
        state = self._since_ps, self.rates_bps, self.remaining_bytes, self._carried_bytes
        _settle(network.starts, network.links, levels, bundles, self.now_ps, *state)

    def _affected(self, touched: IntArray) -> IntArray:
        """All flows under way whose rates may depend on those of these flows, which may have ended."""
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
    """Bring what flows have left, and what links have carried, up to date."""
    for flow in flows:
        if now_ps > since_ps[flow]:
            sent = sent_bytes(remaining_bytes[flow], rates_bps[flow], now_ps - since_ps[flow])
            since_ps[flow] = now_ps
            if sent > 0.0:
                remaining_bytes[flow] -= sent
                for hop in range(first_hop[flow], first_hop[flow + 1]):
                    carried_bytes[links[hop], levels[flow]] += sent


@compiled
def sent_bytes(remaining_bytes: float, rate_bps: float, duration_ps: int) -> float:
    """What a flow sends in a time, at most what it has left."""
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
    """Give flows their rates and, where these are others than before, their ends."""
    for position in range(len(flows)):
        flow, rate = flows[position], rates_bps[position]
        if rate != present_bps[flow] or ends_ps[flow] == NEVER_PS:
            present_bps[flow] = rate
            if rate > 0.0:
                duration_ps = remaining_bytes[flow] / rate * 8.0 * PS_PER_S
                ends_ps[flow] = now_ps + round(duration_ps) if duration_ps < 4e18 else NEVER_PS
            else:
                ends_ps[flow] = NEVER_PS
