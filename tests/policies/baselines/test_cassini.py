import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.baselines.cassini import CassiniOptions, cassini
from policies.baselines.unified_circle import UnifiedCircle, Use
from policies.job import Job
from policies.snapshot import Snapshot
from tests.policies.builders import GBPS, make_job, make_links
from topologies.fabric import Path

LINKS = make_links(GBPS, GBPS, GBPS)
ALWAYS = CassiniOptions(least_score=-math.inf)
"""Shifts jobs however badly they fit."""


def half_busy(name: str, *paths: Path, arrival_s: float = 0.0) -> Job:
    """Computes for 1 s, then uses the whole rate of its links for 1 s."""
    return make_job(name, [(GBPS / 8, (path,)) for path in paths], compute_s=1.0, arrival_s=arrival_s)


def shifts_of(*jobs: Job, options: CassiniOptions = ALWAYS) -> dict[str, float | None]:
    plan = cassini(Snapshot(0.0, LINKS, jobs), options)
    assert {(flow.path, flow.level, flow.order) for flow in plan.flows.values()} <= {(None, 0, 0)}
    return {job.name: job.time_shift_s for job in plan.jobs}


def test_two_jobs_take_turns() -> None:
    assert shifts_of(half_busy("a", (0,)), half_busy("b", (0,))) == {"a": 0.0, "b": pytest.approx(1.0)}


def test_who_came_first_is_not_shifted() -> None:
    assert shifts_of(half_busy("a", (0,), arrival_s=7.25), half_busy("b", (0,), arrival_s=7.0)) == {
        "a": pytest.approx(0.75),
        "b": 0.0,
    }


def test_a_shift_reaches_along_the_affinity_graph() -> None:
    """A and b take turns on link 0, b and c on link 1: c runs with a."""
    shifts = shifts_of(half_busy("a", (0,)), half_busy("b", (0,), (1,)), half_busy("c", (1,)))
    assert shifts == {"a": 0.0, "b": pytest.approx(1.0), "c": pytest.approx(0.0)}


def test_a_link_that_closes_a_loop_turns_only_who_is_free() -> None:
    """Three jobs that would all have to take turns with each other, two at a time: one pair must meet."""
    jobs = half_busy("a", (0,), (2,)), half_busy("b", (0,), (1,)), half_busy("c", (1,), (2,))
    plan = cassini(Snapshot(0.0, LINKS, jobs), ALWAYS)
    assert {job.name: job.time_shift_s for job in plan.jobs} == {
        "a": 0.0,
        "b": pytest.approx(1.0),
        "c": pytest.approx(0.0),
    }
    reasons = {job.name: job.reason for job in plan.jobs}
    assert reasons["b"] == "Begins 1 s later; on the link where it meets others most, they score 1.000."
    assert reasons["a"].endswith("they score 0.500.")


def test_by_default_jobs_are_shifted_only_where_their_transfers_fit() -> None:
    """B and c take turns whole; d needs 1.2 s of a link that leaves it 1 s, so neither it nor a keeps a beat."""
    wide = make_job("d", [(1.2 * GBPS / 8, ((0,),))], compute_s=0.8)
    jobs = half_busy("a", (0,)), half_busy("b", (1,)), half_busy("c", (1,)), wide
    plan = cassini(Snapshot(0.0, LINKS, jobs))
    shifts = {job.name: job.time_shift_s for job in plan.jobs}
    assert shifts == {"a": None, "b": 0.0, "c": pytest.approx(1.0), "d": None}
    reasons = {job.name: job.reason for job in plan.jobs}
    assert reasons["a"] == reasons["d"] == "It is not shifted: jobs tied to it score 0.900, less than 1."
    assert shifts_of(*jobs)["d"] is not None
    assert shifts_of(*jobs, options=CassiniOptions(least_score=0.9))["d"] is not None
    assert shifts_of(*jobs, options=CassiniOptions(least_score=0.91))["d"] is None


def test_who_fits_on_one_link_is_not_shifted_where_a_job_tied_to_it_does_not_fit() -> None:
    """A and b would take turns on link 0, but b and c cannot on link 1."""
    wide = make_job("c", [(1.2 * GBPS / 8, ((1,),))], compute_s=0.8)
    jobs = half_busy("a", (0,)), half_busy("b", (0,), (1,)), wide
    assert set(shifts_of(*jobs, options=CassiniOptions()).values()) == {None}
    assert shifts_of(*jobs[:2], options=CassiniOptions()) == {"a": 0.0, "b": pytest.approx(1.0)}


