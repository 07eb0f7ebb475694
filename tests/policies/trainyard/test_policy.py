"""Plans of ``trainyard``: properties that hold for every Snapshot, and worked examples."""

from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.orders import Mix
from benchmarks.path_choice import Case
from policies.flows import FlowGroup, FlowKey
from policies.job import Job
from policies.plan import Plan
from policies.snapshot import Links, OrderKeeper, Snapshot
from policies.trainyard.evaluator import Evaluator
from policies.trainyard.fluid_bound import FluidBound
from policies.trainyard.fluid_model import FluidModel
from policies.trainyard.options import InitialOrder, PathRule, TrainyardOptions
from policies.trainyard.policy import trainyard
from tests.policies.builders import GBPS, POWERS, make_job, make_links, scaled, snapshots
from tests.policies.crux.test_policy import example_1
from tests.policies.trainyard.test_models import bundles_of, contention_of

ONE_LINK = ((0,),)
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


def decided_for(plan: Plan, jobs: tuple[Job, ...]) -> dict[object, object]:
    """What a Plan holds for some jobs, but for their ranks, which count over all."""
    names = {job.name for job in jobs}
    decided: dict[object, object] = {key: flow for key, flow in plan.flows.items() if key.job in names}
    return decided | {job.name: replace(job, rank=0) for job in plan.jobs if job.name in names}


def test_example_1_of_crux_needs_no_factor() -> None:
    plan = trainyard(Snapshot(0.0, make_links(8 * GBPS), example_1()))
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
    plan = trainyard(Snapshot(0.0, make_links(8 * GBPS), jobs), options)
    assert [(job.name, job.priority) for job in plan.jobs] == [
        ("job-2", pytest.approx(30 / 4 / 3)),
        ("job-1", pytest.approx(10 / 4 / 2)),
    ]


def test_groups_of_one_job_may_have_levels_of_their_own() -> None:
    """One group is needed at once, the other has the whole iteration."""
    urgent = make_job("a", [(1e8, ONE_LINK)])
    (group,) = urgent.flow_groups
    first, last = group.flows[0], replace(group.flows[0], key=FlowKey("a", "late", 0), size_bytes=4e8)
    late = FlowGroup("late", (last,))
    spread = tuple(replace(first, key=FlowKey("a", "soon", number), offset_s=number / 10) for number in range(10))
    job = Job(
        "a", 0.0, 8, replace(urgent.profile, compute_s=1.0, comm_start=0.0, work=8.0), (FlowGroup("soon", spread), late)
    )
    plan = trainyard(Snapshot(0.0, make_links(10 * GBPS), (job,)))
    assert plan.flows[FlowKey("a", "soon", 0)].level > plan.flows[FlowKey("a", "late", 0)].level


@FEW
@given(snapshot=snapshots(), data=st.data())
def test_order_of_jobs_changes_nothing(snapshot: Snapshot, data: st.DataObject) -> None:
    shuffled = replace(snapshot, jobs=tuple(data.draw(st.permutations(snapshot.jobs))))
    assert trainyard(shuffled) == trainyard(snapshot)


@FEW
@given(snapshot=snapshots(), power=POWERS)
def test_bytes_and_rates_scaled_alike_change_nothing(snapshot: Snapshot, power: int) -> None:
    assert trainyard(scaled(snapshot, 2.0**power)) == trainyard(snapshot)


@FEW
@given(snapshot=snapshots(), count=st.integers(0, 5))
def test_of_two_groups_on_a_link_the_one_served_first_never_has_the_lower_level(snapshot: Snapshot, count: int) -> None:
    before = trainyard(replace(snapshot, jobs=snapshot.jobs[:count]))
    for plan in (trainyard(snapshot), trainyard(replace(snapshot, previous=before))):
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
    before = trainyard(alone)
    assert decided_for(trainyard(beside), snapshot.jobs) == decided_for(before, snapshot.jobs)
    after = trainyard(replace(beside, previous=before))
    assert decided_for(after, snapshot.jobs) == decided_for(before, snapshot.jobs)
    assert all(after.flows[key] is flow for key, flow in before.flows.items() if flow.path is not None)
    again = trainyard(replace(beside, jobs=(*snapshot.jobs, *strangers), previous=after))
    assert decided_for(again, snapshot.jobs) == decided_for(before, snapshot.jobs)


