"""Properties that all policies share which rank whole jobs, or none."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.baselines.cassini import cassini
from policies.baselines.ecmp import ecmp
from policies.baselines.fifo import fifo
from policies.baselines.sincronia import sincronia
from policies.baselines.taccl_star import taccl_star
from policies.baselines.varys import varys
from policies.echelonflow.policy import echelonflow
from policies.plan import Plan
from policies.policy import decide
from policies.registry import find_policy
from policies.snapshot import Snapshot
from tests.policies.builders import GBPS, POWERS, make_job, make_links, scaled, snapshots

pytestmark = pytest.mark.slow

Policy = Callable[[Snapshot], Plan]
BY_JOB = [fifo, varys, sincronia, taccl_star]
RANKING = [*BY_JOB, echelonflow]
POLICIES = pytest.mark.parametrize("policy", [ecmp, cassini, *RANKING])
ALIKE = "fifo", "varys", "sincronia", "taccl-star", "echelonflow"
NAMES = pytest.mark.parametrize("name", [*ALIKE, "cassini"])
ONE_LINK = ((0,),)


@pytest.mark.slow
@POLICIES
@given(snapshot=snapshots(), data=st.data())
def test_order_of_jobs_changes_nothing(policy: Policy, snapshot: Snapshot, data: st.DataObject) -> None:
    shuffled = replace(snapshot, jobs=tuple(data.draw(st.permutations(snapshot.jobs))))
    assert policy(shuffled) == policy(snapshot)


@POLICIES
@given(snapshot=snapshots(), power=POWERS)
def test_bytes_and_rates_scaled_alike_change_nothing(policy: Policy, snapshot: Snapshot, power: int) -> None:
    assert policy(scaled(snapshot, 2.0**power)) == policy(snapshot)


@POLICIES
@given(snapshot=snapshots())
def test_plan_is_complete_and_its_levels_exist(policy: Policy, snapshot: Snapshot) -> None:
    plan = policy(snapshot)
    assert [job.rank for job in plan.jobs] == list(range(len(snapshot.jobs)))
    assert {job.name for job in plan.jobs} == {job.name for job in snapshot.jobs}
    assert plan.flows.keys() == {flow.key for job in snapshot.jobs for flow in job.flows}
    by_name = {job.name: job for job in plan.jobs}
    for key, flow in plan.flows.items():
        assert flow.level == by_name[key.job].level
        assert 0 <= flow.level < snapshot.num_levels
    assert all(job.time_shift_s is None or job.time_shift_s >= 0 for job in plan.jobs)


@pytest.mark.parametrize("policy", BY_JOB)
@given(snapshot=snapshots())
def test_a_lower_rank_never_has_the_lower_level(policy: Policy, snapshot: Snapshot) -> None:
    levels = [job.level for job in policy(snapshot).jobs]
    assert levels == sorted(levels, reverse=True)


@pytest.mark.parametrize("policy", RANKING)
def test_jobs_that_send_nothing_come_last_and_take_no_level(policy: Policy) -> None:
    jobs = make_job("a", []), make_job("b", [(0.0, ONE_LINK)]), make_job("c", [(1e9, ONE_LINK)])
    plan = policy(Snapshot(0.0, make_links(GBPS), jobs))
    assert [(job.name, job.level) for job in plan.jobs] == [("c", 7), ("a", 0), ("b", 0)]
    assert plan.jobs[1].reason.startswith("It sends nothing")


@POLICIES
def test_no_jobs(policy: Policy) -> None:
    plan = policy(Snapshot(0.0, make_links(GBPS), ()))
    assert (plan.jobs, dict(plan.flows)) == ((), {})


@pytest.mark.parametrize("policy", RANKING)
def test_with_one_level_only_the_order_is_left(policy: Policy) -> None:
    jobs = make_job("a", [(2e9, ONE_LINK)], arrival_s=1.0), make_job("b", [(1e9, ONE_LINK)])
    plan = policy(Snapshot(0.0, make_links(GBPS), jobs, num_levels=1))
    assert [job.level for job in plan.jobs] == [0, 0]
    assert sorted(flow.order for flow in plan.flows.values()) == [0, 1]


@POLICIES
def test_a_job_without_computation_has_a_plan(policy: Policy) -> None:
    jobs = make_job("a", [(1e9, ONE_LINK)], compute_s=0.0, work=0.0), make_job("b", [(1e9, ONE_LINK)])
    assert len(policy(Snapshot(0.0, make_links(GBPS), jobs)).jobs) == 2


@POLICIES
def test_sizes_at_the_ends_of_what_numbers_can_tell(policy: Policy) -> None:
    tiny, huge = make_job("tiny", [(5e-324, ONE_LINK)]), make_job("huge", [(1.7e308, ONE_LINK)])
    assert policy(Snapshot(0.0, make_links(GBPS), (tiny,))).jobs[0].intensity is None
    with pytest.raises(ValueError, match="job 'huge': size_bytes"):
        policy(Snapshot(0.0, make_links(GBPS), (huge, tiny)))


@NAMES
def test_bad_numbers_are_refused_by_job_and_field(name: str) -> None:
    with pytest.raises(ValueError, match=r"job 'a', .*size_bytes"):
        decide(find_policy(name), Snapshot(0.0, make_links(GBPS), (make_job("a", [(math.nan, ONE_LINK)]),)))
    with pytest.raises(ValueError, match="job 'a': gpus"):
        decide(find_policy(name), Snapshot(0.0, make_links(GBPS), (replace(make_job("a", [(1.0, ONE_LINK)]), gpus=0),)))
