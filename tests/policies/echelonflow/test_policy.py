"""Plans of EchelonFlow: what levels and an order at the host make of the order of groups."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.baselines.varys import varys
from policies.echelonflow.policy import EchelonFlowOptions, Rank, echelonflow
from policies.flows import FlowGroup
from policies.job import Job
from policies.snapshot import Snapshot
from policies.task_graph import Computation, TaskGraph, Transfer
from tests.policies.builders import GBPS, make_job, make_links, snapshots, told


def staggered(job: Job, *offsets_s: float) -> Job:
    """The same job, its flows due one after the other."""
    (group,) = job.flow_groups
    flows = tuple(replace(flow, offset_s=offset_s) for flow, offset_s in zip(group.flows, offsets_s, strict=True))
    return replace(job, flow_groups=(FlowGroup(group.name, flows),))


def pipeline(name: str, *offsets_s: float, size_bytes: float = 1e9, step_s: float = 0.1) -> Job:
    return told(staggered(make_job(name, [(size_bytes, ((0,),))] * len(offsets_s)), *offsets_s), step_s)


@given(sizes=st.lists(st.lists(st.integers(0, 4), max_size=3), max_size=10), num_levels=st.integers(1, 8))
def test_with_offsets_of_nought_and_a_link_for_all_the_plan_is_varys_own(
    sizes: list[list[int]], num_levels: int
) -> None:
    jobs = tuple(
        make_job(f"job-{number}", [(1e9 * size, ((0,),)) for size in found]) for number, found in enumerate(sizes)
    )
    snapshot = Snapshot(0.0, make_links(GBPS), jobs, num_levels=num_levels)
    plan, expected = echelonflow(snapshot), varys(snapshot)
    assert [(job.name, job.level) for job in plan.jobs] == [(job.name, job.level) for job in expected.jobs]
    sent = {flow.key for job in jobs for flow in job.flows if any(one.size_bytes for one in job.flows)}
    assert {key: plan.flows[key] for key in sent} == {key: expected.flows[key] for key in sent}


def test_spare_levels_part_a_groups_flows_by_ideal_finish() -> None:
    jobs = pipeline("a", 0.0, 2.0, 1.0), pipeline("b", 0.0, size_bytes=9e9)
    plan = echelonflow(Snapshot(0.0, make_links(GBPS), jobs))
    levels = {(key.job, key.flow): flow.level for key, flow in plan.flows.items()}
    orders = {(key.job, key.flow): flow.order for key, flow in plan.flows.items()}
    assert levels == {("a", 0): 7, ("a", 2): 6, ("a", 1): 5, ("b", 0): 4}
    assert orders == {("a", 0): 0, ("a", 2): 1, ("a", 1): 2, ("b", 0): 3}
    assert [(job.name, job.level) for job in plan.jobs] == [("a", 7), ("b", 4)]
    assert "levels 7 to 5" in plan.jobs[0].reason


def test_groups_are_ranked_not_jobs() -> None:
    """A job's small group goes before another job that its large one has to wait for."""
    small, large = (replace(make_job("a", [(size, ((0,),))]).flow_groups[0], name=f"{size:g}") for size in (1e9, 4e9))
    named = [
        FlowGroup(group.name, tuple(replace(flow, key=flow.key._replace(group=group.name)) for flow in group.flows))
        for group in (large, small)
    ]
    jobs = told(replace(make_job("a", []), flow_groups=tuple(named))), make_job("b", [(2e9, ((0,),))])
    plan = echelonflow(Snapshot(0.0, make_links(GBPS), jobs))
    assert [(key.job, key.group, flow.level) for key, flow in sorted(plan.flows.items())] == [
        ("a", "1e+09", 7),
        ("a", "4e+09", 5),
        ("b", "all-reduce", 6),
    ]
    assert [(job.name, job.level) for job in plan.jobs] == [("a", 7), ("b", 6)]
    assert plan.jobs[0].reason.startswith(
        "Its group '1e+09' needs its bottleneck link 8 s an iteration, first of its 2"
    )


@given(snapshots())
def test_of_groups_that_meet_the_more_urgent_never_has_the_lower_level(snapshot: Snapshot) -> None:
    plan = echelonflow(snapshot)
    has_levels = snapshot.links.has_levels
    flows = [flow for job in snapshot.jobs for flow in job.flows if flow.size_bytes > 0]
    for one in flows:
        for other in flows:
            meet = any(has_levels[link] for link in set(one.hashed_path) & set(other.hashed_path))
            if meet and plan.flows[one.key].order < plan.flows[other.key].order:
                assert plan.flows[one.key].level >= plan.flows[other.key].level


