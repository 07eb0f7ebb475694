"""Runs a trace under a policy: jobs arrive, wait for GPUs, iterate under the policy's Plans, and leave.

Between two events jobs only iterate; ``SkipOptions`` says which of these iterations are computed, repeated or
extrapolated. Jobs that send nothing iterate at their ideal time, and cause no decision. Jobs to which a scheduler gives
the same GPUs take turns.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from experiments.traces.component import ComponentProgress
from experiments.traces.results import Counts, GpuSeries, GpuTime, TraceJobResult, TraceResult
from experiments.traces.steady_state import SkipOptions
from experiments.traces.time_slicing import TimeSlicing
from experiments.traces.traffic import TraceTraffic
from policies.enforcement import Enforcement
from policies.model.picoseconds import NEVER_PS, PS_PER_S
from policies.policy import Policy
from policies.registry import as_policy
from topologies.fabric import Fabric
from workloads.schedulers.admission import Admit, JobStart
from workloads.schedulers.cluster import Allocation, Cluster, ClusterState, GpuRequest
from workloads.traces.simulated_jobs import SimulatedJob

_SERIES_INTERVAL_S = 600.0


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """Options of a run: ``seed`` is that of the fabric's hash and of policies; the run stops at ``until_s``.

    Decisions come, and apply, ``reaction_delay_s`` after a job that sends has started or ended.
    """

    seed: int = 1
    reaction_delay_s: float = 0.01
    until_s: float | None = None
    skip: SkipOptions = field(default_factory=SkipOptions)


_DEFAULT = TraceOptions()


@dataclass(slots=True)
class _Occupancy:
    """Jobs that have the same GPUs from ``start_ps`` until the last of them leaves.

    ``slicing`` is set where none of them sends.
    """

    start_ps: int
    members: tuple[GpuRequest, ...]
    allocation: Allocation
    slicing: TimeSlicing | None
    running: set[str]


def run_trace(
    jobs: Sequence[SimulatedJob],
    fabric: Fabric,
    policy: Policy | str,
    admit: Admit,
    options: TraceOptions = _DEFAULT,
) -> TraceResult:
    """Run jobs, given in any order, until all are done.

    Raises:
        ValueError: Two jobs have one name, a job needs more GPUs than the fabric has, or the policy cannot decide.
    """
    run = TraceRun(jobs, fabric, policy, admit, options)
    while run.step():
        pass
    return run.result()


class TraceRun:
    """A run, event by event: ``now_ps`` is the time of the last event, ``last_arrival_s`` when the last job arrives."""

    def __init__(
        self, jobs: Sequence[SimulatedJob], fabric: Fabric, policy: Policy | str, admit: Admit, options: TraceOptions
    ) -> None:
        cluster = Cluster.of_fabric(fabric)
        self._simulated = {job.request.name: job for job in jobs}
        if len(self._simulated) < len(jobs):
            raise ValueError("expected jobs of different names")
        for job in jobs:
            if not cluster.fits(job.request):
                raise ValueError(f"job {job.request.name!r}: asks for more GPUs than there are")
        policy = as_policy(policy)
        self._policy = policy
        self._admit = admit
        self._options = options
        self._reaction_ps = round(options.reaction_delay_s * PS_PER_S)
        self._until_ps = NEVER_PS if options.until_s is None else round(options.until_s * PS_PER_S)
        self._num_gpus = len(cluster.hosts) * cluster.gpus_per_host
        self._state = ClusterState.empty(cluster)
        arriving = sorted((job.request for job in jobs), key=lambda request: request.arrival_s, reverse=True)
        self._arriving = [(round(request.arrival_s * PS_PER_S), request) for request in arriving]
        self.last_arrival_s = arriving[0].arrival_s if arriving else 0.0
        self._waiting: tuple[GpuRequest, ...] = ()
        self._occupancies: dict[str, _Occupancy] = {}
        self._num_shared = 0
        self._slicing_ends: list[tuple[int, str]] = []
        self._decisions_due: list[int] = []
        self._traffic = TraceTraffic(fabric, policy, options.seed, options.skip)
        self._computing, self._allocated = GpuTime(), GpuTime()
        self._progress: list[ComponentProgress] = []
        self._results: list[TraceJobResult] = []
        self._num_decisions = 0
        self.now_ps = 0

    @property
    def now_s(self) -> float:
        """Virtual time."""
        return self.now_ps / PS_PER_S

    def step(self) -> bool:
        """Handle the next event; return False where there is none."""
        if (now_ps := self._next_ps()) >= self._until_ps:
            self.now_ps = max(self.now_ps, min(now_ps, self._until_ps)) if self._until_ps < NEVER_PS else self.now_ps
            return False
        self.now_ps = now_ps
        done = self._traffic.pop_done(now_ps)
        gone = [job.name for job in done]
        while self._slicing_ends and self._slicing_ends[0][0] <= now_ps:
            gone.append(heapq.heappop(self._slicing_ends)[1])
        for name in gone:
            self._end(name)
        has_arrived = False
        while self._arriving and self._arriving[-1][0] <= now_ps:
            self._waiting, has_arrived = (*self._waiting, self._arriving.pop()[1]), True
        begun = self._begin_waiting() if self._waiting and (gone or has_arrived) else False
        if done or begun:
            heapq.heappush(self._decisions_due, now_ps + self._reaction_ps)
        decides = bool(self._decisions_due) and self._decisions_due[0] <= now_ps
        if decides:
            while self._decisions_due and self._decisions_due[0] <= now_ps:
                heapq.heappop(self._decisions_due)
            self._traffic.plan(now_ps, now_ps - self._reaction_ps)
            self._num_decisions += 1
        if done or begun or decides:
            self._record(self._traffic.regroup(now_ps))
        return True

    def result(self) -> TraceResult:
        """Return the result until now; the run cannot go on afterwards."""
        now_s = self.now_ps / PS_PER_S
        self._record(self._traffic.settle(self.now_ps))
        for name in list(self._occupancies):
            self._end(name, is_done=False)
        num_intervals = max(1, int(-(-now_s // _SERIES_INTERVAL_S)))
        progress = self._progress
        return TraceResult(
            policy=self._policy.name,
            enforcement=Enforcement.LEVELS,
            seed=self._options.seed,
            gpus=self._num_gpus,
            ended_s=now_s,
            jobs=tuple(self._results),
            num_waiting=len(self._waiting),
            computed_gpu_s=self._computing.total_s,
            allocated_gpu_s=self._allocated.total_s,
            series=GpuSeries(
                _SERIES_INTERVAL_S,
                self._computing.means(_SERIES_INTERVAL_S, num_intervals),
                self._allocated.means(_SERIES_INTERVAL_S, num_intervals),
            ),
            counts=Counts(
                decisions=self._num_decisions,
                components=self._traffic.num_components,
                events=sum(one.num_events for one in progress),
                iterations_computed=sum(one.num_computed for one in progress),
                iterations_repeated=sum(one.num_repeated for one in progress),
                iterations_extrapolated=sum(one.num_extrapolated for one in progress),
            ),
        )

    def _next_ps(self) -> int:
        times = [self._until_ps]
        if self._arriving:
            times.append(self._arriving[-1][0])
        if self._slicing_ends:
            times.append(self._slicing_ends[0][0])
        if self._decisions_due:
            times.append(self._decisions_due[0])
        return self._traffic.next_done_ps(min(times))

    def _begin_waiting(self) -> bool:
        """Start the waiting jobs for which the scheduler finds GPUs; return whether any of them sends."""
        admission = self._admit(self._state, self._waiting)
        self._state, self._waiting = admission.state, admission.waiting
        # A list, so that every job begins.
        sends = list(map(self._begin, admission.starts))
        return any(sends)

    def _begin(self, start: JobStart) -> bool:
        """Start jobs on their GPUs; return whether they send."""
        jobs = [self._simulated[member.name] for member in start.members]
        sends = [job.sends for job in jobs]
        if any(sends) and not all(sends):
            names = ", ".join(member.name for member in start.members)
            raise ValueError(f"jobs {names}: expected all of the jobs that share GPUs to send, or none")
        slicing = None if any(sends) else TimeSlicing.of(jobs)
        running = {member.name for member in start.members}
        occupancy = _Occupancy(self.now_ps, start.members, start.allocation, slicing, running)
        self._num_shared += len(jobs) > 1
        for job in jobs:
            name = job.request.name
            self._occupancies[name] = occupancy
            if slicing is None:
                self._traffic.begin(job, start.allocation, self.now_ps, self._num_shared if len(jobs) > 1 else 0)
            else:
                heapq.heappush(self._slicing_ends, (self.now_ps + round(slicing.end_s(name) * PS_PER_S), name))
        return slicing is None

    def _end(self, name: str, *, is_done: bool = True) -> None:
        """Record the end of a job, or that the run ends while the job has its GPUs."""
        occupancy = self._occupancies.pop(name)
        job = self._simulated[name]
        request = job.request
        start_s, now_s = occupancy.start_ps / PS_PER_S, self.now_ps / PS_PER_S
        occupancy.running.remove(name)
        if not occupancy.running:
            self._allocated.add(start_s, now_s, request.gpus * (now_s - start_s))
            if is_done:
                self._state = self._state.give_back(occupancy.allocation)
        if occupancy.slicing is not None:
            computed_s = occupancy.slicing.completed(name, now_s - start_s) * job.workload.compute_s
            self._computing.add(start_s, now_s, request.gpus * computed_s)
        self._results.append(
            TraceJobResult(
                request.name,
                job.label,
                request.gpus,
                request.arrival_s,
                start_s,
                now_s if is_done else None,
                request.run_time_s,
                tuple(member.name for member in occupancy.members if member is not request),
            )
        )

    def _record(self, progress: Sequence[ComponentProgress]) -> None:
        self._progress += progress
        for one in progress:
            self._computing.add(one.from_ps / PS_PER_S, one.to_ps / PS_PER_S, one.computed_gpu_s)
