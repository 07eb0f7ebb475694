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
from policies.echelonflow.policy import Rank, due_s, group_order
from policies.rates.madd import madd
from policies.rates.network import FloatArray, Order

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
