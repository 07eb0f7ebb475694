"""Measure the jobs that report no profile, one after the other.

As in Crux (section 5), a new job gets a level for itself, above all others, for a window in which its traffic is
counted. The others wait in the order of their arrival.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping

from controller.profiling.measured import Measured, ProfilingResults, has_drifted
from controller.profiling.observation import Counters, Observation
from controller.profiling.options import ProfilingOptions
from controller.profiling.rhythm import Rhythm
from controller.registry.jobs import RegisteredJob
from controller.registry.registry import Registry
from policies.snapshot import Snapshot
from topologies.routing import Routing

ITERATIONS = 30
"""Iterations that are enough to end a measurement."""

_EVALUATION_INTERVAL_S = 1.0
"""Time between two evaluations of the readings."""
_LONGEST_RETRY = 16


Keep = Callable[[RegisteredJob, Measured], None]


def _forget(_job: RegisteredJob, _measured: Measured) -> None:
    pass


class Profiler:
    """Measures the jobs of a registry that report no profile, and records them in ``results``.

    The owner calls ``take_turn`` at ``next_turn_s`` and whenever the registry has changed, and plans if it returns
    True. A counted byte stands for ``bytes_per_count`` bytes of jobs. With a single level there is nothing to decide,
    so nothing is measured. ``keep`` stores measurements for the next controller.
    """

    def __init__(
        self,
        registry: Registry,
        results: ProfilingResults,
        routing: Routing,
        counters: Counters,
        options: ProfilingOptions,
        num_levels: int,
        bytes_per_count: float,
        keep: Keep = _forget,
    ) -> None:
        self._registry = registry
        self._results = results
        self._routing = routing
        self._counters = counters
        self._options = options
        self._own_level = num_levels - 1
        self._wanted = options, num_levels
        self._bytes_per_count = bytes_per_count
        self._keep = keep
        self._arrival_s: dict[str, float] = {}
        """Distinguishes a job from an earlier one of the same name."""
        self._due_s: dict[str, float] = {}
        """When to measure or check each job next."""
        self._failures: dict[str, int] = {}
        self._current: str | None = None
        self._observation: Observation | None = None
        self._next_evaluation_s = 0.0
        self.next_turn_s: float | None = None

    def use(self, options: ProfilingOptions, num_levels: int) -> None:
        """Measure by these options, and at the uppermost of so many levels, from the next turn on."""
        self._wanted = options, num_levels

    async def take_turn(self, now_s: float, snapshot: Snapshot | None) -> bool:
        """Do what is due while the Plan for ``snapshot`` is in force; return whether a new Plan is needed."""
        has_changed = self._use_wanted()
        if self._own_level == 0:
            return has_changed
        jobs = {job.request.name: job for job in self._registry.jobs if job.request.profile is None}
        has_changed |= self._forget(jobs)
        for name, job in jobs.items():
            self._arrival_s.setdefault(name, job.arrival_s)
            self._due_s.setdefault(name, now_s)
        if self._current is None:
            has_changed |= self._begin(jobs.values(), now_s)
        elif self.next_turn_s is not None and now_s < self.next_turn_s - self._options.sample_s / 2:
            return has_changed
        elif self._is_ready(snapshot):
            has_changed |= await self._observe(jobs[self._current], now_s)
        if self._current is not None:
            self.next_turn_s = now_s + self._options.sample_s
        else:
            self.next_turn_s = min(self._due_s.values(), default=None)
        return has_changed

    def _use_wanted(self) -> bool:
        """Take over other options; a measurement at another level ends, which is told by returning True."""
        self._options, num_levels = self._wanted
        if self._own_level == num_levels - 1:
            return False
        self._own_level = num_levels - 1
        return self._end()

    def _forget(self, jobs: Mapping[str, RegisteredJob]) -> bool:
        """Drop the jobs that have left or report a profile by now."""
        gone = {
            name for name, since_s in self._arrival_s.items() if name not in jobs or jobs[name].arrival_s != since_s
        }
        for name in gone:
            del self._arrival_s[name], self._due_s[name]
            self._failures.pop(name, None)
            self._results.forget(name)
        return self._end() if self._current in gone else False

    def _begin(self, jobs: Collection[RegisteredJob], now_s: float) -> bool:
        """Start with the job that has been due longest; return whether it needs a level for itself."""
        due = [job for job in jobs if self._due_s[job.request.name] <= now_s]
        if not due:
            return False
        job = min(due, key=lambda job: (self._due_s[job.request.name], job.arrival_s, job.request.name))
        self._current = job.request.name
        if self._results.measured(self._current) is None:
            self._results.profiled = self._current
        return self._results.profiled is not None

    def _is_ready(self, snapshot: Snapshot | None) -> bool:
        """Return whether the job has the level at which it is to be measured, if it needs one."""
        return self._results.profiled is None or (snapshot is not None and snapshot.profiled == self._current)

    async def _observe(self, job: RegisteredJob, now_s: float) -> bool:
        """Take a reading and, from time to time, evaluate all of them."""
        name, options = job.request.name, self._options
        sent = await self._counters.job_bytes(self._switches_of(job))
        if sent is None:
            return self._give_up(name, now_s)
        hosts = set(job.request.hosts)
        nics = self._routing.fabric.nic_by_address
        own = {traffic: count for traffic, count in sent.items() if {nics[traffic[0]].host, traffic[1]} <= hosts}
        observation = self._observation
        if observation is None or not observation.add(now_s, own):
            links = await self._counters.level_bytes(self._own_level) if self._results.profiled else None
            self._observation = Observation(now_s, own, links)
            self._next_evaluation_s = now_s + _EVALUATION_INTERVAL_S
            return self._give_up(name, now_s) if self._results.profiled and links is None else False
        # A job with longer iterations needs a longer window.
        window_s = options.window_s * min(2 ** self._failures.get(name, 0), _LONGEST_RETRY)
        is_over = now_s - observation.began_s >= window_s
        if not is_over and now_s < self._next_evaluation_s:
            return False
        self._next_evaluation_s = now_s + _EVALUATION_INTERVAL_S
        rhythm = await asyncio.to_thread(observation.rhythm)
        if rhythm is None or (rhythm.iterations < ITERATIONS and not is_over):
            return self._give_up(name, now_s) if is_over else False
        if self._results.profiled is None:
            return self._compare(name, rhythm, now_s)
        links = await self._counters.level_bytes(self._own_level)
        if links is None:
            return self._give_up(name, now_s)
        measured = await asyncio.to_thread(observation.measured, rhythm, links, self._bytes_per_count, self._routing)
        self._results.record(name, measured)
        self._keep(job, measured)
        self._failures.pop(name, None)
        self._due_s[name] = now_s + options.check_s
        return self._end()

    def _compare(self, name: str, rhythm: Rhythm, now_s: float) -> bool:
        """Return whether a checked job must be measured anew, and begin to."""
        known = self._results.measured(name)
        assert known is not None
        if has_drifted(known.rhythm, rhythm, self._options.drift):
            self._observation = None
            self._results.profiled = name
            return True
        self._due_s[name] = now_s + self._options.check_s
        return self._end()

    def _give_up(self, name: str, now_s: float) -> bool:
        """Try again later and for longer, because the readings show no rhythm."""
        known = self._results.measured(name) is not None
        self._failures[name] = self._failures.get(name, 0) + 1
        wait_s = self._options.check_s if known else self._options.window_s
        self._due_s[name] = now_s + wait_s * min(2 ** self._failures[name], _LONGEST_RETRY)
        return self._end()

    def _end(self) -> bool:
        had_level = self._results.profiled is not None
        self._current, self._observation, self._results.profiled = None, None, None
        return had_level

    def _switches_of(self, job: RegisteredJob) -> frozenset[str]:
        fabric = self._routing.fabric
        return frozenset(fabric.links[nic.link].destination for host in job.request.hosts for nic in fabric.nics[host])
