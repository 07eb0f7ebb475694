"""GPU-seconds that jobs compute in the window of a case, by the flow-level simulator; each setting runs once.

Jobs on lower levels make no difference to jobs on higher ones. So the computation of the higher ones is known from a
run without the others, and an upper bound for the others tells whether a setting is worth a run at all. A run is given
up at a stop once it can no longer exceed what is asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from experiments.papers.microbench.cases import Case
from experiments.papers.microbench.components import Component, Relation
from policies.arrays import FloatArray
from policies.job import Job
from policies.model.bundles import Bundles
from policies.model.picoseconds import PS_PER_S
from policies.rates.network import Network
from simulator.iterating_jobs import IteratingJobs, Iterations

ROUNDING = 1e-9
"""Relative; a value this close to a bound has reached it."""

_STOPS = (0.0, 0.125, 0.25, 0.5, 1.0)
"""Fractions of the window after which a run may be given up."""


@dataclass(slots=True)
class _Run:
    """A run at a stop. ``before_s`` is each job's computation before the window began."""

    jobs: IteratingJobs
    stop: int
    before_s: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class ComputationBound:
    """An upper bound on the computation of a component's jobs in a span of time, whatever their state at its start.

    No job computes more than alone. And all iterations that reach into a span, but the first and the last, send there
    all their bytes, so links limit their number. Arrays are by job; ``occupied_s`` is the time for which an iteration
    (column) occupies each shared link (row).
    """

    gpus: FloatArray
    compute_s: FloatArray
    alone_s: FloatArray
    occupied_s: FloatArray

    @classmethod
    def of(cls, component: Component, jobs: Sequence[Job]) -> Self:
        """Compute the arrays from the jobs of the case."""
        place = {job: number for number, job in enumerate(component.jobs)}
        members = [jobs[job] for job in component.jobs]
        compute_s = np.array([job.profile.compute_s for job in members])
        ready_s = np.array([job.profile.comm_start for job in members]) * compute_s
        occupied_s, sending_s = np.zeros((len(component.links), len(members))), np.zeros(len(members))
        for number, flow in enumerate(component.flows):
            shared = [link for link, each in enumerate(component.links) if number in each.users]
            for link in shared:
                occupied_s[link, place[flow.job]] += flow.size_bytes * 8 / component.links[link].rate_bps
            rate_bps = min([flow.own_bps, *(component.links[link].rate_bps for link in shared)])
            sending_s[place[flow.job]] = max(sending_s[place[flow.job]], flow.size_bytes * 8 / rate_bps)
        gpus = np.array([job.gpus for job in members], dtype=np.float64)
        return cls(gpus, compute_s, np.maximum(compute_s, ready_s + sending_s), occupied_s)

    def gpu_seconds(self, span_s: float, known: Mapping[int, float]) -> float:
        """Return the bound over all jobs; ``known`` has the GPU-seconds of some, by their places in the component."""
        whole, rest_s = np.divmod(span_s, self.alone_s)
        most = self.gpus * (whole * self.compute_s + np.minimum(self.compute_s, rest_s))
        for place, gpu_seconds in known.items():
            most[place] = gpu_seconds
        open_jobs = [place for place in range(len(most)) if place not in known]
        total = least = float(most.sum())
        # Time of each shared link that a GPU-second of each job needs.
        per_gpu_second = self.occupied_s / (self.gpus * self.compute_s)
        for link, limit_s in enumerate(span_s + 2 * self.occupied_s.sum(axis=1)):
            asked_s = per_gpu_second[link] * most
            excess_s = float(asked_s.sum()) - limit_s
            lost = 0.0
            for place in sorted(open_jobs, key=lambda place: -per_gpu_second[link, place]):
                if excess_s <= 0 or per_gpu_second[link, place] == 0:
                    break
                cut_s = min(excess_s, asked_s[place])
                lost += cut_s / per_gpu_second[link, place]
                excess_s -= cut_s
            least = min(least, total - lost)
        return least * (1 + ROUNDING)


