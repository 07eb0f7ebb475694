from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.crux.correction_factor import GainOptions
from policies.crux.policy import CruxOptions, crux, crux_pa, crux_ps_pa
from policies.job import Job
from policies.plan import Plan
from policies.snapshot import OrderKeeper, Snapshot
from tests.policies.builders import GBPS, POWERS, make_job, make_links, scaled, snapshots

Policy = Callable[[Snapshot], Plan]
POLICIES = pytest.mark.parametrize("policy", [crux, crux_pa, crux_ps_pa])
ONE_LINK = ((0,),)


def example_1() -> tuple[Job, Job]:
    """Crux, figure 11: equal intensities, 2 s and 1 s on a link of 8 Gbit/s."""
    return (
        make_job("job-1", [(2e9, ONE_LINK)], compute_s=2.0, work=10.0),
        make_job("job-2", [(1e9, ONE_LINK)], compute_s=1.0, work=5.0),
    )


def levels_of(plan: Plan) -> dict[str, int]:
    return {job.name: job.level for job in plan.jobs}


@POLICIES
def test_example_1_ranks_the_shorter_job_first(policy: Policy) -> None:
    plan = policy(Snapshot(0.0, make_links(8 * GBPS), example_1()))
    first, second = plan.jobs
    assert (first.name, first.rank, first.level) == ("job-2", 0, 7)
    assert (second.name, second.rank, second.level) == ("job-1", 1, 6)
    assert first.intensity == second.intensity == pytest.approx(5.0)
    assert first.correction_factor == pytest.approx(1.5)
    assert first.priority == pytest.approx(7.5)
    assert (second.correction_factor, second.priority) == (1.0, second.intensity)
    assert {key.job: (flow.level, flow.order) for key, flow in plan.flows.items()} == {"job-2": (7, 0), "job-1": (6, 1)}
    assert first.reason.endswith(
        "feeds 5 of computation. To go first is worth 1.5 times as much link time to it as to 'job-1', which sends"
        " most: priority 7.5."
    )
    assert second.reason.endswith(
        "feeds 5 of computation: its priority. It sends most, and the others are compared with it."
    )


def test_crux_parts_the_jobs_that_the_hash_puts_on_one_link() -> None:
    either = ((0,), (1,))
    jobs = tuple(make_job(name, [(1e9, either)]) for name in "ab")
    snapshot = Snapshot(0.0, make_links(GBPS, GBPS), jobs)
    steered, hashed = crux(snapshot), crux_pa(snapshot)
    assert sorted(flow.path or () for flow in steered.flows.values()) == [(0,), (1,)]
    assert levels_of(steered) == {"a": 7, "b": 7}
    assert [flow.path for flow in hashed.flows.values()] == [None, None]
    assert levels_of(hashed) == {"a": 7, "b": 6}


@pytest.mark.parametrize("order_keeper", [OrderKeeper.HOST, OrderKeeper.NOTHING])
def test_links_that_no_switch_queue_orders_take_no_levels(order_keeper: OrderKeeper) -> None:
    plan = crux(Snapshot(0.0, make_links(8 * GBPS, order_keeper=order_keeper), example_1()))
    assert [(job.name, job.rank) for job in plan.jobs] == [("job-2", 0), ("job-1", 1)]
    assert levels_of(plan) == {"job-1": 7, "job-2": 7}


@POLICIES
def test_jobs_without_bytes_are_ranked_last_and_have_no_priority(policy: Policy) -> None:
    jobs = make_job("a", []), make_job("b", [(0.0, ONE_LINK)]), make_job("c", [(1e9, ONE_LINK)])
    plan = policy(Snapshot(0.0, make_links(GBPS), jobs))
    assert [job.name for job in plan.jobs] == ["c", "a", "b"]
    assert [job.priority is None for job in plan.jobs] == [False, True, True]
    assert [job.correction_factor for job in plan.jobs] == [1.0, None, None]
    assert levels_of(plan) == ({"a": 7, "b": 7, "c": 7} if policy is crux else {"c": 7, "a": 6, "b": 5})


