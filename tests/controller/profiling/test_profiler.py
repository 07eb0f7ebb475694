"""Who is measured when, with counters of jobs whose truth is known."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest

from controller.planning.snapshots import Snapshots
from controller.profiling.measured import Measured, ProfilingResults
from controller.profiling.options import ProfilingOptions
from controller.profiling.profiler import Keep, Profiler
from controller.registry.jobs import RegisteredJob
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, JobRequest
from policies.job import Profile
from policies.policy import decide
from policies.registry import find_policy, policy_names
from policies.snapshot import Snapshot
from topologies.addressing import FLOW_DESTINATION_PORT, UDP_PROTOCOL, FiveTuple
from topologies.fabric import Path
from topologies.routing import Routing

RATE_BYTES_PER_S = 100e9 / 8
OPTIONS = ProfilingOptions(sample_s=0.02, window_s=10.0, check_s=20.0)
NUM_LEVELS = 4


class Senders:
    """Jobs of one flow each that count what they send, by the level that they have in the Plan in force."""

    def __init__(self, routing: Routing) -> None:
        self.now_s = 0.0
        self.compute_s: dict[str, float] = {}
        self.send_s: dict[str, float] = {}
        self.is_away = False
        self.profiled: str | None = None
        self._routing = routing
        self._counted: dict[str, float] = {}
        self._on_top: dict[str, float] = {}
        self._paths: dict[str, Path] = {}
        self._ends: dict[str, tuple[int, str]] = {}

    def add(self, job: JobRequest, compute_s: float, send_s: float) -> None:
        """A job whose first host sends to its second."""
        nics = self._routing.fabric.nics
        source, destination = nics[job.hosts[0]][0], nics[job.hosts[1]][0]
        flow = FiveTuple(source.address, destination.address, UDP_PROTOCOL, 50000, FLOW_DESTINATION_PORT)
        self.compute_s[job.name], self.send_s[job.name] = compute_s, send_s
        self._paths[job.name] = self._routing.hashed_path(flow)
        self._ends[job.name] = source.address, destination.host
        self._counted[job.name] = self._on_top[job.name] = 0.0

    def pass_time(self, by_s: float) -> None:
        """Let all of them go on."""
        for name, compute_s in self.compute_s.items():
            sent = self._sent_s(name, self.now_s + by_s, compute_s) - self._sent_s(name, self.now_s, compute_s)
            self._counted[name] += sent * RATE_BYTES_PER_S
            if self.profiled == name:
                self._on_top[name] += sent * RATE_BYTES_PER_S
        self.now_s += by_s

    def _sent_s(self, name: str, until_s: float, compute_s: float) -> float:
        iterations, into_s = divmod(until_s, compute_s + self.send_s[name])
        return iterations * self.send_s[name] + max(0.0, into_s - compute_s)

    async def job_bytes(self, switches: Collection[str]) -> Mapping[tuple[int, str], int] | None:
        fabric = self._routing.fabric
        return (
            None
            if self.is_away
            else {
                ends: round(self._counted[name])
                for name, ends in self._ends.items()
                if fabric.links[fabric.nic_by_address[ends[0]].link].destination in switches
            }
        )

    async def level_bytes(self, level: int) -> Mapping[int, int] | None:
        assert level == NUM_LEVELS - 1
        counted = dict.fromkeys(range(len(self._routing.fabric.links)), 0)
        for name, path in self._paths.items():
            for link in path[1:]:
                counted[link] += round(self._on_top[name])
        return None if self.is_away else counted


class Bench:
    """A profiler with its registry and senders, in steps of a sample; the Plan is in force at once."""

    def __init__(
        self, registry: Registry, routing: Routing, num_levels: int = NUM_LEVELS, keep: Keep | None = None
    ) -> None:
        self.registry = registry
        self.senders = Senders(routing)
        self.results = ProfilingResults()
        kept = () if keep is None else (keep,)
        self.profiler = Profiler(registry, self.results, routing, self.senders, OPTIONS, num_levels, 1.0, *kept)
        self.snapshots = Snapshots(registry, routing, num_levels, seed=1, profiling=self.results)
        self.snapshot: Snapshot | None = None
        self.plans = 0

    def add(self, name: str, hosts: tuple[str, ...], compute_s: float, send_s: float) -> None:
        job = JobRequest(name, hosts, 16, None)
        self.registry.register_job(job, self.senders.now_s)
        self.senders.add(job, compute_s, send_s)

    def run(self, until_s: float) -> set[str | None]:
        """Let time pass; returns the jobs that had a level for themselves meanwhile, None for nobody."""
        seen: set[str | None] = set()
        while self.senders.now_s < until_s:
            if asyncio.run(self.profiler.take_turn(self.senders.now_s, self.snapshot)):
                self.snapshot = self.snapshots.take(self.senders.now_s, None)
                self.senders.profiled = self.snapshot.profiled
                self.plans += 1
            seen.add(self.results.profiled)
            self.senders.pass_time(OPTIONS.sample_s)
        return seen


@pytest.fixture
def bench(registry: Registry, routing: Routing) -> Bench:
    return Bench(registry, routing)


def test_a_job_that_tells_its_hosts_is_measured_and_ranked_by_that(bench: Bench) -> None:
    bench.add("gpt", ("h0", "h2"), compute_s=0.2, send_s=0.1)
    assert bench.run(12.0) == {"gpt", None}
    measured = bench.results.measured("gpt")
    assert measured is not None
    assert measured.rhythm.period_s == pytest.approx(0.3, rel=0.02)
    assert measured.transfer_s == pytest.approx(0.1, rel=0.02)
    assert bench.snapshot is not None
    (job,) = bench.snapshot.jobs
    assert sum(flow.size_bytes for flow in job.flows) == pytest.approx(0.1 * RATE_BYTES_PER_S, rel=0.02)
    assert job.registered_flows == ()
    plan = decide(find_policy("crux"), bench.snapshot)
    assert plan.jobs[0].intensity == pytest.approx(16 * 0.3 / 0.1, rel=0.1)


@pytest.mark.parametrize("policy", policy_names())
def test_every_policy_decides_on_it_beside_one_that_tells_all(
    bench: Bench, job: JobRequest, ring: FlowGroupRequest, policy: str
) -> None:
    bench.add("quiet", ("h1", "h3"), compute_s=0.2, send_s=0.1)
    bench.run(12.0)
    bench.registry.register_job(job, 12.0)
    bench.registry.register_flow_groups(job.name, [ring])
    plan = decide(find_policy(policy), bench.snapshots.take(12.0, None))
    assert {decided.name for decided in plan.jobs} == {"gpt", "quiet"}
    assert all(0 <= flow.level < NUM_LEVELS for flow in plan.flows.values())


def test_it_has_a_level_for_itself_until_it_is_measured(bench: Bench) -> None:
    bench.add("gpt", ("h0", "h2"), compute_s=0.2, send_s=0.1)
    bench.run(5.0)
    assert bench.snapshot is not None
    assert (bench.snapshot.profiled, bench.snapshot.num_levels) == ("gpt", NUM_LEVELS - 1)
    bench.run(12.0)
    assert (bench.snapshot.profiled, bench.snapshot.num_levels) == (None, NUM_LEVELS)


def test_one_at_a_time_in_order_of_arrival(bench: Bench) -> None:
    bench.add("late", ("h1", "h3"), compute_s=0.2, send_s=0.05)
    bench.run(1.0)
    bench.add("later", ("h0", "h2"), compute_s=0.2, send_s=0.1)
    assert bench.run(6.0) == {"late"}
    assert bench.run(24.0) == {"late", "later", None}
    for name, transfer_s in (("late", 0.05), ("later", 0.1)):
        measured = bench.results.measured(name)
        assert measured is not None
        assert measured.transfer_s == pytest.approx(transfer_s, rel=0.03)


def test_nothing_is_counted_before_the_level_is_in_force(bench: Bench) -> None:
    bench.add("gpt", ("h0", "h2"), compute_s=0.2, send_s=0.1)
    assert asyncio.run(bench.profiler.take_turn(0.0, None))
    for step in range(1, 1200):
        bench.senders.pass_time(OPTIONS.sample_s)
        assert not asyncio.run(bench.profiler.take_turn(step * OPTIONS.sample_s, None))
    assert bench.results.measured("gpt") is None


def test_a_job_that_does_something_else_is_measured_anew_and_no_other(bench: Bench) -> None:
    bench.add("gpt", ("h0", "h2"), compute_s=0.2, send_s=0.1)
    bench.run(15.0)
    before = bench.results.measured("gpt")
    assert bench.run(45.0) == {None}
    assert bench.results.measured("gpt") is before
    bench.senders.send_s["gpt"] = 0.15
    assert "gpt" in bench.run(90.0)
    after = bench.results.measured("gpt")
    assert after is not None
    assert after.transfer_s == pytest.approx(0.15, rel=0.03)


def test_of_traffic_without_rhythm_nothing_is_made_up(bench: Bench) -> None:
    bench.add("steady", ("h0", "h2"), compute_s=0.0, send_s=1.0)
    bench.add("gpt", ("h1", "h3"), compute_s=0.2, send_s=0.1)
    bench.run(40.0)
    assert bench.results.measured("steady") is None
    assert bench.results.measured("gpt") is not None
    assert bench.snapshot is not None
    assert bench.snapshot.jobs[1].flows == ()


def test_a_switch_that_does_not_answer_puts_it_off(bench: Bench) -> None:
    bench.add("gpt", ("h0", "h2"), compute_s=0.2, send_s=0.1)
    bench.run(2.0)
    bench.senders.is_away = True
    bench.run(4.0)
    assert bench.results.profiled is None
    bench.senders.is_away = False
    bench.run(60.0)
    assert bench.results.measured("gpt") is not None


def test_a_job_that_leaves_or_tells_its_profile_is_not_measured(bench: Bench) -> None:
    bench.add("gpt", ("h0", "h2"), compute_s=0.2, send_s=0.1)
    bench.run(2.0)
    bench.registry.deregister("gpt")
    bench.run(2.1)
    assert (bench.results.profiled, bench.profiler.next_turn_s) == (None, None)
    bench.add("bert", ("h0", "h2"), compute_s=0.2, send_s=0.1)
    bench.run(20.0)
    assert bench.results.measured("bert") is not None
    bench.registry.report_profile("bert", Profile(1.0, 0.5, 16.0))
    bench.run(20.1)
    assert (bench.results.measured("bert"), bench.profiler.next_turn_s) == (None, None)


def test_jobs_that_tell_are_left_alone(bench: Bench, job: JobRequest) -> None:
    bench.registry.register_job(job, 0.0)
    bench.registry.register_job(replace(job, name="other"), 0.0)
    assert bench.run(1.0) == {None}
    assert (bench.plans, bench.profiler.next_turn_s) == (0, None)


def test_with_one_level_there_is_nothing_to_measure(registry: Registry, routing: Routing) -> None:
    bench = Bench(registry, routing, num_levels=1)
    bench.add("gpt", ("h0", "h2"), compute_s=0.2, send_s=0.1)
    assert bench.run(1.0) == {None}
    assert bench.profiler.next_turn_s is None


def test_what_the_controller_before_has_measured_is_only_looked_at_again(registry: Registry, routing: Routing) -> None:
    kept: dict[str, Measured] = {}

    def keep(job: RegisteredJob, measured: Measured) -> None:
        kept[job.request.name] = measured

    bench = Bench(registry, routing, keep=keep)
    bench.add("gpt", ("h0", "h2"), compute_s=0.2, send_s=0.1)
    bench.run(12.0)
    assert kept == {"gpt": bench.results.measured("gpt")}
    again = Bench(registry, routing)
    again.senders = bench.senders
    again.profiler = Profiler(registry, again.results, routing, bench.senders, OPTIONS, NUM_LEVELS, 1.0)
    again.results.record("gpt", kept["gpt"])
    assert again.run(bench.senders.now_s + 15.0) == {None}
    assert again.results.measured("gpt") is kept["gpt"]