@FEW
@given(snapshot=snapshots(), others=snapshots(), count=st.integers(0, 5))
def test_what_is_remembered_changes_no_decision(snapshot: Snapshot, others: Snapshot, count: int) -> None:
    """A Plan after an event is that of every component by itself, whether jobs are the same objects or equal ones."""
    links = Links((*snapshot.links, *others.links))
    strangers = tuple(moved_links(job, len(snapshot.links)) for job in others.jobs)
    before = trainyard(replace(snapshot, links=links, jobs=(*snapshot.jobs[:count], *strangers)))
    after = replace(snapshot, links=links, jobs=(*snapshot.jobs, *strangers[count:]), previous=before)
    plan = trainyard(after)
    assert trainyard(replace(after, links=Links(links), jobs=deepcopy(after.jobs))) == plan
    for part in (snapshot.jobs, strangers[count:]):
        assert decided_for(trainyard(replace(after, jobs=part)), part) == decided_for(plan, part)


@FEW
@given(snapshot=snapshots())
def test_a_plan_in_force_stays_where_nothing_has_happened(snapshot: Snapshot) -> None:
    plan = trainyard(snapshot)
    assert trainyard(replace(snapshot, previous=plan)) == plan


@FEW
@given(snapshot=snapshots(), count=st.integers(0, 5))
def test_a_change_gains_what_it_must_by_the_model(snapshot: Snapshot, count: int) -> None:
    before = trainyard(replace(snapshot, jobs=snapshot.jobs[:count]))
    plan = trainyard(replace(snapshot, previous=before))
    assert plan.worth is not None
    assert plan.worth.decided >= plan.worth.in_force * (1 - 1e-9)


def worth_of(snapshot: Snapshot, options: TrainyardOptions) -> float:
    worth = trainyard(snapshot, options).worth
    assert worth is not None
    return worth.decided


def test_by_the_model_no_start_on_no_paths_is_better() -> None:
    """So it is never worse than the order of Crux on the paths of Crux, levels being enough for all."""
    chance, options = np.random.default_rng(3), TrainyardOptions(min_bound_share=0.0)
    best = set()
    for _ in range(12):
        snapshot = Case.draw(chance, 0.6).snapshot
        alone = {
            rule: max(
                worth_of(
                    snapshot,
                    replace(options, initial_orders=(start,), path_rules=(rule,), evaluations=1, min_evaluations=1),
                )
                for start in InitialOrder
            )
            for rule in PathRule
        }
        best.add(max(alone, key=alone.__getitem__))
        assert worth_of(snapshot, options) >= max(alone.values()) * (1 - 1e-9)
    assert len(best) >= 3, "no rule is always the best"


@pytest.mark.parametrize("num_jobs", [12, 24, 48])
def test_many_jobs_have_a_second_start_too(num_jobs: int) -> None:
    """There are runs of the model enough to tell which start is the better one."""
    snapshot = Mix.draw(np.random.default_rng(1), num_jobs, 4, 1.2).snapshot(num_levels=num_jobs)
    contention, options = contention_of(snapshot), TrainyardOptions(min_bound_share=0.0)
    bound = FluidBound.of(contention, options.bound_steps)
    assert Evaluator(contention, bound, partial(bundles_of, snapshot), snapshot.seed, options).evaluations >= 2
    for start in InitialOrder:
        alone = replace(options, initial_orders=(start,), evaluations=1, min_evaluations=1)
        assert worth_of(snapshot, options) >= worth_of(snapshot, alone) * (1 - 1e-9)


def test_as_many_levels_as_groups_are_one_each() -> None:
    """Though nothing is lost by the model where those share that have time."""
    jobs = tuple(make_job(name, [(1e6, ONE_LINK)], compute_s=4.0, comm_start=0.0) for name in "abc")
    plan = trainyard(Snapshot(0.0, make_links(GBPS), jobs))
    assert sorted(job.level for job in plan.jobs) == [5, 6, 7]


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


