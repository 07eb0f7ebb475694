"""Offered load of a trace's jobs on a fabric, and upper bounds of the computation they can do.

An isolated iteration takes as long as its computation, or until everything is sent evenly over the candidate paths. A
link's load is the share of time for which it is occupied if all present jobs iterate as in isolation. The fabric's load
is the mean over time of the load of the busiest link between switches.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq

from topologies.fabric import Fabric
from topologies.routing import Routing
from workloads.even_spread import EvenSpread, FloatArray, IntArray
from workloads.traces.gpu_occupancy import Occupancy
from workloads.traces.simulated_jobs import placed_job

_LEAST_FACTOR, _MOST_FACTOR = 1e-6, 1e6


@dataclass(frozen=True, slots=True)
class _Interval:
    """A time during which the present jobs, given by number, do not change."""

    length_s: float
    jobs: IntArray


class OfferedLoad:
    """The load of the jobs that send. A factor scales the bytes that all of them send."""

    def __init__(self, occupancies: Sequence[Occupancy], routing: Routing) -> None:
        self.occupancies = tuple(occupancy for occupancy in occupancies if occupancy.job.sends)
        fabric = routing.fabric
        self._spread = EvenSpread.of(
            [placed_job(occupancy.job, occupancy.allocation, fabric, 0.0) for occupancy in self.occupancies], routing
        )
        self._intervals = tuple(_intervals(self.occupancies))
        self._between = _between_switches(fabric)
        self._compute_s = np.array([occupancy.job.workload.compute_s for occupancy in self.occupancies])
        self._before_s = self._compute_s * [occupancy.job.workload.comm_start for occupancy in self.occupancies]
        self._gpus = np.array([occupancy.job.request.gpus for occupancy in self.occupancies])

    @property
    def gpu_s(self) -> float:
        """GPU-seconds that these jobs hold."""
        return sum(occupancy.gpu_seconds for occupancy in self.occupancies)

    def alone_s(self, factor: float) -> FloatArray:
        """Return each job's isolated iteration time."""
        alone_s: FloatArray = np.maximum(self._compute_s, self._before_s + factor * self._spread.longest_s)
        return alone_s

    def at(self, factor: float) -> float:
        """Return the load of the fabric."""
        rates = factor / self.alone_s(factor)
        between = self._spread.seconds[:, self._between]
        hottest = [float((rates[of.jobs] @ between[of.jobs]).max(initial=0.0)) for of in self._intervals]
        return float(np.average(hottest, weights=[of.length_s for of in self._intervals])) if hottest else 0.0

    def factor(self, load: float) -> float:
        """Find the factor that offers a load. Raises ValueError where there is none."""
        if not self.at(_LEAST_FACTOR) < load < (most := self.at(_MOST_FACTOR)):
            raise ValueError(f"load {load:g}: however much jobs send, the hottest link is offered less than {most:.3g}")
        bounds = np.log((_LEAST_FACTOR, _MOST_FACTOR))
        return float(np.exp(brentq(lambda exponent: self.at(np.exp(exponent)) - load, *bounds, xtol=1e-6)))

    def ideal_gpu_s(self, factor: float) -> float:
        """Return the GPU-seconds computed if every job iterates as in isolation."""
        lengths_s = np.array([occupancy.to_s - occupancy.from_s for occupancy in self.occupancies])
        return float(lengths_s @ (self._gpus * self._compute_s / self.alone_s(factor)))

    def most_gpu_s(self, factor: float) -> float:
        """Return the fluid bound: the most GPU-seconds that the jobs can compute."""
        spread, alone_s, work = self._spread.sending(factor), self.alone_s(factor), self._gpus * self._compute_s
        return sum(of.length_s * spread.most(of.jobs, work[of.jobs], alone_s[of.jobs]) for of in self._intervals)


def _intervals(occupancies: Sequence[Occupancy]) -> Iterator[_Interval]:
    times_s = sorted({time_s for occupancy in occupancies for time_s in (occupancy.from_s, occupancy.to_s)})
    from_s, to_s = (
        np.array([occupancy.from_s for occupancy in occupancies]),
        np.array([occupancy.to_s for occupancy in occupancies]),
    )
    for begins_s, ends_s in pairwise(times_s):
        there = np.flatnonzero((from_s <= begins_s) & (ends_s <= to_s))
        if len(there):
            yield _Interval(ends_s - begins_s, there)


def _between_switches(fabric: Fabric) -> IntArray:
    switches = fabric.switch_index
    between = [link.index for link in fabric.links if link.source in switches and link.destination in switches]
    return np.array(between, dtype=np.int64)
