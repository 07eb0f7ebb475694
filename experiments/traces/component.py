"""Contention components: jobs connected by shared links or GPUs, simulated apart from all other jobs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from experiments.traces.network_job import Flows, NetworkJob
from experiments.traces.steady_state import Cycle, CycleSearch, RunningMeans, SkipOptions
from policies.model.bundles import Bundles
from policies.model.picoseconds import NEVER_PS, PS_PER_S
from policies.rates.network import FloatArray, Network
from simulator.iterating_jobs import IteratingJobs, Iterations, IterationState
from simulator.iteration_stages import (
    BEAT,
    BEFORE,
    BEGUN,
    BESIDE,
    COMPUTED,
    ITERATIONS,
    PERIOD,
    computed_ps,
)  # fmt: skip

_EACH_CHECKED, _CHECK_INTERVAL = 32, 16
"""How many iterations of its slowest job are each checked for a cycle, and after how many the later checks come.

A cycle of p iterations is also one of 16 p.
"""


@dataclass(frozen=True, slots=True)
class ComponentProgress:
    """The progress of a component over a time: its GPU-seconds, and how its iterations were obtained.

    Iterations are computed event by event, in ``num_events`` events, or repeat a cycle, or are extrapolated.
    """

    from_ps: int
    to_ps: int
    computed_gpu_s: float
    num_events: int
    num_computed: int
    num_repeated: int
    num_extrapolated: float


class ContentionComponent:
    """Simulates connected jobs ahead of time until the first is done, then brings them to a given time.

    It is valid while the jobs' routes, order and time shifts stay as they are.
    """

    def __init__(self, jobs: Sequence[NetworkJob], capacities_bps: FloatArray, now_ps: int, skip: SkipOptions) -> None:
        for job in jobs:
            job.apply_rhythm()
        self.jobs = tuple(jobs)
        self._flows_of_jobs = [job.flows for job in jobs]
        self._flows = Flows.concatenate(self._flows_of_jobs)
        self._rhythms_ps = [job.rhythm_ps for job in jobs]
        self._ends_ps = np.full(len(jobs), NEVER_PS)
        self._begun = IterationState(
            now_ps, np.array([job.row for job in jobs]), np.concatenate([job.left_bytes for job in jobs])
        )
        self._engine = _engine(self.jobs, self._begun, self._flows, capacities_bps)
        left = np.array([job.remaining_iterations for job in jobs])
        self._goals = self._begun.table[:, ITERATIONS] + np.floor(left).astype(np.int64)
        self._parts = left % 1.0
        self._ideal_s = np.array([job.simulated.ideal_iteration_s for job in jobs])
        self._slowest = int(self._ideal_s.argmax())
        self._skip = skip
        self._search, self._means = CycleSearch(), RunningMeans(skip)
        self._num_checked, self._window_ends = 0, skip.window_iterations
        self._repeats: tuple[IterationState, Cycle] | None = None
        self._steady: tuple[IterationState, FloatArray] | None = None
        self._record_departures()

    @property
    def is_valid(self) -> bool:
        """Whether the jobs still have the same links, order and rhythms."""
        flows = [job.flows for job in self.jobs]
        is_same = all(one is other for one, other in zip(flows, self._flows_of_jobs, strict=True))
        if not is_same and (is_same := self._flows.has_same_contention(Flows.concatenate(flows))):
            self._flows_of_jobs = flows
        return is_same and self._rhythms_ps == [job.rhythm_ps for job in self.jobs]

    @property
    def departure_ps(self) -> int:
        """When the first job is done; NEVER_PS while that is unknown."""
        return int(self._ends_ps.min())

    def done(self, time_ps: int) -> list[NetworkJob]:
        """Return the jobs that are done at a time, which is at most ``departure_ps``."""
        return [job for job, end_ps in zip(self.jobs, self._ends_ps.tolist(), strict=True) if end_ps <= time_ps]

    def look_ahead(self, until_ps: int) -> None:
        """Simulate ahead until a departure is known, at most to a time."""
        while self._engine.now_ps < min(until_ps, self.departure_ps) and self._steady is None:
            goals = self._goals.copy()
            iterations = self._engine.iterations
            goals[iterations >= goals] = NEVER_PS
            checks = self._repeats is None and (self._skip.cycles or self._skip.tolerance is not None)
            next_check = iterations[self._slowest] + (1 if self._num_checked < _EACH_CHECKED else _CHECK_INTERVAL)
            if checks:
                goals[self._slowest] = min(goals[self._slowest], next_check)
            self._engine.run_to_first(goals, until_ps=min(until_ps, self.departure_ps))
            self._record_departures()
            has_come = self._engine.iterations[self._slowest] == next_check
            if checks and has_come and self.departure_ps == NEVER_PS:
                self._check_steady_state()

    def settle(self, time_ps: int) -> ComponentProgress:
        """Bring the jobs to a time, at most to ``departure_ps``; the component cannot be used afterwards."""
        num_repeated, extrapolated = 0, np.zeros(len(self.jobs))
        if self._steady is not None and time_ps >= self._steady[0].now_ps:
            since, means_s = self._steady
            state = since.later(time_ps - since.now_ps)
            extrapolated = (time_ps - since.now_ps) / PS_PER_S / means_s
        else:
            if self._repeats is not None and time_ps >= self._repeats[0].now_ps:
                since, cycle = self._repeats
                num_times = (time_ps - since.now_ps) // cycle.period_ps
                num_repeated = num_times * int(cycle.iterations.sum())
                self._engine.resume(_repeated(since, cycle, num_times))
            elif self._engine.now_ps > time_ps:
                self._engine.resume(self._begun)
            self._engine.run(until_ps=time_ps)
            state = self._engine.state()
        begun, num_flows = self._begun, np.cumsum([0, *(len(job.size_bytes) for job in self.jobs)])
        computed_s = (computed_ps(state.table, time_ps) - computed_ps(begun.table, begun.now_ps)) / PS_PER_S
        computed_s = computed_s + extrapolated * (state.table[:, BEFORE] + state.table[:, BESIDE]) / PS_PER_S
        for number, job in enumerate(self.jobs):
            job.row = state.table[number]
            job.left_bytes = state.left_bytes[num_flows[number] : num_flows[number + 1]]
            job.skipped += float(extrapolated[number])
        num_iterations = int((state.table[:, ITERATIONS] - begun.table[:, ITERATIONS]).sum())
        gpus = np.array([job.gpus for job in self.jobs])
        return ComponentProgress(
            begun.now_ps,
            time_ps,
            float(computed_s @ gpus),
            self._engine.num_events,
            num_iterations - num_repeated,
            num_repeated,
            float(extrapolated.sum()),
        )

    def _record_departures(self) -> None:
        """Record the ends of jobs; the part of an iteration that remains takes its share of the mean iteration."""
        engine = self._engine
        iterations, begun_ps = engine.iterations, engine.begun_ps
        for number in np.flatnonzero((iterations >= self._goals) & (self._ends_ps == NEVER_PS)):
            completed = iterations[number] - self._begun.table[number, ITERATIONS]
            lasted_s = (begun_ps[number] - self._begun.table[number, BEGUN]) / PS_PER_S
            mean_s = lasted_s / completed if completed else self._ideal_s[number]
            end_ps = int(begun_ps[number]) + round(self._parts[number] * mean_s * PS_PER_S)
            self._ends_ps[number] = max(end_ps, self._begun.now_ps)

    def _check_steady_state(self) -> None:
        """Look for a cycle or a steady mean, as the slowest job begins an iteration."""
        engine = self._engine
        iterations = engine.iterations
        if self._skip.cycles:
            cycle = self._search.find(engine.recurring_state(), engine.now_ps, iterations)
            if cycle is not None:
                self._repeat(cycle)
                return
        self._num_checked += 1 if self._num_checked < _EACH_CHECKED else _CHECK_INTERVAL
        if self._skip.tolerance is not None and self._num_checked >= self._window_ends:
            self._window_ends += self._skip.window_iterations
            means_s = self._means.end_window(iterations, engine.begun_ps)
            if means_s is not None:
                self._extrapolate(means_s)

    def _repeat(self, cycle: Cycle) -> None:
        """Skip the repetitions of a cycle up to the last one of the first job to end."""
        state = self._engine.state()
        self._repeats = state, cycle
        completes = cycle.iterations > 0
        missing = self._goals[completes] - state.table[completes, ITERATIONS]
        num_times = max(0, int((missing // cycle.iterations[completes]).min()) - 1)
        self._engine.resume(_repeated(state, cycle, num_times))

    def _extrapolate(self, means_s: FloatArray) -> None:
        state = self._engine.state()
        self._steady = state, means_s
        part = np.clip((state.now_ps - state.table[:, BEGUN]) / PS_PER_S / means_s, 0.0, 1.0)
        left = self._goals + self._parts - state.table[:, ITERATIONS] - part
        self._ends_ps[:] = state.now_ps + np.rint(np.maximum(left * means_s, 0.0) * PS_PER_S).astype(np.int64)


def contention_components(jobs: Sequence[NetworkJob]) -> list[tuple[NetworkJob, ...]]:
    """Split jobs into groups that are connected by shared links or shared GPUs; the jobs keep their order."""
    if not jobs:
        return []
    sharing = [number for number, job in enumerate(jobs) if job.shared]
    # Shared GPUs count as links with negative numbers.
    links = np.concatenate([*(job.flows.links for job in jobs), [-jobs[number].shared for number in sharing]])
    owners = np.repeat(np.arange(len(jobs)), [len(job.flows.links) for job in jobs])
    owners = np.concatenate([owners, np.array(sharing, dtype=np.int64)])
    by_link = links.argsort(kind="stable")
    links, owners = links[by_link], owners[by_link]
    shared = links[1:] == links[:-1]
    edges = owners[:-1][shared], owners[1:][shared]
    matrix = coo_array((np.ones(len(edges[0]), dtype=np.int8), edges), shape=(len(jobs), len(jobs)))
    number, group_of = connected_components(matrix, directed=False)
    groups: list[list[NetworkJob]] = [[] for _ in range(number)]
    for job, group in zip(jobs, group_of.tolist(), strict=True):
        groups[group].append(job)
    return [tuple(group) for group in groups]


def _engine(
    jobs: Sequence[NetworkJob], begun: IterationState, flows: Flows, capacities_bps: FloatArray
) -> IteratingJobs:
    """Return an engine with a bundle for every flow: hardly two flows of a trace have the same path."""
    table, num_flows = begun.table, [len(job.size_bytes) for job in jobs]
    none = np.zeros(sum(num_flows), dtype=np.int64)
    starts = np.concatenate(([0], np.cumsum(flows.num_hops)))
    network = Network(capacities_bps, starts, flows.links, flows.places)
    bundles = Bundles(network, np.ones(len(none)), flows.tiers, none, flows.latency_ps)
    sizes = np.concatenate([job.size_bytes for job in jobs])
    before_ps, beside_ps, begun_ps, period_ps, beat_ps = table[:, (BEFORE, BESIDE, BEGUN, PERIOD, BEAT)].T
    iterations = Iterations(before_ps, beside_ps, begun_ps, period_ps, beat_ps, np.array(num_flows), sizes)
    engine = IteratingJobs(iterations, bundles)
    engine.resume(begun)
    return engine


def _repeated(state: IterationState, cycle: Cycle, num_times: int) -> IterationState:
    later = state.later(num_times * cycle.period_ps)
    later.table[:, ITERATIONS] += num_times * cycle.iterations
    later.table[:, COMPUTED] += num_times * cycle.iterations * (later.table[:, BEFORE] + later.table[:, BESIDE])
    return later
