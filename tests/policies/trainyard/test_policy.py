"""Plans of ``trainyard``: properties that hold for every Snapshot, and worked examples."""

import math
from copy import deepcopy
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.orders import Mix
from benchmarks.path_choice import Case
from policies.flows import FlowGroup, FlowKey, Uncompressed
from policies.job import Job
from policies.plan import Plan
from policies.snapshot import Links, OrderKeeper, Snapshot
from policies.task_graph import Computation, TaskGraph, Transfer
from policies.trainyard.options import InitialOrder, PathRule, TrainyardOptions
from policies.trainyard.policy import trainyard
from tests.policies.builders import GBPS, POWERS, make_job, make_links, scaled, snapshots
from tests.policies.crux.test_policy import example_1

ONE_LINK = ((0,),)
QUICK = TrainyardOptions(evaluations=40, event_evaluations=20)
FEW = settings(max_examples=30, deadline=None)


def moved_links(job: Job, by: int) -> Job:
    """Return the job under another name, on links with higher numbers."""
    name = f"other-{job.name}"
    paths = [
        (flow.size_bytes, tuple(tuple(link + by for link in path) for path in flow.candidates)) for flow in job.flows
    ]
    profile = job.profile
    return make_job(
        name,
        paths,
        compute_s=profile.compute_s,
        comm_start=profile.comm_start,
        work=profile.work,
        arrival_s=job.arrival_s,
    )


def quick(snapshot: Snapshot, options: TrainyardOptions = QUICK) -> Plan:
    """Decide with a short search: what holds for every Plan holds for its Plans too."""
    return trainyard(snapshot, options)


def decided_for(plan: Plan, jobs: tuple[Job, ...]) -> dict[object, object]:
    """What a Plan holds for some jobs, but for their ranks, which count over all."""
    names = {job.name for job in jobs}
    decided: dict[object, object] = {key: flow for key, flow in plan.flows.items() if key.job in names}
    return decided | {job.name: replace(job, rank=0) for job in plan.jobs if job.name in names}


def test_example_1_of_crux_needs_no_factor() -> None:
    plan = quick(Snapshot(0.0, make_links(8 * GBPS), example_1()))
    assert [(job.name, job.rank, job.level, job.priority) for job in plan.jobs] == [
        ("job-2", 0, 7, pytest.approx(2.5)),
        ("job-1", 1, 6, pytest.approx(1.25)),
    ]


def test_example_2_of_crux_needs_no_factor() -> None:
    """Figure 12: equal intensities, but the first job's transfer may wait for a second."""
    jobs = (
        make_job("job-1", [(1e9, ONE_LINK)], compute_s=4.0, comm_start=0.5, work=10.0),
        make_job("job-2", [(3e9, ONE_LINK)], compute_s=2.0, comm_start=0.5, work=30.0),
    )
    options = TrainyardOptions(evaluations=0, initial_orders=(InitialOrder.FLUID_BOUND,))
    plan = quick(Snapshot(0.0, make_links(8 * GBPS), jobs), options)
    assert [(job.name, job.priority) for job in plan.jobs] == [
        ("job-2", pytest.approx(30 / 4 / 3)),
        ("job-1", pytest.approx(10 / 4 / 2)),
    ]


def test_a_link_that_others_load_is_left_to_them_where_another_is_faster() -> None:
    """The job sends for 1 s on an idle link, and for 4 s on what three quarters of foreign load leave of one."""
    job = make_job("a", [(1e9 / 8, ((0,), (1,)))])
    snapshot = Snapshot(0.0, make_links(GBPS, GBPS), (job,))
    for loaded, free in ((0, 1), (1, 0)):
        plan = trainyard(replace(snapshot, foreign_loads_bps={loaded: 0.75e9}))
        assert {flow.path for flow in plan.flows.values()} == {(free,)}


def urgent_and_late(*, tells_graph: bool) -> Job:
    """A job that needs one group at once, and the other only when the next iteration begins."""
    (group,) = make_job("a", [(1e9 / 8, ONE_LINK)]).flow_groups
    (flow,) = group.flows
    late = FlowGroup("late", (replace(flow, key=FlowKey("a", "late", 0), size_bytes=3e9 / 8),))
    urgent = FlowGroup("urgent", (replace(flow, key=FlowKey("a", "urgent", 0)),))
    graph = TaskGraph((Transfer((1,)), Computation(1.0), Transfer((0,), (1,)), Computation(2.0, (2,))))
    job = make_job("a", [(1.0, ONE_LINK)], compute_s=3.0, comm_start=0.0, work=8.0)
    return replace(job, flow_groups=(urgent, late), task_graph=graph if tells_graph else None)


