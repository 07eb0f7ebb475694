"""The page shows of jobs and links what ``explain`` says of each, and what a Plan has changed."""

import asyncio
from dataclasses import replace

import pytest

from controller.api.operations import operations_pb2 as wire
from controller.api.operations.explanation import Explainer
from controller.api.operations.parts import joined, parts
from controller.planning.decision import Decision
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from controller.web.page.plan_changes import BY_HASH
from controller.web.page.plan_view import PlanView, plan_view
from policies.job import Profile
from tests.controller.access.secured import Secured, secured

_HOSTS = (("h0", "h2"), ("h0", "h2"), ("h1", "h3"), ("h0", "h3"), ("h1", "h2"))


def _register(controller: Secured, number: int) -> None:
    registry, now_s = controller.core.registry, controller.core.context.clock.now_s()
    hosts, name = _HOSTS[number % len(_HOSTS)], f"job-{number}"
    profile = Profile(compute_s=1.0, comm_start=0.5, work=8.0 * (number + 1))
    registry.register_job(JobRequest(name, hosts, 8, profile), now_s)
    ends = NicReference(hosts[0], 0), NicReference(hosts[1], 0)
    flows = (FlowRequest(*ends, 10**9 * (number + 1), 0.0), FlowRequest(*reversed(ends), 10**9, 0.0))
    registry.register_flow_groups(name, (FlowGroupRequest("ring", flows),))


async def _planned(controller: Secured, *numbers: int) -> Decision:
    for number in numbers:
        _register(controller, number)
    controller.core.planner.mark_changed()
    await controller.core.planner.settle()
    decision = controller.core.planner.decision
    assert decision is not None
    return decision


def _decided(*steps: tuple[int, ...]) -> tuple[Secured, list[Decision]]:
    async def decide() -> tuple[Secured, list[Decision]]:
        async with secured() as controller:
            return controller, [await _planned(controller, *numbers) for numbers in steps]

    return asyncio.run(decide())


def test_jobs_wait_for_whom_explain_says() -> None:
    controller, [decision] = _decided(tuple(range(8)))
    fabric, registry = controller.core.registry.fabric, controller.core.registry
    view, explainer = plan_view(decision, fabric), Explainer(decision, fabric)
    for job in registry.jobs:
        name = job.request.name
        explained = joined(parts(explainer.explain_job(job, 1.0, wire.ProfileState(), {}, 0.0))).job
        seen, level = view.jobs[name], explained.state.level
        assert (seen.rank, seen.level, seen.intensity) == (explained.state.rank, level, explained.state.intensity)
        assert seen.alone_s == explained.alone_iteration_s
        assert list(seen.goes_before.names) == [each.name for each in explained.neighbours if each.level > level]
        assert list(seen.waits.names) == [each.name for each in explained.neighbours if each.level < level]
        assert list(seen.shares.names) == [each.name for each in explained.neighbours if each.level == level]


def test_links_have_the_utilisation_and_the_jobs_that_explain_says() -> None:
    controller, [decision] = _decided(tuple(range(5)))
    fabric = controller.core.registry.fabric
    view, explainer = plan_view(decision, fabric), Explainer(decision, fabric)
    for job in decision.snapshot.jobs:
        for flow in job.flows:
            for use in joined(parts(explainer.explain_flow(flow, 0.0))).flow.links:
                index = fabric.links_between(use.source, use.destination)[use.parallel]
                assert view.utilisation[index] == use.planned_utilisation
                assert view.num_jobs[index] == len(use.jobs)
                highest = max(view.jobs[name].intensity or 0.0 for name in use.jobs)
                assert view.intensity[index] == pytest.approx(highest)


def _changes_of(controller: Secured, decision: Decision) -> PlanView:
    return plan_view(decision, controller.core.registry.fabric)


def test_the_first_plan_has_nothing_beside_it() -> None:
    controller, [decision] = _decided((0, 1))
    changes = _changes_of(controller, decision).changes
    assert changes.before is None
    assert set(changes.new) == {"job-0", "job-1"}
    assert changes.changed == changes.gone == ()


def test_a_new_job_and_what_it_moves_stand_beside_the_plan_before() -> None:
    controller, [first, second] = _decided((0,), (1, 4))
    changes = _changes_of(controller, second).changes
    assert changes.before == 1
    assert set(changes.new) == {"job-1", "job-4"}
    ranks = [{job.name: (job.rank, job.level) for job in decision.plan.jobs} for decision in (first, second)]
    before, after = ranks[0]["job-0"], ranks[1]["job-0"]
    [changed] = changes.changed if changes.changed else [None]
    if changed is None:
        assert before == after
        assert changes.unchanged == 1
    else:
        assert (changed.ranks, changed.levels) == tuple(zip(before, after, strict=True))


def test_plans_that_nobody_has_viewed_count_together() -> None:
    controller, [first, _, third] = _decided((0,), (1,), (4,))
    changes = plan_view(third, controller.core.registry.fabric, first).changes
    assert (changes.before, set(changes.new)) == (1, {"job-1", "job-4"})


def test_moved_flows_are_told_with_both_paths() -> None:
    controller, [decision] = _decided((0, 1))
    [flow, *_] = decision.snapshot.jobs[0].registered_flows
    old_path = flow.candidates[0] if decision.plan.flows[flow.key].path != flow.candidates[0] else flow.candidates[1]
    flows = {**decision.plan.flows, flow.key: decision.plan.flows[flow.key]._replace(path=old_path)}
    before = replace(decision.plan, flows=flows, jobs=decision.plan.jobs)
    changed = replace(decision, snapshot=replace(decision.snapshot, previous=before))
    changes = plan_view(changed, controller.core.registry.fabric).changes
    [job] = changes.changed
    assert (job.name, job.moved, job.flows) == ("job-0", 1, 2)
    [move] = job.moves
    assert move.flow == "ring/0"
    fabric = controller.core.registry.fabric
    assert move.before.split(">")[-1] == fabric.nodes_of(old_path)[-1]
    assert move.after != move.before
    if decision.plan.flows[flow.key].path is None:
        assert move.after == BY_HASH
    assert changes.unchanged == 1
