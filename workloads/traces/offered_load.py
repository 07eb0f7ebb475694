"""What jobs of a trace offer to the links of a fabric while they stay, and what they compute at best.

Alone, an iteration takes a job as long as it computes, or until all is sent, spread evenly over its candidate paths.
The load of a link is the share of time for which it is occupied if all jobs that are there iterate as if alone; that of
the fabric is the mean over time of the load of its hottest link between switches, whichever that is at the time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq

from topologies.fabric import Fabric
from topologies.routing import Routing
from workloads.even_spread import EvenSpread, FloatArray, IntArray
from workloads.traces.placing import placed
from workloads.traces.stays import Stay

_LEAST_FACTOR, _MOST_FACTOR = 1e-6, 1e6


@dataclass(frozen=True, slots=True)
class _Interval:
    """So long the same jobs, by number, are there."""

    length_s: float
    jobs: IntArray


class OfferedLoad:
    """The load of the jobs that send; ``stays`` has them by number. A factor is by how much more bytes all send."""

    def __init__(self, stays: Sequence[Stay], routing: Routing) -> None:
        self.stays = tuple(stay for stay in stays if stay.job.sends)
        fabric = routing.fabric
        self._spread = EvenSpread.of([placed(stay.job, stay.allocation, fabric, 0.0) for stay in self.stays], routing)
        self._intervals = tuple(_intervals(self.stays))
        self._between = _between_switches(fabric)
        self._compute_s = np.array([stay.job.workload.compute_s for stay in self.stays])
        self._before_s = self._compute_s * [stay.job.workload.comm_start for stay in self.stays]
        self._gpus = np.array([stay.job.request.gpus for stay in self.stays])

    @property
    def gpu_s(self) -> float:
        """GPU-seconds that these jobs hold."""
        return sum(stay.gpu_seconds for stay in self.stays)

    def alone_s(self, factor: float) -> FloatArray:
        """By job, the time of an iteration alone."""
        alone_s: FloatArray = np.maximum(self._compute_s, self._before_s + factor * self._spread.longest_s)
        return alone_s

    def at(self, factor: float) -> float:
        """The load of the fabric."""
        rates = factor / self.alone_s(factor)
        between = self._spread.seconds[:, self._between]
        hottest = [float((rates[of.jobs] @ between[of.jobs]).max(initial=0.0)) for of in self._intervals]
        return float(np.average(hottest, weights=[of.length_s for of in self._intervals])) if hottest else 0.0

    def factor(self, load: float) -> float:
        """The factor that offers a load. Raises ValueError where none does."""
        if not self.at(_LEAST_FACTOR) < load < (most := self.at(_MOST_FACTOR)):
            raise ValueError(f"load {load:g}: however much jobs send, the hottest link is offered less than {most:.3g}")
        bounds = np.log((_LEAST_FACTOR, _MOST_FACTOR))
        return float(np.exp(brentq(lambda exponent: self.at(np.exp(exponent)) - load, *bounds, xtol=1e-6)))

    def ideal_gpu_s(self, factor: float) -> float:
        """GPU-seconds that the jobs compute if each iterates as if alone."""
        stays_s = np.array([stay.to_s - stay.from_s for stay in self.stays])
        return float(stays_s @ (self._gpus * self._compute_s / self.alone_s(factor)))

    def most_gpu_s(self, factor: float) -> float:
        """GPU-seconds that the jobs compute at most: the fluid bound of those there, as long as they are the same."""
        spread, alone_s, work = self._spread.sending(factor), self.alone_s(factor), self._gpus * self._compute_s
        return sum(of.length_s * spread.most(of.jobs, work[of.jobs], alone_s[of.jobs]) for of in self._intervals)


def _intervals(stays: Sequence[Stay]) -> Iterator[_Interval]:
    times_s = sorted({time_s for stay in stays for time_s in (stay.from_s, stay.to_s)})
    from_s, to_s = np.array([stay.from_s for stay in stays]), np.array([stay.to_s for stay in stays])
    for begins_s, ends_s in pairwise(times_s):
        there = np.flatnonzero((from_s <= begins_s) & (ends_s <= to_s))
        if len(there):
            yield _Interval(ends_s - begins_s, there)


def _between_switches(fabric: Fabric) -> IntArray:
    switches = fabric.switch_index
    between = [link.index for link in fabric.links if link.source in switches and link.destination in switches]
    return np.array(between, dtype=np.int64)