def test_groups_of_one_job_may_have_levels_of_their_own_where_its_graph_is_known() -> None:
    """Beside the late group, which has time, the urgent one takes twice as long: 0.5 s that the job waits."""
    levels = []
    for tells_graph in (True, False):
        plan = quick(Snapshot(0.0, make_links(GBPS), (urgent_and_late(tells_graph=tells_graph),)))
        levels.append([plan.flows[FlowKey("a", group, 0)].level for group in ("urgent", "late")])
    assert levels[0][0] > levels[0][1]
    assert levels[1][0] == levels[1][1]


@FEW
@given(snapshot=snapshots(), data=st.data())
def test_order_of_jobs_changes_nothing(snapshot: Snapshot, data: st.DataObject) -> None:
    shuffled = replace(snapshot, jobs=tuple(data.draw(st.permutations(snapshot.jobs))))
    assert quick(shuffled) == quick(snapshot)


@FEW
@given(snapshot=snapshots(), power=POWERS)
def test_bytes_and_rates_scaled_alike_change_nothing(snapshot: Snapshot, power: int) -> None:
    assert quick(scaled(snapshot, 2.0**power)) == quick(snapshot)


@FEW
@given(snapshot=snapshots(), count=st.integers(0, 5))
def test_of_two_groups_on_a_link_the_one_served_first_never_has_the_lower_level(snapshot: Snapshot, count: int) -> None:
    before = quick(replace(snapshot, jobs=snapshot.jobs[:count]))
    for plan in (quick(snapshot), quick(replace(snapshot, previous=before))):
        assert plan.flows.keys() == {flow.key for job in snapshot.jobs for flow in job.flows}
        assert [job.rank for job in plan.jobs] == list(range(len(snapshot.jobs)))
        sending = [flow for job in snapshot.jobs for flow in job.flows if flow.size_bytes > 0]
        for one, other in combinations(sending, 2):
            first, second = plan.flows[one.key], plan.flows[other.key]
            assert 0 <= first.level < snapshot.num_levels
            assert first.path in tuple(one.candidates)
            shared = set(first.path or ()) & set(second.path or ())
            if any(snapshot.links[link].order_keeper is OrderKeeper.SWITCH_QUEUE for link in shared):
                assert (first.order - second.order) * (second.level - first.level) >= 0


@FEW
@given(snapshot=snapshots(), others=snapshots(), count=st.integers(0, 5))
def test_an_event_changes_nothing_in_other_components(snapshot: Snapshot, others: Snapshot, count: int) -> None:
    links = Links((*snapshot.links, *others.links))
    strangers = tuple(moved_links(job, len(snapshot.links)) for job in others.jobs)
    alone = replace(snapshot, links=links)
    beside = replace(alone, jobs=(*snapshot.jobs, *strangers[:count]))
    before = quick(alone)
    assert decided_for(quick(beside), snapshot.jobs) == decided_for(before, snapshot.jobs)
    after = quick(replace(beside, previous=before))
    assert decided_for(after, snapshot.jobs) == decided_for(before, snapshot.jobs)
    assert all(after.flows[key] is flow for key, flow in before.flows.items() if flow.path is not None)
    again = quick(replace(beside, jobs=(*snapshot.jobs, *strangers), previous=after))
    assert decided_for(again, snapshot.jobs) == decided_for(before, snapshot.jobs)


@FEW
@given(snapshot=snapshots(), others=snapshots(), count=st.integers(0, 5))
def test_what_is_remembered_changes_no_decision(snapshot: Snapshot, others: Snapshot, count: int) -> None:
    """A Plan after an event is that of every component by itself, whether jobs are the same objects or equal ones."""
    links = Links((*snapshot.links, *others.links))
    strangers = tuple(moved_links(job, len(snapshot.links)) for job in others.jobs)
    before = quick(replace(snapshot, links=links, jobs=(*snapshot.jobs[:count], *strangers)))
    after = replace(snapshot, links=links, jobs=(*snapshot.jobs, *strangers[count:]), previous=before)
    plan = quick(after)
    assert quick(replace(after, links=Links(links), jobs=deepcopy(after.jobs))) == plan
    for part in (snapshot.jobs, strangers[count:]):
        assert decided_for(quick(replace(after, jobs=part)), part) == decided_for(plan, part)


@FEW
@given(snapshot=snapshots())
def test_a_plan_in_force_stays_where_nothing_has_happened(snapshot: Snapshot) -> None:
    plan = quick(snapshot)
    assert quick(replace(snapshot, previous=plan)) == plan


@FEW
@given(snapshot=snapshots(), count=st.integers(0, 5))
def test_a_change_gains_what_it_must_by_the_model(snapshot: Snapshot, count: int) -> None:
    options = replace(QUICK, least_of_bound=0.0, longest_iteration_s=math.inf)
    before = quick(replace(snapshot, jobs=snapshot.jobs[:count]), options)
    plan = quick(replace(snapshot, previous=before), options)
    assert plan.worth is not None
    assert plan.worth.decided >= plan.worth.in_force * (1 - 1e-9)