def test_groups_that_never_meet_share_levels() -> None:
    jobs = tuple(pipeline(f"job-{number}", 0.0, size_bytes=1e9 * (number + 1)) for number in range(3))
    elsewhere = make_job("elsewhere", [(9e9, ((1,),))])
    plan = echelonflow(Snapshot(0.0, make_links(GBPS, GBPS), (*jobs, elsewhere)))
    assert {job.name: job.level for job in plan.jobs} == {"job-0": 7, "job-1": 6, "job-2": 5, "elsewhere": 7}


@given(
    stages=st.lists(st.integers(1, 12), min_size=1, max_size=10),
    num_levels=st.integers(1, 8),
    shuffle=st.randoms(use_true_random=False),
)
def test_levels_keep_the_order_of_jobs_and_of_stages(
    stages: list[int], num_levels: int, shuffle: random.Random
) -> None:
    jobs = []
    for number, count in enumerate(stages):
        offsets = [0.1 * stage for stage in range(count)]
        shuffle.shuffle(offsets)
        # Alone, the job has sent each flow before the next one.
        jobs.append(pipeline(f"job-{number}", *offsets, size_bytes=1e9 / count * (number + 1), step_s=100.0))
    plan = echelonflow(Snapshot(0.0, make_links(GBPS), tuple(jobs), num_levels=num_levels))
    offsets_s = {flow.key: flow.offset_s for job in jobs for flow in job.flows}
    rank = {job.name: job.rank for job in plan.jobs}
    ordered = sorted(plan.flows, key=lambda key: (rank[key.job], offsets_s[key]))
    levels = [plan.flows[key].level for key in ordered]
    assert levels == sorted(levels, reverse=True)
    assert [plan.flows[key].order for key in ordered] == sorted(plan.flows[key].order for key in ordered)
    assert levels[0] == num_levels - 1
    assert len(set(levels)) == min(sum(stages) if len(stages) < num_levels else len(stages), num_levels)
    if len(stages) <= num_levels:
        assert len({(key.job, plan.flows[key].level) for key in ordered}) == len(set(levels)), "no level has two jobs"


def test_ideal_finishes_that_differ_by_rounding_are_one() -> None:
    plan = echelonflow(Snapshot(0.0, make_links(GBPS), (pipeline("a", 0.0, 0.1 + 0.2, 0.3, size_bytes=1e7),)))
    assert [flow.level for flow in plan.flows.values()] == [7, 6, 6]


def test_jobs_may_be_ranked_by_how_late_they_will_be() -> None:
    """The steady one needs 24 s and is never more than 8 s late; the other needs 16 s and is as late."""
    jobs = pipeline("steady", 0.0, 8.0, 16.0), pipeline("burst", 0.0, 0.0)
    snapshot = Snapshot(0.0, make_links(GBPS), jobs)
    first = {rank: echelonflow(snapshot, EchelonFlowOptions(rank)).jobs[0].name for rank in Rank}
    assert first == {
        Rank.GAMMA: "burst",
        Rank.PRESSING: "burst",
        Rank.TARDINESS_ASCENDING: "steady",
        Rank.TARDINESS_DESCENDING: "burst",
    }


def test_a_pipeline_presses_only_as_far_as_its_flows_are_due_soon() -> None:
    """It needs 24 s in all, but never more than 8 s within 16; the burst needs 16 s at once."""
    jobs = pipeline("sparse", 0.0, 40.0, 80.0), pipeline("burst", 0.0, 0.0)
    snapshot = Snapshot(0.0, make_links(GBPS), jobs)
    plans = {rank: echelonflow(snapshot, EchelonFlowOptions(rank)) for rank in (Rank.GAMMA, Rank.PRESSING)}
    assert {rank: plan.jobs[0].name for rank, plan in plans.items()} == {Rank.GAMMA: "burst", Rank.PRESSING: "sparse"}
    assert "holds others up for 8 s at a time" in plans[Rank.PRESSING].jobs[0].reason


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_offsets_that_are_no_numbers_are_refused_by_job_and_field(bad: float) -> None:
    with pytest.raises(ValueError, match=r"job 'a', group 'all-reduce', flow 1: offset_s must be finite"):
        pipeline("a", 0.0, bad)


