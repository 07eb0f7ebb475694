"""EchelonFlow: statements of the paper, agreement with Varys, and the distance to the optimum."""

import math
import random
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.papers.open_loop import Allocation, Moment, OpenCase, OpenFlow, OpenGroup, end_times, random_case
from experiments.papers.open_loop_policies import echelonflow as echelon_rates
from experiments.papers.open_loop_policies import fair, needed_s, optimum_s
from experiments.papers.open_loop_policies import varys as varys_rates
from policies.baselines.varys import varys
from policies.echelonflow.policy import EchelonFlowOptions, Rank, due_s, echelonflow, group_order
from policies.flows import FlowGroup
from policies.job import Job
from policies.rates.madd import madd
from policies.rates.network import FloatArray, Order
from policies.snapshot import Snapshot
from policies.task_graph import Computation, TaskGraph, Transfer
from tests.policies.builders import GBPS, make_job, make_links, snapshots, told

ECHELON = echelon_rates(Rank.PRESSING)
BY_TARDINESS = (Rank.TARDINESS_ASCENDING, Rank.TARDINESS_DESCENDING)


def consumed(end_s: list[float], duration_s: float) -> float:
    """When a worker ends that computes on one flow's data after the other's."""
    done_s = 0.0
    for end in end_s:
        done_s = max(done_s, end) + duration_s
    return done_s


PIPELINE = OpenCase((1.0,), (OpenGroup(tuple(OpenFlow((0,), 1.0 + number, 2.0, number) for number in range(3))),))
"""The setting of figures 1 and 2: a worker sends what it computes, a micro-batch a second, 2 s each on the link."""


@pytest.mark.parametrize(
    ("allocate", "end_s", "done_s"),
    [(fair, [4.5, 6.5, 7.0], 8.5), (varys_rates, [7.0, 7.0, 7.0], 10.0), (ECHELON, [5.0, 6.0, 7.0], 8.0)],
)
def test_a_coflow_makes_a_pipeline_wait_longer_than_fair_sharing_and_an_echelonflow_less(
    allocate: Allocation, end_s: list[float], done_s: float
) -> None:
    ends = end_times(PIPELINE, allocate)
    assert ends == pytest.approx(end_s)
    assert consumed(ends, 1.0) == pytest.approx(done_s)


def test_a_formation_is_equally_late_everywhere_and_none_can_be_less_late() -> None:
    (group,) = PIPELINE.groups
    ends = end_times(PIPELINE, ECHELON)
    assert [end - group.reference_s - flow.offset_s for end, flow in zip(ends, group.flows, strict=True)] == [4.0] * 3
    assert PIPELINE.tardiness_s(ends) == [optimum_s(PIPELINE)]


def test_completion_of_a_pipeline_is_its_tardiness_later_than_the_ideal() -> None:
    """Equation S11 of the technical report: minimising one is minimising the other."""
    for allocate in (fair, varys_rates, ECHELON):
        ends = end_times(PIPELINE, allocate)
        (late_s,) = PIPELINE.tardiness_s(ends)
        assert consumed(ends, 1.0) == pytest.approx(late_s + PIPELINE.ideal_finish_s[-1] + 1.0)


@st.composite
def groups_of_coflows(draw: st.DrawFn, releases: st.SearchStrategy[float]) -> OpenCase:
    """Groups whose flows are all needed together, though not always released so."""
    capacities = tuple(draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=2, max_size=2)))
    paths = st.sampled_from([(0,), (1,), (0, 1)])
    flows = st.lists(
        st.builds(OpenFlow, paths, releases, st.sampled_from([0.7, 1.0, 2.0, 3.3])), min_size=1, max_size=3
    )
    weights = st.sampled_from([1.0, 2.0, 3.0])
    groups = draw(st.lists(st.builds(OpenGroup, flows.map(tuple), weights), min_size=1, max_size=4))
    return OpenCase(capacities, tuple(groups))


def alike(case: OpenCase, one: Allocation, other: Allocation) -> None:
    """Run a case under one allocator and hold the other against it at every event."""

    def both(moment: Moment) -> tuple[Order, FloatArray]:
        order, rates = one(moment)
        other_order, other_rates = other(moment)
        assert order.starts.tolist() == other_order.starts.tolist()
        assert rates.tolist() == other_rates.tolist()
        return order, rates

    end_times(case, both)


@given(groups_of_coflows(st.sampled_from([0.0, 0.1, 1.0, 2.7])))
def test_with_offsets_of_nought_order_and_rates_are_those_of_varys_at_every_event(case: OpenCase) -> None:
    alike(case, ECHELON, varys_rates)


