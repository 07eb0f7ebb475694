"""Traces under policies, compared with results computed by hand, with scenarios, and with runs that skip nothing."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from experiments.scenarios.simulated import run_on_simulator
from experiments.traces.results import TraceResult
from experiments.traces.run import TraceOptions, TraceRun, run_trace
from experiments.traces.steady_state import ACCURATE, SkipOptions
from tests.experiments.traces.jobs import DUMBBELL, on_hosts, simulated
from topologies.specification import ClosSpecification
from workloads.scenario import Scenario
from workloads.schedulers.admission import admit_in_groups, admit_in_order
from workloads.schedulers.baselines import RandomPlacement, place_by_affinity
from workloads.schedulers.cluster import Allocation, ClusterState, GpuRequest
from workloads.traces.simulated_jobs import SimulatedJob
from workloads.workload import PhasesWorkload

ACROSS = {"a": ("h0", "h2"), "b": ("h1", "h3")}
"""Two jobs, each with one host on either side of the dumbbell."""
SECOND_BYTES = 12.5e9
"""The bytes that the bottleneck carries in a second."""
AT_ONCE = TraceOptions(reaction_delay_s=0.0)


def ends_s(result: TraceResult) -> dict[str, float | None]:
    return {job.name: job.end_s for job in result.jobs}


def test_an_isolated_job_takes_its_logged_time() -> None:
    """The job has four and a half iterations of 1 s of computation and 1 s of sending."""
    result = run_trace([simulated("a", 1.0, SECOND_BYTES, 2.0, 4.5)], DUMBBELL, "ecmp", on_hosts(ACROSS), AT_ONCE)
    assert ends_s(result) == {"a": pytest.approx(9.0)}
    assert result.run_slowdowns.tolist() == pytest.approx([1.0])
    assert result.gpu_utilisation == pytest.approx(5 / 9)
    assert result.cluster_utilisation == pytest.approx(5 / 9 / 2)


@pytest.mark.parametrize(("policy", "expected_s"), [("ecmp", {"a": 30.0, "b": 30.0}), ("crux", {"a": 20.0, "b": 21.0})])
@pytest.mark.parametrize("skip", [ACCURATE, SkipOptions(), SkipOptions(tolerance=None)])
def test_two_jobs_on_one_link(policy: str, expected_s: dict[str, float], skip: SkipOptions) -> None:
    """In step they share it and take 3 s an iteration; out of step both have it alone, from the second iteration on."""
    jobs = [simulated(name, 1.0, SECOND_BYTES, 2.0, 10) for name in ACROSS]
    result = run_trace(jobs, DUMBBELL, policy, on_hosts(ACROSS), TraceOptions(reaction_delay_s=0.0, skip=skip))
    assert ends_s(result) == pytest.approx(expected_s)
    assert result.counts.decisions == (2 if policy == "ecmp" else 3)


def test_repetitions_of_a_cycle_are_skipped() -> None:
    jobs = [simulated(name, 1.0, SECOND_BYTES, 2.0, 10_000) for name in ACROSS]
    result = run_trace(jobs, DUMBBELL, "crux", on_hosts(ACROSS), AT_ONCE)
    assert ends_s(result) == pytest.approx({"a": 20_000.0, "b": 20_001.0})
    assert result.counts.iterations_repeated > 19_900
    assert result.counts.iterations_computed + result.counts.iterations_repeated == 20_000


def test_slower_iterations_end_later_and_the_queue_waits() -> None:
    """The third job asks for all hosts: it begins when both others are gone."""
    jobs = [simulated(name, 1.0, SECOND_BYTES, 2.0, 10) for name in ACROSS]
    jobs.append(simulated("c", 1.0, 0.0, 1.0, 5, arrival_s=3.0, num_hosts=4))
    hosts = {**ACROSS, "c": ("h0", "h1", "h2", "h3")}
    result = run_trace(jobs, DUMBBELL, "ecmp", on_hosts(hosts), AT_ONCE)
    assert ends_s(result) == pytest.approx({"a": 30.0, "b": 30.0, "c": 35.0})
    waited = next(job for job in result.jobs if job.name == "c")
    assert (waited.queueing_s, waited.run_slowdown, waited.slowdown) == pytest.approx((27.0, 1.0, 32 / 5))


def test_jobs_that_send_nothing_cause_no_decision() -> None:
    jobs = [simulated(str(number), 1.0, 9.0, 1.0, 7, num_hosts=1, gpus_per_host=4) for number in range(8)]
    result = run_trace(jobs, DUMBBELL, "crux", on_hosts({str(n): (f"h{n % 4}",) for n in range(8)}))
    assert set(ends_s(result).values()) == {7.0}
    assert (result.counts.decisions, result.gpu_utilisation, result.cluster_utilisation) == (0, 1.0, 1.0)


def test_a_decision_is_in_force_after_the_reaction_delay() -> None:
    """Until 2.5 both share the link, in step; what is left then, a quarter of a transfer each, goes one by one."""
    jobs = [simulated(name, 1.0, SECOND_BYTES, 2.0, 10) for name in ACROSS]
    result = run_trace(jobs, DUMBBELL, "crux", on_hosts(ACROSS), TraceOptions(reaction_delay_s=2.5))
    ends = ends_s(result)
    assert ends["a"] == pytest.approx(20 + 0.75)
    assert ends["b"] == pytest.approx(20 + 1.0 + 0.75)


def test_running_jobs_count_in_part_when_a_run_is_cut_off() -> None:
    jobs = [simulated(name, 1.0, SECOND_BYTES, 2.0, 10) for name in ACROSS]
    options = TraceOptions(reaction_delay_s=0.0, until_s=9.0)
    result = run_trace(jobs, DUMBBELL, "ecmp", on_hosts(ACROSS), options)
    assert ends_s(result) == {"a": None, "b": None}
    assert result.ended_s == 9.0
    assert result.gpu_utilisation == pytest.approx(1 / 3)
    assert not len(result.slowdowns)


def test_series_show_when_gpus_compute() -> None:
    jobs = [simulated("a", 1.0, SECOND_BYTES, 2.0, 450), simulated("b", 1.0, 0.0, 1.0, 600, arrival_s=600.0)]
    series = run_trace(jobs, DUMBBELL, "ecmp", on_hosts(ACROSS)).series
    assert series.allocated.tolist() == pytest.approx([16.0, 16.0 * 300 / 600 + 16.0])
    assert series.computing.tolist() == pytest.approx([8.0, 8.0 * 300 / 600 + 16.0])


CLOS = {
    "kind": "clos", "tors": 4, "aggs": 2, "hosts_per_tor": 2, "gpus_per_host": 8, "nics_per_host": 2,
    "host_link_gbps": 200, "uplink_gbps": 100,
}  # fmt: skip


@pytest.mark.parametrize("policy", ["ecmp", "crux", "cassini", "trainyard"])
def test_a_trace_agrees_with_a_run_of_the_scenario(policy: str) -> None:
    """Jobs come and go on a Clos fabric; every iteration is computed, and the run of the scenario agrees."""
    given: list[dict[str, Any]] = [
        {"name": "a", "hosts": ["h0", "h2", "h4"], "arrival_s": 0.0, "iterations": 30, "compute_s": 0.31},
        {"name": "b", "hosts": ["h1", "h3"], "arrival_s": 0.4, "iterations": 12, "compute_s": 0.5},
        {"name": "c", "hosts": ["h5", "h7"], "arrival_s": 1.25, "iterations": 20, "compute_s": 0.23},
        {"name": "d", "hosts": ["h3", "h6"], "arrival_s": 2.0, "iterations": 15, "compute_s": 0.4},
    ]
    shared = {"type": "phases", "comm_start": 0.4, "bytes": 3e9, "pattern": "ring"}
    document = {
        "name": "four",
        "topology": CLOS,
        "reaction_delay_s": 0.01,
        "jobs": [
            {
                **{key: value for key, value in job.items() if key != "compute_s"},
                "gpus_per_host": 4,
                "workload": {**shared, "compute_s": job["compute_s"]},
            }
            for job in given
        ],
    }
    scenario = Scenario.model_validate(document)
    run = run_on_simulator(scenario, policy, on_progress=lambda _now_s, _end_s: None)
    alone_s = {job.name: job.ideal_iteration_time_s for job in run.jobs}
    jobs = [
        SimulatedJob(
            GpuRequest(job.name, len(job.hosts or ()), 4, job.arrival_s, (job.iterations or 0) * alone_s[job.name]),
            "made up",
            job.workload,
            alone_s[job.name],
        )
        for job in scenario.jobs
        if isinstance(job.workload, PhasesWorkload)
    ]
    hosts = {job["name"]: job["hosts"] for job in given}
    options = TraceOptions(skip=ACCURATE, seed=scenario.seed)
    result = run_trace(jobs, scenario.topology.build(), policy, on_hosts(hosts), options)
    jct_s = {job.name: job.end_s - job.arrival_s for job in result.jobs if job.end_s is not None}
    assert jct_s == pytest.approx({job.name: job.jct_s for job in run.jobs}, abs=1e-9)


@pytest.mark.parametrize("policy", ["ecmp", "crux"])
def test_skipping_agrees_with_every_iteration(policy: str) -> None:
    """Jobs of many lengths that meet on few links: utilisation within 0.5 %, and the same where cycles alone go."""
    fabric = ClosSpecification.model_validate(CLOS).build()
    chance = np.random.default_rng(3)
    jobs = []
    for number in range(24):
        compute_s, sent_s = float(chance.choice([0.25, 0.7, 1.53])), float(chance.choice([0.2, 0.4]))
        ideal_s, iterations = max(compute_s, 0.4 * compute_s + sent_s), float(chance.integers(20, 2000))
        where = {"num_hosts": int(chance.integers(2, 5)), "gpus_per_host": 4, "comm_start": 0.4}
        arrival_s = float(chance.integers(0, 4000))
        name, sent_bytes = f"job-{number}", sent_s * SECOND_BYTES
        jobs.append(simulated(name, compute_s, sent_bytes, ideal_s, iterations, arrival_s=arrival_s, **where))
    accurate, cycles, skipped = (
        run_trace(jobs, fabric, policy, admit_in_order(RandomPlacement(1)), TraceOptions(skip=skip))
        for skip in (ACCURATE, SkipOptions(tolerance=None), SkipOptions())
    )
    assert ends_s(cycles) == pytest.approx(ends_s(accurate), abs=1e-6)
    assert cycles.computed_gpu_s == pytest.approx(accurate.computed_gpu_s)
    assert skipped.gpu_utilisation == pytest.approx(accurate.gpu_utilisation, rel=0.005)
    assert skipped.counts.iterations_repeated > 1000
    # All of the work is done however it is counted: only the last part of an iteration of each job is not one.
    total = sum(job.iterations for job in jobs)
    for result in (accurate, cycles, skipped):
        counts = result.counts
        done = counts.iterations_computed + counts.iterations_repeated + counts.iterations_extrapolated
        assert done == pytest.approx(total, abs=len(jobs))


def test_steady_rates_are_extrapolated_where_no_cycle_is_exact() -> None:
    """The iteration times, of nine digits, have no small common multiple."""
    jobs = [
        simulated("a", 1.000000001, 0.5 * SECOND_BYTES, 1.500000001, 3000),
        simulated("b", 0.739085133, 0.25 * SECOND_BYTES, 0.989085133, 3000),
    ]
    options = TraceOptions(reaction_delay_s=0.0)
    skipped = run_trace(jobs, DUMBBELL, "ecmp", on_hosts(ACROSS), options)
    accurate = run_trace(jobs, DUMBBELL, "ecmp", on_hosts(ACROSS), replace(options, skip=ACCURATE))
    assert skipped.counts.iterations_extrapolated > 4000
    assert ends_s(skipped) == pytest.approx(ends_s(accurate), rel=0.005)
    assert skipped.gpu_utilisation == pytest.approx(accurate.gpu_utilisation, rel=0.005)


def test_impossible_jobs_are_refused() -> None:
    job = simulated("a", 1.0, SECOND_BYTES, 2.0, 1)
    with pytest.raises(ValueError, match="different names"):
        run_trace([job, job], DUMBBELL, "ecmp", on_hosts(ACROSS))
    with pytest.raises(ValueError, match="job 'b': asks for more GPUs"):
        run_trace([simulated("b", 1.0, 0.0, 1.0, 1, num_hosts=5)], DUMBBELL, "ecmp", on_hosts(ACROSS))


GROUPED = admit_in_groups(place_by_affinity)


def sharing(name: str, compute_s: float, sent_bytes: float, send_s: float, todo: float, hosts: int) -> SimulatedJob:
    """Return a job on all GPUs of so many hosts that Muri may group."""
    job = simulated(name, compute_s, sent_bytes, compute_s + send_s, todo, num_hosts=hosts)
    return replace(job, request=replace(job.request, stages_s=(compute_s, send_s)))


@pytest.mark.parametrize("skip", [ACCURATE, SkipOptions()])
def test_jobs_that_share_gpus_take_turns(skip: SkipOptions) -> None:
    """One computes while the other sends at 400 Gbit/s; no other job gets the GPUs until both are done."""
    jobs = [sharing(name, 1.0, 4 * SECOND_BYTES, 1.0, todo, 4) for name, todo in (("a", 10), ("b", 20))]
    late = replace(sharing("c", 1.0, 0.0, 0.0, 5, 4), request=GpuRequest("c", 4, 8, 1.0, 5.0, (1.0, 0.0)))
    options = TraceOptions(reaction_delay_s=0.0, skip=skip)
    result = run_trace([*jobs, late], DUMBBELL, "ecmp", GROUPED, options)
    # b begins to compute a second after a, and has the GPUs to itself from 20 on.
    assert ends_s(result) == pytest.approx({"a": 20.0, "b": 41.0, "c": 46.0})
    assert {job.name: job.shared_gpus_with for job in result.jobs} == {"a": ("b",), "b": ("a",), "c": ()}
    assert result.allocated_gpu_s == pytest.approx(46 * 32)
    assert result.computed_gpu_s == pytest.approx((10 + 20 + 5) * 32)
    assert result.run_slowdowns.tolist() == pytest.approx([1.0, 1.0, 41 / 40])


def test_jobs_that_share_gpus_contend_with_others_for_links() -> None:
    """Two pairs of jobs, each with GPUs on both sides of the bottleneck, all send through it in turn."""
    jobs = [sharing(name, 1.0, SECOND_BYTES, 1.0, 8, 2) for name in "abcd"]

    def place(state: ClusterState, _: GpuRequest) -> Allocation | None:
        free = (hosts for hosts in ACROSS.values() if all(state.free[host] for host in hosts))
        return next(({host: state.free[host] for host in hosts} for hosts in free), None)

    accurate, skipped = (
        run_trace(jobs, DUMBBELL, "crux", admit_in_groups(place), TraceOptions(skip=skip))
        for skip in (ACCURATE, SkipOptions())
    )
    assert ends_s(skipped) == pytest.approx(ends_s(accurate))
    assert all(len(job.shared_gpus_with) == 1 for job in accurate.jobs)
    assert accurate.computed_gpu_s == pytest.approx(4 * 8 * 16)
    # The bottleneck carries all, a second each.
    assert max(job.end_s or 0.0 for job in accurate.jobs) >= 33.0


def test_results_survive_a_failed_step() -> None:
    """Muri groups two jobs of which only one sends, which fails; earlier results are kept."""
    jobs = [
        replace(job, request=replace(job.request, stages_s=(1.0, 1.0)))
        for job in (
            simulated("a", 1.0, 0.0, 1.0, 5, num_hosts=4),
            simulated("b", 1.0, SECOND_BYTES, 2.0, 1, num_hosts=4, arrival_s=1.0),
            simulated("c", 1.0, 0.0, 1.0, 1, num_hosts=4, arrival_s=1.0),
        )
    ]
    run = TraceRun(jobs, DUMBBELL, "ecmp", admit_in_groups(RandomPlacement(1)), AT_ONCE)
    while run.now_s < 1.0:
        assert run.step()
    with pytest.raises(ValueError, match="expected all of the jobs that share GPUs to send, or none"):
        run.step()
    assert ends_s(run.result()) == {"a": 5.0}
