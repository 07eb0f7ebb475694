"""Iterating jobs: cases computed by hand, and the same ends as the fluid engine, to the picosecond."""

import heapq
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.scenarios.simulated import run_on_simulator
from policies.enforcement import Allocator
from policies.model import rate_cache
from policies.model.bundles import Bundles
from policies.model.picoseconds import NEVER_PS, PS_PER_S
from policies.rates.network import Network
from simulator.fluid import Fluid, allocation
from simulator.iterating_jobs import IteratingJobs, Iterations
from topologies.fabric import Path
from workloads.scenario import Scenario

GBPS = 1e9
GB = 1e9 / 8
"""Bytes that a link of GBPS carries in a second."""


def make_jobs(
    *jobs: tuple[float, float, float, Sequence[float]],
    rhythm: tuple[float, float] | None = None,
    shared: Sequence[int] | None = None,
) -> Iterations:
    """For each job: seconds of computation before and beside its transfer, its start, and its bundles' sizes."""
    before_s, beside_s, begins_s, sizes = zip(*jobs, strict=True)
    period_s, beat_s = rhythm or (0.0, 0.0)
    return Iterations(
        *(np.rint(np.array(times) * PS_PER_S).astype(np.int64) for times in (before_s, beside_s, begins_s)),
        np.full(len(jobs), round(period_s * PS_PER_S)),
        np.full(len(jobs), round(beat_s * PS_PER_S)),
        np.array([len(of_job) for of_job in sizes]),
        np.array([size for of_job in sizes for size in of_job], dtype=np.float64),
        None if shared is None else np.array(shared),
    )


def make_bundles(
    capacities_bps: Sequence[float],
    paths: Sequence[Path],
    tiers: Sequence[int],
    latency_s: float = 0.0,
    places: Sequence[int] = (),
) -> Bundles:
    """``places`` are those of flows on the first of their links, if any."""
    number = len(paths)
    by_hop = [
        place if hop == 0 else 0 for place, path in zip(places, paths, strict=bool(places)) for hop in range(len(path))
    ]
    network = Network.of(np.array(capacities_bps), paths, np.array(by_hop, dtype=np.int64))
    return Bundles(
        network,
        np.ones(number),
        np.array(tiers, dtype=np.int64),
        np.zeros(number, dtype=np.int64),
        np.full(number, round(latency_s * PS_PER_S)),
    )


def ends_s(run: IteratingJobs, job: int) -> list[float]:
    return [end_ps / PS_PER_S for end_ps in run.kept_ps[job].tolist() if end_ps]


def test_a_job_alone_computes_and_sends_side_by_side() -> None:
    """1 s alone, then 2 s beside a transfer of 3 s: 4 s an iteration, of which it computes 3."""
    run = IteratingJobs(make_jobs((1, 2, 0.5, [3 * GB])), make_bundles([GBPS], [(0,)], [0]), num_kept=3)
    run.run(until_ps=8 * PS_PER_S)
    assert ends_s(run, 0) == [4.5]
    assert (run.iterations.tolist(), run.begun_ps.tolist()) == ([1], [4.5 * PS_PER_S])
    assert run.computed_ps.tolist() == [6 * PS_PER_S]
    assert run.carried_bytes().tolist() == [5.5 * GB]


def test_the_last_byte_arrives_a_latency_later() -> None:
    run = IteratingJobs(make_jobs((1, 0, 0, [GB])), make_bundles([GBPS], [(0,)], [0], latency_s=0.25), num_kept=2)
    run.run(num_iterations=2)
    assert ends_s(run, 0) == [2.25, 4.5]


def test_a_job_that_sends_nothing_computes_all_the_time() -> None:
    run = IteratingJobs(make_jobs((1, 2, 0, [])), make_bundles([GBPS], [], []), num_kept=2)
    run.run(until_ps=7 * PS_PER_S)
    assert ends_s(run, 0) == [3.0, 6.0]
    assert run.computed_ps.tolist() == [7 * PS_PER_S]