def test_groups_of_a_job_that_tie_are_one_formation() -> None:
    """Two directions of a pipeline, needing the same: their micro-batches in turn, above what another job sends."""
    (group,) = pipeline("a", 0.0, 1.0).flow_groups
    back = tuple(
        replace(flow, key=flow.key._replace(group="back"), offset_s=flow.offset_s + 0.5) for flow in group.flows
    )
    both = told(replace(make_job("a", []), flow_groups=(group, FlowGroup("back", back))))
    plan = echelonflow(Snapshot(0.0, make_links(GBPS), (both, pipeline("b", 0.0, size_bytes=9e9))))
    assert [(key.group, key.flow) for key in sorted(plan.flows, key=lambda key: plan.flows[key].order)] == [
        ("all-reduce", 0),
        ("back", 0),
        ("all-reduce", 1),
        ("back", 1),
        ("all-reduce", 0),
    ]
    assert sorted(flow.level for flow in plan.flows.values()) == [3, 4, 5, 6, 7]


def test_flows_of_a_job_share_a_level_where_nobody_knows_what_waits_for_them() -> None:
    known = pipeline("a", 0.0, 1.0, 2.0)
    assert known.task_graph is not None
    for job in (
        replace(known, task_graph=None),
        replace(known, task_graph=replace(known.task_graph, is_guessed=True)),
    ):
        plan = echelonflow(Snapshot(0.0, make_links(GBPS), (job, pipeline("b", 0.0, size_bytes=9e9))))
        assert {(key.job, flow.level, flow.order) for key, flow in plan.flows.items()} == {("a", 7, 0), ("b", 6, 1)}


def sharded(*, is_overlapped: bool) -> Job:
    """Two gathers of 8 s, each before a computation, and from the first one on a scatter of 12 s, ranked before them.

    The second computation needs what is scattered, too, unless it ``is_overlapped``.
    """
    flows = make_job("a", [(1e9, ((0,),)), (1e9, ((0,),)), (1.5e9, ((0,),))]).flows
    gathers = FlowGroup("gather", (flows[0], replace(flows[1], offset_s=10.0)))
    scatter = FlowGroup("scatter", (replace(flows[2], key=flows[2].key._replace(group="scatter", flow=0)),))
    named = replace(
        gathers, flows=tuple(replace(flow, key=flow.key._replace(group="gather")) for flow in gathers.flows)
    )
    tasks = (
        Computation(1.0),
        Transfer((0,), (0,)),
        Transfer((2,), (0,)),
        Computation(10.0, (1,)),
        Transfer((1,), (3,)),
        Computation(1.0, (4,) if is_overlapped else (2, 4)),
    )
    return replace(make_job("a", []), flow_groups=(named, scatter), task_graph=TaskGraph(tasks))


@pytest.mark.parametrize(("is_overlapped", "levels"), [(True, [7, 6, 5]), (False, [7, 6, 6])])
def test_groups_whose_ranks_would_slow_their_job_go_by_when_its_task_graph_needs_them(
    is_overlapped: bool, levels: list[int]
) -> None:
    plan = echelonflow(Snapshot(0.0, make_links(GBPS), (sharded(is_overlapped=is_overlapped),)))
    assert [flow.level for flow in plan.flows.values()] == levels
    assert plan.jobs[0].reason == (
        f"Its largest group needs its bottleneck link 16 s an iteration; its flows have levels 7 to {min(levels)}."
        " Ranks for each of its 2 groups would slow it down."
    )


def test_groups_keep_their_ranks_where_links_are_fast_enough() -> None:
    """The same job again, on a link on which nothing waits."""
    job = sharded(is_overlapped=True)
    for rate_bps, levels in ((GBPS, [7, 6, 5]), (1e6 * GBPS, [6, 5, 7])):
        plan = echelonflow(Snapshot(0.0, make_links(rate_bps), (job,)))
        assert [flow.level for flow in plan.flows.values()] == levels


@pytest.mark.parametrize(("size_bytes", "first"), [(1.9e9, "b"), (2.1e9, "a")])
def test_groups_that_are_ranked_together_go_by_the_largest_of_them(size_bytes: float, first: str) -> None:
    """Its groups need 16 and 12 s, and 28 s together; the other job's only group needs about 16 s."""
    other = make_job("b", [(size_bytes, ((0,),))])
    plan = echelonflow(Snapshot(0.0, make_links(GBPS), (sharded(is_overlapped=True), other)))
    assert min(plan.jobs, key=lambda job: job.rank).name == first
