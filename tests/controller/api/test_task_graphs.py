"""Task graphs come with flow groups or later; a large one is admitted in a thread, and each change is planned."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from controller.api import group_registrations
from controller.api.group_registrations import GroupRegistrations
from controller.registry.errors import InvalidFieldError, NotOwnerError
from controller.registry.registry import Registry
from controller.registry.requests import JobRequest
from hostlib import Computation, RefusedError, TaskGraph, Transfer
from hostlib.connection import Connection
from hostlib.wire import trainyard_pb2 as wire
from policies import task_graph as planned
from policies.job import Profile
from tests.hostlib.served import GPT, RING, Served, served
from tests.patience import PATIENCE_S, until

PROFILE = wire.Profile(compute_s=1.0, comm_start=0.5, work=1.0)


def groups(num_flows: int) -> list[wire.FlowGroup]:
    """A group with so many flows."""
    flow = wire.Flow(source=wire.Nic(host="h0"), destination=wire.Nic(host="h2"), size_bytes=1)
    return [wire.FlowGroup(name="ring", flows=[flow] * num_flows)]


def graph(num_flows: int) -> wire.TaskGraph:
    """A computation, and a transfer for every flow."""
    sent = (wire.Transfer(flow_group="ring", flows=[flow], after=[0]) for flow in range(num_flows))
    return wire.TaskGraph(
        tasks=[
            wire.Task(computation=wire.Computation(duration_s=0.5)),
            *(wire.Task(transfer=transfer) for transfer in sent),
        ]
    )


def registration(num_flows: int) -> wire.RegisterFlowGroupsRequest:
    """The group with its graph."""
    return wire.RegisterFlowGroupsRequest(job="a", flow_groups=groups(num_flows), task_graph=graph(num_flows))


def report(task_graph: wire.TaskGraph) -> wire.ReportProfileRequest:
    """A profile with another graph."""
    return wire.ReportProfileRequest(job="a", profile=PROFILE, task_graph=task_graph)


@pytest.fixture
def filled(registry: Registry) -> Registry:
    registry.register_job(JobRequest("a", ("h0", "h2"), 2, Profile(1.0, 0.5, 1.0)), 0.0)
    return registry


@pytest.mark.parametrize(("num_flows", "calls"), [(2, 0), (2_000, 4)])
def test_only_large_graphs_are_read_and_admitted_in_a_thread(
    filled: Registry, monkeypatch: pytest.MonkeyPatch, num_flows: int, calls: int
) -> None:
    in_thread, run = [], group_registrations.run_planning

    async def counted(call: Callable[[], Any]) -> object:
        in_thread.append(call)
        return await run(call)

    monkeypatch.setattr(group_registrations, "run_planning", counted)

    async def scenario() -> None:
        registrations = GroupRegistrations(filled)
        assert (await registrations.register(registration(num_flows)))[0]
        assert not await registrations.amend(report(graph(num_flows)))

    asyncio.run(scenario())
    assert len(in_thread) == calls
    job = filled.job("a")
    assert job is not None
    assert job.task_graph is not None
    assert job.task_graph.num_flows == num_flows


def test_a_graph_waits_for_the_groups_before_it(filled: Registry) -> None:
    """They are registered in slices; meanwhile they are not there."""

    async def scenario() -> None:
        registrations = GroupRegistrations(filled)
        alone = wire.RegisterFlowGroupsRequest(job="a", flow_groups=groups(2_000))
        registering = asyncio.create_task(registrations.register(alone))
        while not registrations._turns:
            await asyncio.sleep(0)
        assert await registrations.amend(report(graph(2_000)))
        assert registering.done()

    asyncio.run(scenario())


def test_a_job_that_is_somebody_elses_by_the_time_of_its_turn_keeps_its_graph(filled: Registry) -> None:
    def authorise() -> None:
        raise NotOwnerError("job 'a' belongs to another tenant")

    async def scenario() -> None:
        registrations = GroupRegistrations(filled)
        await registrations.register(registration(2))
        with pytest.raises(NotOwnerError):
            await registrations.amend(report(wire.TaskGraph(tasks=graph(2).tasks, is_guessed=True)), authorise)

    asyncio.run(scenario())
    job = filled.job("a")
    assert job is not None
    assert job.task_graph is not None
    assert not job.task_graph.is_guessed


@pytest.mark.parametrize(
    ("task_graph", "problem"),
    [
        (wire.TaskGraph(tasks=[wire.Task()] * 1_000_000), r"tasks: a job has room for 100,000, not for 1,000,000"),
        (wire.TaskGraph(tasks=[*graph(1).tasks, wire.Task()]), r"tasks\[2\]: is neither a computation nor a transfer"),
        (graph(3), r"tasks\[3\]\.flows: flow group 'ring' has flows 0 to 1, not 2"),
        (wire.TaskGraph(), "tasks: an iteration must compute something"),
    ],
)
def test_a_graph_that_is_none_is_refused_by_the_field(
    filled: Registry, task_graph: wire.TaskGraph, problem: str
) -> None:
    async def scenario() -> None:
        registrations = GroupRegistrations(filled)
        request = wire.RegisterFlowGroupsRequest(job="a", flow_groups=groups(2), task_graph=task_graph)
        with pytest.raises(InvalidFieldError, match=rf"^task_graph\.{problem}"):
            await registrations.register(request)
        assert filled.job("a").flow_groups == ()
        await registrations.register(registration(2))
        with pytest.raises(InvalidFieldError, match=rf"^task_graph\.{problem}"):
            await registrations.amend(report(task_graph))

    asyncio.run(scenario())


def test_every_change_of_a_graph_is_planned_and_no_other_report() -> None:
    async def scenario() -> None:
        async with served() as controller, Connection(controller.address) as connection:
            await connection.register_job(GPT)
            first = TaskGraph((Computation(1.0), Transfer("ring", after=(0,))))
            await connection.register_flow_groups("gpt", [RING], first)
            await until(lambda: _planned(controller) is not None)
            assert _planned(controller).tasks == (planned.Computation(1.0), planned.Transfer((0, 1), (0,)))
            await controller.planner.settle()
            number = controller.planner.decision.number
            await connection.report_profile("gpt", GPT.profile, first)
            await connection.register_flow_groups("gpt", [RING], first)
            await connection.report_profile("gpt", GPT.profile)
            await controller.planner.settle()
            assert controller.planner.decision.number == number
            await connection.report_profile("gpt", GPT.profile, TaskGraph((Computation(1.0), Transfer("ring"))))
            await until(lambda: controller.planner.decision.number > number)
            assert _planned(controller).tasks == (planned.Computation(1.0), planned.Transfer((0, 1)))
            late = TaskGraph((Computation(1.0), Transfer("ring"), Transfer("other")))
            with pytest.raises(RefusedError, match=r"tasks\[2\]\.flow_group: the job has none named 'other'"):
                await connection.report_profile("gpt", GPT.profile, late)

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def _planned(controller: Served) -> planned.TaskGraph | None:
    """The graph of the job in the Snapshot of the Plan in force."""
    snapshot = controller.planner.snapshot
    return snapshot.jobs[0].task_graph if snapshot is not None and snapshot.jobs else None
