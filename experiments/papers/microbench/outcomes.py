"""What jobs that meet compute in the window of a case, by the flow-level simulator; each setting is run once.

Who is on a lower level makes no difference to jobs on higher ones: what these compute is known from a run without the
others, and together with what is possible at most for the others it tells whether a setting is worth a run at all. A
run is given up at a stop when it can no longer come to anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.papers.microbench.bounds import Limits
from experiments.papers.microbench.cases import Case
from experiments.papers.microbench.lots import Lot, Relation
from policies.flow_arrays import FloatArray
from policies.rates.network import Network
from simulator.bundles import Bundles
from simulator.fluid import PS_PER_S
from simulator.iterating import IteratingJobs, Iterations

_STOPS = (0.0, 0.125, 0.25, 0.5, 1.0)
"""Shares of the window after which a run may be given up."""


@dataclass(slots=True)
class _Run:
    """A run that has come to a stop; by job what it had computed when the window began."""

    jobs: IteratingJobs
    stop: int
    before_s: FloatArray


class Outcomes:
    """Computation in the window of one case, in GPU-seconds.

    ``windows_run`` is how much was run of the simulator, in windows.
    """

    def __init__(self, case: Case) -> None:
        window = case.window
        self._jobs = case.snapshot.jobs
        self._from_s, self._span_s = window.from_s, window.to_s - window.from_s
        self._known: dict[tuple[Lot, Relation], FloatArray] = {}
        self._stopped: dict[tuple[Lot, Relation], _Run] = {}
        self._limits: dict[Lot, Limits] = {}
        self._most: dict[Lot, float] = {}
        self.gpu_seconds = sum(job.gpus for job in self._jobs) * self._span_s
        self.windows_run = 0.0

    def of(self, lot: Lot, levels: Sequence[int]) -> float:
        """What the jobs of a lot compute on these levels, of which a higher one goes first."""
        return float(self._by_job(lot, levels).sum())

    def unless_below(self, lot: Lot, levels: Sequence[int], enough: float) -> float:
        """The same, or something not above ``enough`` where it is certain that it is not above that either."""
        key = lot, lot.relation(levels)
        if key in self._known:
            return float(self._known[key].sum())
        limits = self._limits_of(lot)
        known: Mapping[int, float] = {}
        for least in sorted(set(levels), reverse=True)[:-1]:
            known = self._above(lot, levels, least)
            if (most := limits.most(self._span_s, known)) <= enough:
                return most
        run = self._stopped.pop(key, None) or self._started(lot, levels)
        while run.stop < len(_STOPS) - 1:
            computed = self._computed(lot, run)
            left = {place: gpu_seconds - computed[place] for place, gpu_seconds in known.items()}
            if (most := float(computed.sum()) + limits.most(self._span_s * (1 - _STOPS[run.stop]), left)) <= enough:
                self._stopped[key] = run
                return most
            self._go_on(run)
        self._known[key] = self._computed(lot, run)
        return float(self._known[key].sum())

    def most(self, lot: Lot) -> float:
        """No levels can give more."""
        if lot not in self._most:
            self._most[lot] = self._limits_of(lot).most(self._span_s, {})
        return self._most[lot]

    def _by_job(self, lot: Lot, levels: Sequence[int]) -> FloatArray:
        key = lot, lot.relation(levels)
        if key not in self._known:
            run = self._stopped.pop(key, None) or self._started(lot, levels)
            while run.stop < len(_STOPS) - 1:
                self._go_on(run)
            self._known[key] = self._computed(lot, run)
        return self._known[key]

    def _above(self, lot: Lot, levels: Sequence[int], least: int) -> Mapping[int, float]:
        """What the jobs on at least a level compute, by their places."""
        level_of = dict(zip(lot.jobs, levels, strict=True))
        found: dict[int, float] = {}
        for part in lot.without([job for job in lot.jobs if level_of[job] < least]):
            by_job = self._by_job(part, [level_of[job] for job in part.jobs])
            found.update(zip(map(lot.jobs.index, part.jobs), by_job.tolist(), strict=True))
        return found

    def _limits_of(self, lot: Lot) -> Limits:
        if lot not in self._limits:
            self._limits[lot] = Limits.of(lot, self._jobs)
        return self._limits[lot]

    def _started(self, lot: Lot, levels: Sequence[int]) -> _Run:
        jobs = [self._jobs[job] for job in lot.jobs]
        iterations = Iterations.of(
            np.array([job.profile.compute_s for job in jobs]),
            np.array([job.profile.comm_start for job in jobs]),
            np.array([job.arrival_s for job in jobs]),
            np.array([sum(flow.job == job for flow in lot.flows) for job in lot.jobs]),
            np.array([flow.size_bytes for flow in lot.flows]),
        )
        level_of = dict(zip(lot.jobs, levels, strict=True))
        level = np.array([level_of[flow.job] for flow in lot.flows], dtype=np.int64)
        bundles = Bundles(
            _network(lot),
            weights=np.ones(len(level)),
            tiers=-level,
            levels=level,
            latency_ps=np.zeros(len(level), dtype=np.int64),
        )
        run = _Run(IteratingJobs(iterations, bundles), 0, np.zeros(len(jobs)))
        run.jobs.run(round(self._from_s * PS_PER_S))
        run.before_s = run.jobs.computed_ps / PS_PER_S
        return run

    def _go_on(self, run: _Run) -> None:
        before, run.stop = run.stop, run.stop + 1
        self.windows_run += _STOPS[run.stop] - _STOPS[before]
        run.jobs.run(round((self._from_s + _STOPS[run.stop] * self._span_s) * PS_PER_S))

    def _computed(self, lot: Lot, run: _Run) -> FloatArray:
        gpus = np.array([self._jobs[job].gpus for job in lot.jobs])
        return np.asarray(gpus * (run.jobs.computed_ps / PS_PER_S - run.before_s))


def _network(lot: Lot) -> Network:
    """The links that are shared, and of the others those that are slower."""
    rates_bps = [link.rate_bps for link in lot.links]
    paths = []
    for number, flow in enumerate(lot.flows):
        path = [link for link, shared in enumerate(lot.links) if number in shared.users]
        if flow.own_bps < min((lot.links[link].rate_bps for link in path), default=np.inf):
            path.append(len(rates_bps))
            rates_bps.append(flow.own_bps)
        paths.append(tuple(path))
    return Network.of(np.array(rates_bps), paths)
