"""A trace under a policy: jobs come, wait for GPUs, iterate as the policy's plans let them, and leave.

Between two events of jobs that send, nothing changes but what iterates; how much of that is computed, repeated or
extrapolated, ``SkipOptions`` says. Jobs that send nothing iterate at their ideal time, and are no event for a policy.
Where a scheduler lets jobs share GPUs, they compute in turns.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from experiments.traces.component import Passed
from experiments.traces.gpu_time import GpuTime
from experiments.traces.results import Counts, GpuSeries, TraceJobResult, TraceResult
from experiments.traces.steadiness import SkipOptions
from experiments.traces.traffic import TraceTraffic
from experiments.traces.turns import Turns
from policies.enforcement import Enforcement
from policies.policy import Policy
from policies.registry import as_policy
from simulator.fluid import NEVER_PS, PS_PER_S
from topologies.fabric import Fabric
from workloads.schedulers.admission import Admit, JobStart
from workloads.schedulers.cluster import Allocation, Cluster, ClusterState, GpuRequest
from workloads.traces.simulated_jobs import SimulatedJob

_SERIES_INTERVAL_S = 600.0


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """How a trace is run: ``until_s`` cuts it off, ``seed`` is that of the fabric's hash and of policies.

    What happens to jobs that send is decided on, and in force, ``reaction_delay_s`` later.
    """

    seed: int = 1
    reaction_delay_s: float = 0.01
    until_s: float | None = None
    skip: SkipOptions = field(default_factory=SkipOptions)


_DEFAULT = TraceOptions()


@dataclass(slots=True)
class _Stay:
    """Jobs on GPUs that are theirs from ``start_ps`` until the last of them leaves; ``turns`` where none sends."""

    start_ps: int
    members: tuple[GpuRequest, ...]
    allocation: Allocation
    turns: Turns | None
    staying: set[str]


def run_trace(
    jobs: Sequence[SimulatedJob],
    fabric: Fabric,
    policy: Policy | str,
    admit: Admit,
    options: TraceOptions = _DEFAULT,
) -> TraceResult:
    """Run jobs, in any order, until all are done.

    Raises ValueError for jobs of one name or of more GPUs than there are, and where the policy cannot decide.
    """
    run = TraceRun(jobs, fabric, policy, admit, options)
    while run.step():
        pass
    return run.result()


class TraceRun:
    """A run, event by event; ``now_ps`` is the time of the last one, ``last_arrival_s`` when the last job comes."""

    def __init__(
        self, jobs: Sequence[SimulatedJob], fabric: Fabric, policy: Policy | str, admit: Admit, options: TraceOptions
    ) -> None:
        cluster = Cluster.of_fabric(fabric)
        self._simulated = {job.request.name: job for job in jobs}
        if len(self._simulated) < len(jobs):
            raise ValueError("expected jobs of different names")
        for job in jobs:
            if not cluster.fits(job.request):
                raise ValueError(f"job {job.request.name!r}: it asks for more GPUs than there are")
        policy = as_policy(policy)
        self._policy = policy
        self._admit = admit
        self._options = options
        self._reaction_ps = round(options.reaction_delay_s * PS_PER_S)
        self._until_ps = NEVER_PS if options.until_s is None else round(options.until_s * PS_PER_S)
        self._num_gpus = len(cluster.hosts) * cluster.gpus_per_host
        self._state = ClusterState.empty(cluster)
        coming = sorted((job.request for job in jobs), key=lambda request: request.arrival_s, reverse=True)
        self._coming = [(round(request.arrival_s * PS_PER_S), request) for request in coming]
        self.last_arrival_s = coming[0].arrival_s if coming else 0.0
        self._waiting: tuple[GpuRequest, ...] = ()
        self._stays: dict[str, _Stay] = {}
        self._num_shared = 0
        self._lone_ends: list[tuple[int, str]] = []
        self._decisions_due: list[int] = []
        self._traffic = TraceTraffic(fabric, policy, options.seed, options.skip)
        self._computing, self._allocated = GpuTime(), GpuTime()
        self._passed: list[Passed] = []
        self._results: list[TraceJobResult] = []
        self._num_decisions = 0
        self.now_ps = 0

    @property
    def now_s(self) -> float:
        return self.now_ps / PS_PER_S

    def step(self) -> bool:
        """Let the next event happen; False where there is none any more."""
        if (now_ps := self._next_ps()) >= self._until_ps:
            self.now_ps = max(self.now_ps, min(now_ps, self._until_ps)) if self._until_ps < NEVER_PS else self.now_ps
            return False
        self.now_ps = now_ps
        done = self._traffic.take_done(now_ps)
        gone = [job.name for job in done]
        while self._lone_ends and self._lone_ends[0][0] <= now_ps:
            gone.append(heapq.heappop(self._lone_ends)[1])
        for name in gone:
            self._end(name)
        has_arrived = False
        while self._coming and self._coming[-1][0] <= now_ps:
            self._waiting, has_arrived = (*self._waiting, self._coming.pop()[1]), True
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
            self._note(self._traffic.regroup(now_ps))
        return True

    def result(self) -> TraceResult:
        """What has come of it until now; the run is over then."""
        now_s = self.now_ps / PS_PER_S
        self._note(self._traffic.settle(self.now_ps))
        for name in list(self._stays):
            self._end(name, is_done=False)
        num_intervals = max(1, int(-(-now_s // _SERIES_INTERVAL_S)))
        passed = self._passed
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
                events=sum(one.num_events for one in passed),
                iterations_computed=sum(one.num_computed for one in passed),
                iterations_repeated=sum(one.num_repeated for one in passed),
                iterations_extrapolated=sum(one.num_extrapolated for one in passed),
            ),
        )

    def _next_ps(self) -> int:
        times = [self._until_ps]
        if self._coming:
            times.append(self._coming[-1][0])
        if self._lone_ends:
            times.append(self._lone_ends[0][0])
        if self._decisions_due:
            times.append(self._decisions_due[0])
        return self._traffic.next_done_ps(min(times))

    def _begin_waiting(self) -> bool:
        """Let those begin for whom the scheduler finds GPUs; returns whether any of them sends."""
        admission = self._admit(self._state, self._waiting)
        self._state, self._waiting = admission.state, admission.waiting
        # All of them begin, whoever sends.
        sends = list(map(self._begin, admission.starts))
        return any(sends)

    def _begin(self, start: JobStart) -> bool:
        """Let jobs begin on their GPUs; returns whether they send."""
        jobs = [self._simulated[member.name] for member in start.members]
        sends = [job.sends for job in jobs]
        if any(sends) and not all(sends):
            names = ", ".join(member.name for member in start.members)
            raise ValueError(f"jobs {names}: expected of jobs that share GPUs that all of them send, or none")
        turns = None if any(sends) else Turns.of(jobs)
        stay = _Stay(self.now_ps, start.members, start.allocation, turns, {member.name for member in start.members})
        self._num_shared += len(jobs) > 1
        for job in jobs:
            name = job.request.name
            self._stays[name] = stay
            if turns is None:
                self._traffic.begin(job, start.allocation, self.now_ps, self._num_shared if len(jobs) > 1 else 0)
            else:
                heapq.heappush(self._lone_ends, (self.now_ps + round(turns.end_s(name) * PS_PER_S), name))
        return turns is None

    def _end(self, name: str, *, is_done: bool = True) -> None:
        """A job leaves its GPUs, or the run ends while it has them."""
        stay = self._stays.pop(name)
        job = self._simulated[name]
        request = job.request
        start_s, now_s = stay.start_ps / PS_PER_S, self.now_ps / PS_PER_S
        stay.staying.remove(name)
        if not stay.staying:
            self._allocated.note(start_s, now_s, request.gpus * (now_s - start_s))
            if is_done:
                self._state = self._state.give_back(stay.allocation)
        if stay.turns is not None:
            computed_s = stay.turns.completed(name, now_s - start_s) * job.workload.compute_s
            self._computing.note(start_s, now_s, request.gpus * computed_s)
        self._results.append(
            TraceJobResult(
                request.name,
                job.label,
                request.gpus,
                request.arrival_s,
                start_s,
                now_s if is_done else None,
                request.run_time_s,
                tuple(member.name for member in stay.members if member is not request),
            )
        )

    def _note(self, passed: Sequence[Passed]) -> None:
        self._passed += passed
        for one in passed:
            self._computing.note(one.from_ps / PS_PER_S, one.to_ps / PS_PER_S, one.computed_gpu_s)