class Outcomes:
    """Computation in the window of one case, in GPU-seconds.

    ``windows_run`` is the simulated time so far, in windows.
    """

    def __init__(self, case: Case) -> None:
        window = case.window
        self._jobs = case.snapshot.jobs
        self._from_s, self._span_s = window.from_s, window.to_s - window.from_s
        self._known: dict[tuple[Component, Relation], FloatArray] = {}
        self._stopped: dict[tuple[Component, Relation], _Run] = {}
        self._bounds: dict[Component, ComputationBound] = {}
        self._upper_bounds: dict[Component, float] = {}
        self.gpu_seconds = sum(job.gpus for job in self._jobs) * self._span_s
        self.windows_run = 0.0

    def of(self, component: Component, levels: Sequence[int]) -> float:
        """Return the computation of a component's jobs on these levels; higher levels go first."""
        return float(self._by_job(component, levels).sum())

    def of_if_above(self, component: Component, levels: Sequence[int], enough: float) -> float:
        """Return what ``of`` does where that is above ``enough``, else any upper bound that is not above ``enough``."""
        key = component, component.relation(levels)
        if key in self._known:
            return float(self._known[key].sum())
        bound = self._bound_of(component)
        known: Mapping[int, float] = {}
        for least in sorted(set(levels), reverse=True)[:-1]:
            known = self._above(component, levels, least)
            if (most := bound.gpu_seconds(self._span_s, known)) <= enough:
                return most
        run = self._stopped.pop(key, None) or self._started(component, levels)
        while run.stop < len(_STOPS) - 1:
            computed = self._computed(component, run)
            left = {place: gpu_seconds - computed[place] for place, gpu_seconds in known.items()}
            if (
                most := float(computed.sum()) + bound.gpu_seconds(self._span_s * (1 - _STOPS[run.stop]), left)
            ) <= enough:
                self._stopped[key] = run
                return most
            self._go_on(run)
        self._known[key] = self._computed(component, run)
        return float(self._known[key].sum())

    def upper_bound(self, component: Component) -> float:
        """Return a bound that no levels exceed."""
        if component not in self._upper_bounds:
            self._upper_bounds[component] = self._bound_of(component).gpu_seconds(self._span_s, {})
        return self._upper_bounds[component]

    def _by_job(self, component: Component, levels: Sequence[int]) -> FloatArray:
        key = component, component.relation(levels)
        if key not in self._known:
            run = self._stopped.pop(key, None) or self._started(component, levels)
            while run.stop < len(_STOPS) - 1:
                self._go_on(run)
            self._known[key] = self._computed(component, run)
        return self._known[key]

    def _above(self, component: Component, levels: Sequence[int], least: int) -> Mapping[int, float]:
        """Return the computation of the jobs on at least a level, by their places."""
        level_of = dict(zip(component.jobs, levels, strict=True))
        found: dict[int, float] = {}
        for part in component.without([job for job in component.jobs if level_of[job] < least]):
            by_job = self._by_job(part, [level_of[job] for job in part.jobs])
            found.update(zip(map(component.jobs.index, part.jobs), by_job.tolist(), strict=True))
        return found

    def _bound_of(self, component: Component) -> ComputationBound:
        if component not in self._bounds:
            self._bounds[component] = ComputationBound.of(component, self._jobs)
        return self._bounds[component]

    def _started(self, component: Component, levels: Sequence[int]) -> _Run:
        jobs = [self._jobs[job] for job in component.jobs]
        iterations = Iterations.of(
            np.array([job.profile.compute_s for job in jobs]),
            np.array([job.profile.comm_start for job in jobs]),
            np.array([job.arrival_s for job in jobs]),
            np.array([sum(flow.job == job for flow in component.flows) for job in component.jobs]),
            np.array([flow.size_bytes for flow in component.flows]),
        )
        level_of = dict(zip(component.jobs, levels, strict=True))
        level = np.array([level_of[flow.job] for flow in component.flows], dtype=np.int64)
        bundles = Bundles(
            _network(component),
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

    def _computed(self, component: Component, run: _Run) -> FloatArray:
        gpus = np.array([self._jobs[job].gpus for job in component.jobs])
        return np.asarray(gpus * (run.jobs.computed_ps / PS_PER_S - run.before_s))


def _network(component: Component) -> Network:
    """Return the shared links, and each flow's own link where that is slower."""
    rates_bps = [link.rate_bps for link in component.links]
    paths = []
    for number, flow in enumerate(component.flows):
        path = [link for link, shared in enumerate(component.links) if number in shared.users]
        if flow.own_bps < min((component.links[link].rate_bps for link in path), default=np.inf):
            path.append(len(rates_bps))
            rates_bps.append(flow.own_bps)
        paths.append(tuple(path))
    return Network.of(np.array(rates_bps), paths)