def test_without_compression_every_rank_has_a_level_as_far_as_they_go() -> None:
    either = ((0,), (1,))
    jobs = tuple(make_job(name, [(1e9, either)], work=5.0 - number) for number, name in enumerate("abcd"))
    snapshot = Snapshot(0.0, make_links(GBPS, GBPS), jobs, num_levels=3)
    unpressed, hashed = crux_ps_pa(snapshot), crux_pa(snapshot)
    assert levels_of(unpressed) == levels_of(hashed) == {"a": 2, "b": 1, "c": 0, "d": 0}
    assert {key.job: flow.order for key, flow in unpressed.flows.items()} == {"a": 0, "b": 1, "c": 2, "d": 3}
    steered = [flow.path for _, flow in sorted(crux(snapshot).flows.items())]
    assert [flow.path for _, flow in sorted(unpressed.flows.items())] == steered
    assert {flow.path for flow in hashed.flows.values()} == {None}


def test_a_transfer_too_long_to_follow_names_the_job() -> None:
    jobs = make_job("a", [(1e9, ONE_LINK)]), make_job("b", [(1e18, ONE_LINK)])
    with pytest.raises(ValueError, match="job 'b': size_bytes"):
        crux(Snapshot(0.0, make_links(GBPS), jobs))


def test_choices_left_open_are_options() -> None:
    """Ten jobs on one link: one order is enough, as there is only one; k may be bound away."""
    jobs = tuple(make_job(f"job-{n}", [(1e9 * (n + 1), ONE_LINK)], work=n + 1.0) for n in range(10))
    snapshot = Snapshot(0.0, make_links(GBPS), jobs)
    plain = crux(snapshot, CruxOptions(gains=GainOptions(largest_factor=1.0), num_orders=1))
    assert {job.correction_factor for job in plain.jobs} == {1.0}
    assert levels_of(crux(snapshot, CruxOptions(num_orders=1))) == levels_of(crux(snapshot))


@POLICIES
def test_job_without_computation_gives_way(policy: Policy) -> None:
    jobs = make_job("a", [(1e9, ONE_LINK)], compute_s=0.0, work=0.0), make_job("b", [(1e9, ONE_LINK)])
    plan = policy(Snapshot(0.0, make_links(GBPS), jobs))
    assert levels_of(plan) == {"b": 7, "a": 6}


@POLICIES
def test_no_jobs(policy: Policy) -> None:
    plan = policy(Snapshot(0.0, make_links(GBPS), ()))
    assert (plan.jobs, dict(plan.flows)) == ((), {})


@POLICIES
@given(snapshot=snapshots(), data=st.data())
def test_order_of_jobs_changes_nothing(policy: Policy, snapshot: Snapshot, data: st.DataObject) -> None:
    shuffled = replace(snapshot, jobs=tuple(data.draw(st.permutations(snapshot.jobs))))
    assert policy(shuffled) == policy(snapshot)


@pytest.mark.slow
@POLICIES
@given(snapshot=snapshots(), power=POWERS)
def test_bytes_and_rates_scaled_alike_change_nothing(policy: Policy, snapshot: Snapshot, power: int) -> None:
    assert policy(scaled(snapshot, 2.0**power)) == policy(snapshot)


@POLICIES
@given(snapshot=snapshots())
def test_higher_rank_never_has_the_lower_level_on_a_switch_queue(policy: Policy, snapshot: Snapshot) -> None:
    plan = policy(snapshot)

    def links_of(name: str) -> set[int]:
        flows = next(job for job in snapshot.jobs if job.name == name).flows
        sending = (flow for flow in flows if flow.size_bytes > 0)
        return {
            link
            for flow in sending
            for link in plan.flows[flow.key].path or flow.hashed_path
            if snapshot.links[link].order_keeper is OrderKeeper.SWITCH_QUEUE
        }

    for high, low in combinations(plan.jobs, 2):
        if links_of(high.name) & links_of(low.name):
            assert high.level >= low.level


@POLICIES
@given(snapshot=snapshots())
def test_plan_is_complete_and_in_order(policy: Policy, snapshot: Snapshot) -> None:
    plan = policy(snapshot)
    assert [job.rank for job in plan.jobs] == list(range(len(snapshot.jobs)))
    assert {job.name for job in plan.jobs} == {job.name for job in snapshot.jobs}
    priorities = [job.priority or 0.0 for job in plan.jobs]
    assert priorities == sorted(priorities, reverse=True)
    by_name = {job.name: job for job in plan.jobs}
    assert plan.flows.keys() == {flow.key for job in snapshot.jobs for flow in job.flows}
    for key, flow in plan.flows.items():
        assert (flow.level, flow.order) == (by_name[key.job].level, by_name[key.job].rank)
        assert 0 <= flow.level < snapshot.num_levels