@given(groups_of_coflows(st.just(0.25)))
def test_with_literal_tardiness_they_are_where_all_are_released_together(case: OpenCase) -> None:
    """But for groups that tie, which rounding may put either way round."""
    by_tardiness = echelon_rates(Rank.TARDINESS_ASCENDING)

    def held_against_varys(moment: Moment) -> tuple[Order, FloatArray]:
        order, rates = by_tardiness(moment)
        needed = dict(zip(moment.order.starts.tolist(), needed_s(moment, moment.open_order).tolist(), strict=True))
        in_order = [needed[start] for start in order.starts.tolist()]
        assert in_order == pytest.approx(sorted(in_order), rel=1e-9)
        assert rates.tolist() == madd(moment.network, order, moment.remaining_bytes).tolist()
        return order, rates

    unweighed = replace(case, groups=tuple(replace(group, weight=1.0) for group in case.groups))
    end_times(unweighed, held_against_varys)


def test_with_literal_tardiness_the_later_group_is_behind_though_it_needs_less() -> None:
    """Where release times differ, tardiness is not time needed: what waited long goes last, or first."""
    long = OpenGroup((OpenFlow((0,), 0.0, 3.0),))
    short = OpenGroup((OpenFlow((0,), 2.5, 1.0),))
    ends = {rank: end_times(OpenCase((1.0,), (long, short)), echelon_rates(rank)) for rank in Rank}
    assert ends[Rank.GAMMA] == ends[Rank.PRESSING] == [3.0, 4.0]
    assert ends[Rank.TARDINESS_ASCENDING] == [4.0, 3.5]
    assert ends[Rank.TARDINESS_DESCENDING] == [3.0, 4.0]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_no_rank_beats_the_optimum_and_time_needed_is_near_it(seed: int) -> None:
    case = random_case(random.Random(seed), most_groups=3, most_flows=2)
    least_s = optimum_s(case)
    for rank in Rank:
        assert case.weighted_tardiness_s(end_times(case, echelon_rates(rank))) >= least_s - 1e-6
    assert case.weighted_tardiness_s(end_times(case, ECHELON)) <= 2 * least_s
    alone = [optimum_s(OpenCase(case.capacities, (group,))) for group in case.groups]
    assert sum(alone) <= least_s + 1e-6


@given(st.integers(0, 10**6))
def test_a_group_alone_on_a_link_is_as_early_as_it_can_be(seed: int) -> None:
    """Horn's bound: no flow of a set can end its last before all were sent that had come and were due by then."""
    case = random_case(random.Random(seed), most_groups=1, most_flows=4, most_links=1)
    (group,) = case.groups
    bounds = [
        start
        + sum(flow.seconds for flow in group.flows if flow.release_s >= start and flow.offset_s <= due)
        - group.reference_s
        - due
        for start in {flow.release_s for flow in group.flows}
        for due in {flow.offset_s for flow in group.flows if flow.release_s >= start}
    ]
    assert case.tardiness_s(end_times(case, ECHELON)) == pytest.approx([max(bounds)])


def test_in_the_mean_it_is_within_five_percent_of_the_optimum() -> None:
    chance = random.Random(1)
    cases = [random_case(chance, most_groups=3, most_flows=2) for _ in range(20)]
    gaps = [case.weighted_tardiness_s(end_times(case, ECHELON)) / optimum_s(case) - 1 for case in cases]
    assert min(gaps) >= -1e-6
    assert sum(gaps) / len(gaps) <= 0.05


def test_the_optimum_of_coflows_on_a_link_is_the_shortest_first() -> None:
    sizes = [3.0, 1.0, 2.0]
    case = OpenCase((1.0,), tuple(OpenGroup((OpenFlow((0,), 0.0, size),)) for size in sizes))
    by_order = [sum(sum(order[: place + 1]) for place in range(3)) for order in permutations(sizes)]
    assert optimum_s(case) == min(by_order) == case.weighted_tardiness_s(end_times(case, ECHELON))


@pytest.mark.parametrize("rank", Rank)
@given(
    late=st.lists(st.floats(-5, 5), min_size=3, max_size=3),
    weights=st.lists(st.sampled_from([0.0, 0.5, 1.0, 4.0]), min_size=3, max_size=3),
)
def test_a_larger_weight_never_puts_a_group_back(rank: Rank, late: list[float], weights: list[float]) -> None:
    def place(weight: float) -> int:
        changed = np.array([weight, *weights[1:]])
        return group_order(rank, np.array(late) if rank in BY_TARDINESS else np.abs(late), changed).tolist().index(0)

    assert place(weights[0] + 1.0) <= place(weights[0])


def test_groups_that_do_not_count_come_last() -> None:
    for rank in Rank:
        assert group_order(rank, np.ones(3), np.array([0.0, 1.0, 0.0])).tolist() == [1, 0, 2]


def test_bad_numbers_name_the_group() -> None:
    ones = np.ones(2)
    with pytest.raises(ValueError, match="group 1: its tardiness"):
        group_order(Rank.TARDINESS_ASCENDING, np.array([0.0, math.nan]), ones)
    with pytest.raises(ValueError, match="coflow 1: its weight"):
        group_order(Rank.TARDINESS_DESCENDING, ones, np.array([0.0, math.nan]))


def test_a_flow_is_due_with_those_of_its_group_that_ended_late() -> None:
    assert due_s(np.array([5.0, 5.0]), np.array([2.0, -1.0]), 4.0).tolist() == [3.0, 1.0]


# Plans: what levels and an order at the host make of it.


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