@pytest.mark.slow
@pytest.mark.parametrize("num_jobs", [4, 6])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1 << 30), load=st.floats(0.5, 2), max_slowdown=st.floats(1.0, 4.0))
def test_largest_slowdown_is_kept_where_any_order_keeps_it(
    num_jobs: int, seed: int, load: float, max_slowdown: float
) -> None:
    snapshot = Mix.draw(np.random.default_rng(seed), num_jobs, 1, load).snapshot()
    options = TrainyardOptions(max_slowdown=max_slowdown)
    contention = contention_of(snapshot)
    model = FluidModel.of(contention, bundles_of(snapshot), snapshot.seed, options.model)
    slowest = [1 / max(model.served(np.array(order)).min(), 1e-9) for order in permutations(range(num_jobs))]
    plan = trainyard(snapshot, options)
    complaints = [job.reason for job in plan.jobs if "slows it down" in job.reason]
    if min(slowest) <= max_slowdown:
        assert not complaints
        level_of = {job.name: job.level for job in plan.jobs}
        levels = np.array([level_of[str(number)] for number in range(num_jobs)])
        assert 1 / model.served(levels).min() <= max_slowdown * (1 + 1e-9)
    else:
        assert complaints


@pytest.mark.parametrize("seed", range(5))
def test_what_a_single_order_keeps_is_kept_and_not_a_bit_more(seed: int) -> None:
    snapshot = Mix.draw(np.random.default_rng(seed), 5, 1, 1.2).snapshot()
    model = FluidModel.of(contention_of(snapshot), bundles_of(snapshot), snapshot.seed, TrainyardOptions().model)
    least = min(1 / max(model.served(np.array(order)).min(), 1e-9) for order in permutations(range(5)))
    complaints = {
        factor: sum(
            "slows it down" in job.reason
            for job in trainyard(snapshot, TrainyardOptions(max_slowdown=max(factor * least, 1.0))).jobs
        )
        for factor in (1 - 1e-6, 1 + 1e-6)
    }
    assert [count > 0 for count in complaints.values()] == [least > 1, False]


def test_jobs_slowed_down_too_much_count_before_what_others_compute() -> None:
    """Two that share a link may part when another job leaves: no threshold of what all compute is worth their delay."""
    either = ((0,), (1,))
    jobs = (
        make_job("a", [(1.5e8, either)]),
        make_job("b", [(1.5e8, either)]),
        make_job("c", [(1e8, ((1,), (2,)))], work=100.0),
        make_job("d", [(8e8, ((1,),))]),
    )
    options = TrainyardOptions(max_slowdown=1.05, min_gain=10.0)
    snapshot = Snapshot(0.0, make_links(GBPS, GBPS, GBPS), jobs)
    before = trainyard(snapshot, options)
    assert [before.flows[job.flows[0].key].path for job in jobs[:3]] == [(0,), (0,), (2,)]
    plan = trainyard(replace(snapshot, jobs=jobs[:3], previous=before), options)
    assert len({flow.path for flow in plan.flows.values()}) == 3


@pytest.mark.parametrize("num_jobs", [7, 20, 80])
def test_whoever_no_order_serves_fast_enough_is_told_however_many_there_are(num_jobs: int) -> None:
    """Each would have a fifth of the link: five go through, whatever the order, and no more."""
    jobs = tuple(
        make_job(f"job-{number:02}", [(GBPS / 8 / 5, ONE_LINK)], compute_s=1.0, comm_start=0.0)
        for number in range(num_jobs)
    )
    options = TrainyardOptions(max_slowdown=2.0)
    plans = [trainyard(Snapshot(0.0, make_links(GBPS), of), options) for of in (jobs, jobs[:5])]
    crowded, roomy = (
        [job.name for job in plan.jobs if "slows it down at most 2 times" in job.reason] for plan in plans
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
@pytest.mark.parametrize("options", [TrainyardOptions(), TrainyardOptions(max_slowdown=1.5)], ids=["any", "bounded"])
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
        ({"min_bound_share": 1.5}, "min_bound_share"),
        ({"evaluations": -1}, "evaluations"),
        ({"bound_steps": 1}, "bound_steps"),
        ({"initial_orders": ()}, "initial_orders"),
        ({"path_rules": ()}, "path_rules"),
    ],
)
def test_options_that_cannot_be_are_refused_by_name(options: dict[str, object], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        TrainyardOptions(**options)  # type: ignore[arg-type]