def worth_of(snapshot: Snapshot, options: TrainyardOptions) -> float:
    worth = trainyard(snapshot, options).worth
    assert worth is not None
    return worth.decided


def test_by_the_model_no_start_is_better() -> None:
    """So it is never worse than no steering, and than the plan of Crux."""
    chance = np.random.default_rng(3)
    options = TrainyardOptions(least_of_bound=0.0, longest_iteration_s=math.inf, evaluations=80)
    for _ in range(2):
        snapshot = Case.draw(chance, 0.6).snapshot
        for start in InitialOrder:
            for rule in PathRule:
                alone = replace(options, initial_orders=(start,), path_rules=(rule,), evaluations=8)
                assert worth_of(snapshot, options) >= worth_of(snapshot, alone) * (1 - 1e-9)


@pytest.mark.parametrize("num_jobs", [12, 48])
def test_many_jobs_are_played_too(num_jobs: int) -> None:
    snapshot = Mix.draw(np.random.default_rng(1), num_jobs, 4, 1.2).snapshot(num_levels=8)
    plan = trainyard(snapshot)
    assert plan.worth is not None
    assert len(plan.worth.iteration_s) == num_jobs


def test_jobs_whom_nothing_delays_share_a_level_on_their_paths() -> None:
    """No rule is written where none gains anything."""
    jobs = tuple(make_job(name, [(1e6, ((0,), (1,)))], compute_s=4.0, comm_start=0.0) for name in "abc")
    plan = trainyard(Snapshot(0.0, make_links(GBPS, GBPS), jobs))
    assert {job.level for job in plan.jobs} == {7}
    assert {flow.path for flow in plan.flows.values()} == {(1,)}


def test_small_gains_move_nothing() -> None:
    """A job that had a link to itself leaves it to the others; they part only where that is worth the threshold."""
    either = ((0,), (1,))
    jobs = tuple(make_job(name, [(size_bytes, either)]) for name, size_bytes in (("a", 1e8), ("b", 1e8), ("c", 8e8)))
    snapshot = Snapshot(0.0, make_links(GBPS, GBPS), jobs)
    paths = {}
    for min_gain in (0.0, 10.0):
        options = TrainyardOptions(min_gain=min_gain)
        before = trainyard(snapshot, options)
        assert len({flow.path for key, flow in before.flows.items() if key.job != "c"}) == 1
        plan = trainyard(replace(snapshot, jobs=jobs[:2], previous=before), options)
        paths[min_gain] = len({flow.path for flow in plan.flows.values()})
    assert paths == {0.0: 2, 10.0: 1}


def test_a_plan_of_another_policy_or_fabric_is_not_in_force() -> None:
    snapshot = Snapshot(0.0, make_links(8 * GBPS), example_1())
    fresh = trainyard(snapshot)
    for previous in (Plan("crux", (), {}), trainyard(replace(snapshot, links=make_links(16 * GBPS)))):
        assert trainyard(replace(snapshot, previous=previous)) == fresh


@pytest.mark.parametrize("seed", range(5))
def test_what_an_order_keeps_is_kept(seed: int) -> None:
    """By the model itself: the least bound that some plan keeps is kept, and one a little smaller is complained of."""
    snapshot = Mix.draw(np.random.default_rng(seed), 4, 1, 1.2).snapshot()
    bounds = np.linspace(1.0, 12.0, 23)
    complaints = [
        any("slows it down" in job.reason for job in trainyard(snapshot, replace(QUICK, max_slowdown=bound)).jobs)
        for bound in bounds.tolist()
    ]
    least = int(np.argmin(complaints))
    assert not any(complaints[least:]), "what is kept under a bound is kept under every larger one"


@pytest.mark.parametrize("num_jobs", [7, 20, 80])
def test_whoever_no_order_serves_fast_enough_is_told_however_many_there_are(num_jobs: int) -> None:
    """Each would have a fifth of the link: five go through, and no more."""
    jobs = tuple(
        make_job(f"job-{number:02}", [(GBPS / 8 / 5, ONE_LINK)], compute_s=1.0, comm_start=0.0)
        for number in range(num_jobs)
    )
    options = replace(QUICK, max_slowdown=1.2)
    plans = [trainyard(Snapshot(0.0, make_links(GBPS), of), options) for of in (jobs, jobs[:5])]
    crowded, roomy = (
        [job.name for job in plan.jobs if "slows it down at most 1.2 times" in job.reason] for plan in plans
    )
    assert crowded
    assert not roomy