@pytest.mark.parametrize("bad", [1.01, math.inf, math.nan])
def test_a_score_that_no_jobs_reach_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="least_score must be at most 1"):
        CassiniOptions(least_score=bad)


def test_jobs_that_never_exceed_a_link_are_left_alone() -> None:
    slow = make_job("slow", [(GBPS / 8, ((0,),)), (2 * GBPS / 8, ((2,),))])
    plan = cassini(Snapshot(0.0, make_links(2 * GBPS, GBPS, GBPS), (slow, half_busy("b", (0,), (1,)))))
    assert [job.time_shift_s for job in plan.jobs] == [None, None]
    assert all(job.reason.startswith("It meets nobody") for job in plan.jobs)


def test_a_job_without_traffic_or_computation_stays_where_it_is() -> None:
    idle = make_job("idle", [], compute_s=0.0), make_job("busy", [(1e9, ((0,),))], compute_s=0.0)
    assert shifts_of(*idle, half_busy("a", (0,)))["idle"] is None


def test_an_endless_iteration_names_the_job() -> None:
    with pytest.raises(ValueError, match="job 'a': size_bytes make an iteration of"):
        cassini(Snapshot(0.0, LINKS, (make_job("a", [(1e18, ((0,),))]),)))


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 12), st.sampled_from([0.0, 0.5, 1.0])), min_size=2, max_size=5)
)
def test_without_loops_every_link_gets_the_turns_of_its_own_circle(drawn: list[tuple[int, int, float]]) -> None:
    """Job n shares link n - 1 with an earlier one: a tree. All iterations take 2 s, transfers 1/12 s to 1 s of them."""
    paths: list[list[Path]] = [[] for _ in drawn]
    for number in range(1, len(drawn)):
        paths[number].append((number - 1,))
        paths[drawn[number][0] % number].append((number - 1,))
    jobs, links = [], make_links(*[GBPS] * (len(drawn) - 1))
    for number, (_, twelfths, comm_start) in enumerate(drawn):
        comm_s = twelfths / 12
        compute_s = min(2.0, (2.0 - comm_s) / comm_start) if comm_start else 2.0
        flows = [(comm_s * GBPS / 8, (path,)) for path in paths[number]]
        jobs.append(make_job(f"job-{number}", flows, compute_s=compute_s, comm_start=comm_start))
    plans = {plan.name: plan for plan in cassini(Snapshot(0.0, links, tuple(jobs)), ALWAYS).jobs}
    for link in range(len(links)):
        uses = [
            Use(2.0, job.profile.compute_s * job.profile.comm_start, twelfths / 12, 1.0)
            for job, (_, twelfths, _), own in zip(jobs, drawn, paths, strict=True)
            if (link,) in own
        ]
        shifts_s = [plans[job.name].time_shift_s or 0.0 for job, own in zip(jobs, paths, strict=True) if (link,) in own]
        alone = UnifiedCircle([[use] for use in uses])
        shifted = [replace(use, start_s=use.start_s + shift_s) for use, shift_s in zip(uses, shifts_s, strict=True)]
        assert UnifiedCircle([shifted]).score([0]) == pytest.approx(alone.score(alone.best_turns()), abs=1e-6)


@given(st.lists(st.integers(0, 8), min_size=2, max_size=4))
def test_arrivals_only_move_the_clock(arrivals_s: list[int]) -> None:
    """Whenever jobs of one period come, their iterations begin at the same times of the first one's rhythm."""
    jobs = [half_busy(f"job-{number}", (0,)) for number in range(len(arrivals_s))]
    together = shifts_of(*jobs)
    jobs = [replace(job, arrival_s=arrival_s) for job, arrival_s in zip(jobs, arrivals_s, strict=True)]
    apart = shifts_of(*jobs)
    first_s = min(arrivals_s)
    begins = sorted(round((job.arrival_s + (apart[job.name] or 0.0) - first_s) % 2.0, 6) % 2.0 for job in jobs)
    assert begins == sorted(round(shift_s or 0.0, 6) for shift_s in together.values())