@pytest.mark.parametrize(("tiers", "computed_s", "carried_s"), [([0, 1], [12, 5], [3, 7]), ([1, 0], [12, 6], [3, 9])])
def test_example_2_of_crux(tiers: list[int], computed_s: list[float], carried_s: list[float]) -> None:
    """Section 4.2, Figure 12: twelve seconds from when J2, half way through its computation, begins to send."""
    jobs = make_jobs((2, 2, 1, [GB]), (1, 1, 0, [3 * GB]))
    run = IteratingJobs(jobs, make_bundles([GBPS, 9 * GBPS, 9 * GBPS], [(0, 1), (0, 2)], tiers))
    run.run(until_ps=PS_PER_S)
    before_ps = run.computed_ps
    run.run(until_ps=13 * PS_PER_S)
    assert ((run.computed_ps - before_ps) / PS_PER_S).tolist() == computed_s
    assert run.carried_bytes()[1:] / GB == pytest.approx(carried_s)


def test_two_jobs_of_a_tier_share_a_link() -> None:
    """Both send 1 s of bytes from 1 s to 3 s; an isolated job would end at 2 s."""
    jobs = make_jobs((1, 0, 0, [GB]), (1, 0, 0, [GB]))
    run = IteratingJobs(jobs, make_bundles([GBPS], [(0,), (0,)], [0, 0]), num_kept=2)
    run.run(num_iterations=2)
    assert (ends_s(run, 0), ends_s(run, 1)) == ([3.0, 6.0], [3.0, 6.0])


@pytest.mark.parametrize(
    ("compute_s", "expected_s"),
    [
        (1, ([2, 4, 6, 8], [3, 5, 7, 9])),
        (2, ([3, 7, 11, 15], [5, 9, 13, 17])),
        (0.5, ([1.5, 3, 4.5, 6], [2, 3.5, 5, 6.5])),
    ],
)
def test_two_jobs_on_the_same_gpus_compute_in_turns(compute_s: float, expected_s: tuple[list[float], ...]) -> None:
    """Each sends for 1 s on its own link while the other computes for as long, longer, or less long."""
    jobs = make_jobs((compute_s, 0, 0, [GB]), (compute_s, 0, 0, [GB]), shared=[1, 1])
    run = IteratingJobs(jobs, make_bundles([GBPS, GBPS], [(0,), (1,)], [0, 0]), num_kept=4)
    run.run(num_iterations=4)
    assert (ends_s(run, 0), ends_s(run, 1)) == expected_s


def test_who_has_waited_longest_for_gpus_is_next() -> None:
    """Three jobs only compute; the second is last, because both others asked before it."""
    jobs = make_jobs((1, 0, 0, []), (0, 1, 0.75, []), (1, 0, 0.25, []), shared=[4, 4, 4])
    run = IteratingJobs(jobs, make_bundles([GBPS], [], []), num_kept=2)
    run.run(num_iterations=2)
    assert [ends_s(run, job) for job in range(3)] == [[1, 4], [3, 6], [2, 5]]
    assert run.computed_ps.tolist() == [2 * PS_PER_S] * 3


def test_a_job_that_waits_has_the_gpus_once_the_other_is_gone() -> None:
    run = IteratingJobs(
        make_jobs((4, 0, 0, []), (1, 0, 0, []), shared=[1, 1]), make_bundles([GBPS], [], []), num_kept=2
    )
    run.run(until_ps=PS_PER_S)
    state = run.state()
    left = IteratingJobs(make_jobs((1, 0, 0, [])), make_bundles([GBPS], [], []), num_kept=2)
    left.resume(replace(state, table=state.table[1:]))
    left.run(until_ps=4 * PS_PER_S)
    assert ends_s(left, 0) == [2, 3]


def test_a_job_out_of_its_rhythm_waits_for_its_beat() -> None:
    """Beats are at 0.5, 2.5, ...; iterations of 2 s keep them, iterations of 3 s wait for every second one."""
    fast = IteratingJobs(make_jobs((1, 0, 0, [GB]), rhythm=(2, 0.5)), make_bundles([GBPS], [(0,)], [0]), num_kept=3)
    fast.run(num_iterations=3)
    assert ends_s(fast, 0) == [2.0, 4.5, 6.5]
    slow = IteratingJobs(make_jobs((1, 0, 0, [GB]), rhythm=(2, 0.5)), make_bundles([GBPS / 2], [(0,)], [0]), num_kept=3)
    slow.run(num_iterations=3)
    assert ends_s(slow, 0) == [3.0, 7.5, 11.5]