def odd_jobs() -> tuple[Job, ...]:
    """What is sound although little can be said of it, and one job beside them that has something to send."""
    unordered = make_job("offsets", [(1e9, ONE_LINK)] * 3)
    (group,) = unordered.flow_groups
    offsets_s = (9.0, -1.0, 0.5)
    flows = tuple(replace(flow, offset_s=offset_s) for flow, offset_s in zip(group.flows, offsets_s, strict=True))
    return (
        make_job("no-bytes", [(0.0, ONE_LINK)]),
        make_job("no-computation", [(1e9, ONE_LINK)], compute_s=0.0, work=0.0),
        make_job("no-flows", []),
        make_job("no-work", [(1e9, ONE_LINK)], work=0.0),
        replace(unordered, flow_groups=(replace(group, flows=flows),)),
        make_job("usual", [(1e9, ONE_LINK)]),
    )


@pytest.mark.parametrize("num_levels", [1, 8])
@pytest.mark.parametrize("options", [QUICK, replace(QUICK, max_slowdown=1.5)], ids=["any", "bounded"])
def test_odd_jobs_have_a_place_in_any_order_of_arrival(num_levels: int, options: TrainyardOptions) -> None:
    snapshot = Snapshot(0.0, make_links(GBPS), odd_jobs(), num_levels)
    for count in range(len(snapshot.jobs)):
        before = trainyard(replace(snapshot, jobs=snapshot.jobs[:count]), options)
        plan = trainyard(replace(snapshot, previous=before), options)
        assert {job.name for job in plan.jobs[-2:]} == {"no-bytes", "no-flows"}
        assert plan.flows.keys() == {flow.key for job in snapshot.jobs for flow in job.flows}
        assert all(0 <= flow.level < num_levels for flow in plan.flows.values())
        assert plan.worth is not None
        assert plan.worth.decided > 0


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"max_slowdown": 0.5}, "max_slowdown"),
        ({"max_slowdown": float("nan")}, "max_slowdown"),
        ({"min_gain": -1.0}, "min_gain"),
        ({"least_of_bound": 1.5}, "least_of_bound"),
        ({"evaluations": -1}, "evaluations"),
        ({"bound_steps": 1}, "bound_steps"),
        ({"initial_orders": ()}, "initial_orders"),
        ({"path_rules": ()}, "path_rules"),
    ],
)
def test_options_that_cannot_be_are_refused_by_name(options: dict[str, object], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        TrainyardOptions(**options)  # type: ignore[arg-type]


def waiting(name: str, compute_s: float, sent_s: float, delay_s: float = 0.0) -> Job:
    """A job whose gradients need a link of 1 Gbit/s for so long, from a third of its computation and a delay on."""
    job = make_job(name, [(sent_s * GBPS / 8, ONE_LINK)], compute_s=compute_s, comm_start=1 / 3, work=8 * compute_s)
    forward_s = compute_s / 3
    late = (Computation(delay_s, (0,)),) if delay_s else ()
    tasks = (Computation(forward_s), *late, Transfer((0,), (len(late),)), Computation(2 * forward_s, (0,)))
    return replace(job, task_graph=TaskGraph(tasks))


def compressing(sent_share: float, dense_s: float = 0.477) -> Job:
    """A job that sends such a share of its gradients as late as it may."""
    sent_s = sent_share * dense_s
    job = waiting("gpt", 0.574, sent_s, 0.574 * 2 / 3 - sent_s)
    (group,) = job.flow_groups
    return replace(job, flow_groups=(replace(group, uncompressed=Uncompressed(dense_s * GBPS / 8, 0.38)),))


def levels_of(*jobs: Job) -> dict[str, int]:
    plan = trainyard(Snapshot(0.0, make_links(GBPS), tuple(sorted(jobs, key=lambda job: job.name))))
    return {job.name: job.level for job in plan.jobs}


@pytest.mark.parametrize("sent_share", [0.02, 0.03])
def test_what_is_compressed_to_little_is_served_first(sent_share: float) -> None:
    """The model would find room for it behind the other job: both iterations come to be of one length."""
    gpt = compressing(sent_share)
    (group,) = gpt.flow_groups
    plain = replace(gpt, flow_groups=(replace(group, uncompressed=None),))
    bert = waiting("bert", 0.313, 0.477)
    assert levels_of(bert, plain)["gpt"] < levels_of(bert, plain)["bert"]
    assert levels_of(bert, gpt)["gpt"] > levels_of(bert, gpt)["bert"]


def test_what_is_compressed_to_much_is_served_as_any_other() -> None:
    gpt = compressing(0.7)
    (group,) = gpt.flow_groups
    plain = replace(gpt, flow_groups=(replace(group, uncompressed=None),))
    bert = waiting("bert", 0.2, 0.1)
    assert levels_of(bert, gpt) == levels_of(bert, plain)
    assert levels_of(bert, gpt)["gpt"] < levels_of(bert, gpt)["bert"]