def test_later_by_a_while() -> None:
    """A state inside an iteration continues on another path and at a later time."""
    jobs, paths = make_jobs((1, 1, 0, [2 * GB])), [(0,)]
    run = IteratingJobs(jobs, make_bundles([GBPS, 2 * GBPS], paths, [0]), num_kept=1)
    run.run(until_ps=2 * PS_PER_S)
    other = IteratingJobs(jobs, make_bundles([GBPS, 2 * GBPS], [(1,)], [0]), num_kept=1)
    other.resume(run.state().later(100 * PS_PER_S))
    assert (other.now_ps, other.computed_ps.tolist()) == (102 * PS_PER_S, [2 * PS_PER_S])
    other.run_to_first(np.array([1]))
    assert ends_s(other, 0) == [102.5]


def test_to_the_first_of_several() -> None:
    run = IteratingJobs(make_jobs((1, 0, 0, []), (3, 0, 0, [])), make_bundles([GBPS], [], []))
    run.run_to_first(np.array([8, 2]))
    assert (run.now_ps, run.iterations.tolist()) == (6 * PS_PER_S, [6, 2])


def test_nothing_happens_any_more_on_a_link_that_is_down() -> None:
    run = IteratingJobs(make_jobs((1, 0, 0, [GB])), make_bundles([0.0], [(0,)], [0]))
    run.run(num_iterations=1)
    assert (run.now_ps, run.iterations.tolist()) == (PS_PER_S, [0])
    run.run(until_ps=5 * PS_PER_S)
    assert run.now_ps == 5 * PS_PER_S


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ((0, 0, 0, [1.0]), "job 0: it must compute"),
        ((1, -1, 0, [1.0]), "job 0: it must compute"),
        ((1, 0, 0, [0.0]), "bundle 0: it must send"),
    ],
)
def test_what_cannot_be_meant_is_refused(job: tuple[float, float, float, Sequence[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_jobs(job)


def test_bundles_of_other_jobs_are_refused() -> None:
    with pytest.raises(ValueError, match="expected 1 bundles, got 2"):
        IteratingJobs(make_jobs((1, 0, 0, [GB])), make_bundles([GBPS], [(0,), (0,)], [0, 0]))


Case = tuple[Iterations, Bundles]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """One to four jobs with up to four bundles each on five links."""
    tenths = st.integers(0, 12).map(lambda tenths: tenths / 10)
    size = st.sampled_from([0.1 * GB, GB / 3, GB, 1.7 * GB])
    jobs = draw(st.lists(st.tuples(tenths, tenths, tenths, st.lists(size, max_size=4)), min_size=1, max_size=4))
    jobs = [(before_s or 0.1, *others) for before_s, *others in jobs]
    number = sum(len(job[3]) for job in jobs)
    each = {"min_size": number, "max_size": number}
    path = st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True).map(tuple)
    capacities = draw(st.lists(st.sampled_from([1e9, 2e9, 3e9]), min_size=5, max_size=5))
    paths, tiers = draw(st.lists(path, **each)), draw(st.lists(st.integers(0, 2), **each))
    rhythm = draw(st.none() | st.tuples(tenths.map(lambda tenths: tenths + 1.3), tenths))
    places = draw(st.just([]) | st.lists(st.integers(0, 2), **each))
    bundles = make_bundles(capacities, paths, tiers, draw(st.sampled_from([0.0, 0.05])), places)
    shared = draw(st.none() | st.lists(st.integers(0, 2), min_size=len(jobs), max_size=len(jobs)))
    return make_jobs(*jobs, rhythm=rhythm, shared=shared), bundles


@given(cases())
@settings(max_examples=60, deadline=None)
def test_the_same_ends_as_the_general_engine(case: Case) -> None:
    jobs, bundles = case
    run = IteratingJobs(jobs, bundles, num_kept=200)
    run.run(until_ps=20 * PS_PER_S)
    ends_ps, carried_bytes = plain_ends_ps(jobs, bundles, 20 * PS_PER_S)
    assert [[end_ps for end_ps in row if end_ps] for row in run.kept_ps.tolist()] == ends_ps
    assert run.iterations.tolist() == list(map(len, ends_ps))
    assert run.carried_bytes() == pytest.approx(carried_bytes, abs=1.0)


@given(cases(), st.integers(1, 19))
@settings(max_examples=20, deadline=None)
def test_in_pieces_and_with_little_memory_as_at_once(case: Case, piece_s: int) -> None:
    jobs, bundles = case
    run = IteratingJobs(jobs, bundles, num_kept=200)
    run.run(until_ps=20 * PS_PER_S)
    num_events, kept_ps, computed_ps = run.num_events, run.kept_ps, run.computed_ps
    iterations = run.iterations
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rate_cache, "_NUM_SLOTS", 4)
        patched.setattr(rate_cache, "_MOST_RATES", 1)
        forgetful = IteratingJobs(jobs, bundles, num_kept=200)
    for until_s in range(0, 20, piece_s):
        forgetful.run(until_ps=until_s * PS_PER_S)
    forgetful.run(until_ps=20 * PS_PER_S)
    run.restart(bundles)
    run.run(until_ps=piece_s * PS_PER_S)
    resumed = IteratingJobs(jobs, bundles, num_kept=200)
    resumed.resume(run.state())
    resumed.run(until_ps=20 * PS_PER_S)
    # What is left is rounded once more there; where a rhythm is kept, whether to hold can hang on that, and where GPUs
    # are shared, whose turn it is.
    if jobs.shared is None and not jobs.period_ps.any():
        in_both = (resumed.kept_ps > 0) & (kept_ps > 0)
        assert np.abs(resumed.kept_ps - kept_ps)[in_both].max(initial=0) <= 1000
        assert np.abs(resumed.iterations - iterations).max(initial=0) <= 1
    run.run(until_ps=20 * PS_PER_S)
    for other in (forgetful, run):
        assert other.num_events == num_events
        assert (other.kept_ps == kept_ps).all()
        assert (other.computed_ps == computed_ps).all()


def plain_ends_ps(jobs: Iterations, bundles: Bundles, until_ps: int) -> tuple[list[list[int]], list[float]]:
    """Return ends of iterations by job, and bytes by link, computed by the fluid engine and an event queue."""
    fluid = Fluid(bundles, allocation(Allocator.MAX_MIN))
    num_jobs, first = len(jobs.before_ps), np.cumsum([0, *jobs.num_bundles])
    calendar = [(int(begins_ps), job, "begin") for job, begins_ps in enumerate(jobs.begins_ps)]
    heapq.heapify(calendar)
    ends: list[list[int]] = [[] for _ in range(num_jobs)]
    sending, computing = [0] * num_jobs, [False] * num_jobs
    in_rhythm = [False] * num_jobs
    shared = [0] * num_jobs if jobs.shared is None else jobs.shared.tolist()
    has_gpus: dict[int, int] = {}
    asks: list[int] = []

    def release(job: int) -> None:
        has_gpus.pop(shared[job], None)
        waiting = [other for other in asks if shared[other] == shared[job]]
        if waiting:
            asks.remove(waiting[0])
            has_gpus[shared[job]] = waiting[0]
            heapq.heappush(calendar, (fluid.now_ps, waiting[0], "granted"))

    def held_ps(job: int) -> int:
        period, beat = int(jobs.period_ps[job]), int(jobs.beat_ps[job])
        if not period:
            return 0
        late = (fluid.now_ps - beat + period // 2) % period - period // 2
        was_in_rhythm, in_rhythm[job] = in_rhythm[job], True
        if late > period / 20:
            return period - late
        return max(0, -late) if not was_in_rhythm or late < -period / 20 else 0

    def end_iteration(job: int) -> None:
        if not computing[job] and not sending[job]:
            ends[job].append(fluid.now_ps)
            heapq.heappush(calendar, (fluid.now_ps + held_ps(job), job, "begin"))

    def send(job: int) -> None:
        numbers = np.arange(first[job], first[job + 1])
        sending[job] = len(numbers)
        if len(numbers):
            fluid.start(numbers, jobs.size_bytes[numbers])

    while fluid.now_ps < until_ps:
        for bundle in fluid.run(min(until_ps, calendar[0][0] if calendar else NEVER_PS)):
            job = int(first.searchsorted(bundle, "right")) - 1
            sending[job] -= 1
            end_iteration(job)
        while calendar and calendar[0][0] <= fluid.now_ps:
            _, job, what = heapq.heappop(calendar)
            before_ps, beside_ps = int(jobs.before_ps[job]), int(jobs.beside_ps[job])
            if what == "begin" and shared[job] and shared[job] in has_gpus:
                asks.append(job)
                continue
            if what in ("begin", "granted") and shared[job]:
                has_gpus[shared[job]] = job
            if what in ("begin", "granted") and before_ps:
                computing[job] = True
                heapq.heappush(calendar, (fluid.now_ps + before_ps, job, "send"))
            elif what != "end":
                send(job)
                computing[job] = beside_ps > 0
                if beside_ps:
                    heapq.heappush(calendar, (fluid.now_ps + beside_ps, job, "end"))
                else:
                    release(job)
                    end_iteration(job)
            else:
                computing[job] = False
                release(job)
                end_iteration(job)
    return ends, fluid.carried_bytes().sum(axis=1).tolist()


def test_the_same_ends_as_a_run_of_the_scenario() -> None:
    """Three jobs on a Clos with hashed paths, compared with a run that replays them event by event."""
    jobs = [
        {
            "name": name,
            "hosts": hosts,
            "gpus_per_host": 4,
            "iterations": 12,
            "arrival_s": arrival_s,
            "workload": {"type": "phases", "compute_s": compute_s, "comm_start": 0.4, "bytes": 3e9, "pattern": "ring"},
        }
        for name, hosts, arrival_s, compute_s in (
            ("a", ["h0", "h2", "h4"], 0.0, 0.31),
            ("b", ["h1", "h3"], 0.4, 0.5),
            ("c", ["h5", "h0"], 1.25, 0.23),
        )
    ]
    topology = {
        "kind": "clos", "tors": 3, "aggs": 2, "hosts_per_tor": 2, "gpus_per_host": 8, "nics_per_host": 2,
        "host_link_gbps": 200, "uplink_gbps": 100,
    }  # fmt: skip
    document = {"name": "three", "topology": topology, "jobs": jobs, "reaction_delay_s": 0.0}
    result = run_on_simulator(Scenario.model_validate(document), "ecmp", on_progress=lambda _now, _end: None)
    delays_s = np.array([link.delay_s for link in result.fabric.links])
    flows = [[flow for flow in result.flows if flow.job == job.name] for job in result.jobs]
    paths = [flow.path for of_job in flows for flow in of_job]
    bundles = Bundles(
        Network.of(np.array(result.fabric.rates_bps), paths),
        np.ones(len(paths)),
        np.zeros(len(paths), dtype=np.int64),
        np.zeros(len(paths), dtype=np.int64),
        np.array([round(delays_s[list(path)].sum() * PS_PER_S) for path in paths]),
    )
    numbers = Iterations.of(
        np.array([0.31, 0.5, 0.23]),
        np.full(3, 0.4),
        np.array([0.0, 0.4, 1.25]),
        np.array(list(map(len, flows))),
        np.array([flow.size_bytes for of_job in flows for flow in of_job]),
    )
    run = IteratingJobs(numbers, bundles, num_kept=12)
    # From then on one of them is gone.
    first_gone_ps = min(round(job.communicating[-1].end_s * PS_PER_S) for job in result.jobs)
    run.run(until_ps=first_gone_ps)
    for number, job in enumerate(result.jobs):
        ends = [max(sent.end_s, job.computing[1::2][n].end_s) for n, sent in enumerate(job.communicating)]
        expected_ps = [end_ps for end_ps in (round(end_s * PS_PER_S) for end_s in ends) if end_ps <= first_gone_ps]
        assert len(expected_ps) > 5
        assert [end_ps for end_ps in run.kept_ps[number].tolist() if end_ps] == expected_ps
