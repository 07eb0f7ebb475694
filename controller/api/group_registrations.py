"""Registers flow groups in slices, and task graphs in a thread, so that the largest request holds up nobody else."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar
from weakref import WeakValueDictionary

from controller.api.messages import profile, reading_flow_groups, task_graph_request, writing_assignments
from controller.background import in_slices, run_planning
from controller.registry.errors import ExhaustedError, InvalidFieldError
from controller.registry.group_registration import MAX_FLOWS_PER_JOB
from controller.registry.jobs import RegisteredFlowGroup
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, TaskGraphRequest
from hostlib.wire import trainyard_pb2 as wire
from policies.task_graph import MAX_TASKS

FLOWS_AT_ONCE = 200
"""This takes some milliseconds."""


_SMALL_BYTES = 8_192
"""Of a task graph: one that is not larger is admitted at once."""

_ResultT = TypeVar("_ResultT")


class GroupRegistrations:
    """The registrations of flow groups and task graphs that are under way, one at a time for every job."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def register(
        self, request: wire.RegisterFlowGroupsRequest, authorise: Callable[[], None] = lambda: None
    ) -> tuple[bool, tuple[RegisteredFlowGroup, ...]]:
        """Register all groups, with the task graph, or none; returns whether any is new, and all groups.

        Raises the errors of the registry.

        ``authorise`` raises where the job is not the caller's: it may be somebody else's by the time of its turn.
        """
        if len(request.flow_groups) > MAX_FLOWS_PER_JOB:
            raise InvalidFieldError(f"flow_groups: a job has room for {MAX_FLOWS_PER_JOB:,} flows, each in one group")
        if sum(len(group.flows) for group in request.flow_groups) > MAX_FLOWS_PER_JOB:
            raise ExhaustedError(f"flow_groups: a job has room for {MAX_FLOWS_PER_JOB:,} flows")
        requests: list[FlowGroupRequest] = []
        await in_slices(reading_flow_groups(request.flow_groups, requests), FLOWS_AT_ONCE)
        task_graph = await _task_graph_of(request)
        async with self._turn(request.job):
            authorise()
            registration = self._registry.registering(request.job, requests, task_graph)
            try:
                await in_slices(registration.steps(), FLOWS_AT_ONCE)
                await _work_on(request.task_graph, registration.admit_graph)
                return registration.finish()
            except BaseException:
                registration.cancel()
                raise

    async def amend(self, request: wire.ReportProfileRequest, authorise: Callable[[], None] = lambda: None) -> bool:
        """Replace the profile of a job, and its task graph if there is another; returns whether either differs.

        Raises the errors of the registry. ``authorise``: see ``register``.
        """
        task_graph = await _task_graph_of(request)
        if task_graph is None:
            return self._registry.report_profile(request.job, profile(request.profile))
        async with self._turn(request.job):
            authorise()
            admission = self._registry.admitting(request.job, task_graph)
            await _work_on(request.task_graph, admission.admit)
            authorise()
            return self._registry.report_profile(request.job, profile(request.profile), admission)

    def _turn(self, job: str) -> asyncio.Lock:
        return self._turns.setdefault(job, asyncio.Lock())


async def _task_graph_of(
    request: wire.RegisterFlowGroupsRequest | wire.ReportProfileRequest,
) -> TaskGraphRequest | None:
    """The task graph of a request. Raises InvalidFieldError where it is too large, or has a task that is none."""
    if not request.HasField("task_graph"):
        return None
    if len(request.task_graph.tasks) > MAX_TASKS:
        raise InvalidFieldError(
            f"task_graph.tasks: a job has room for {MAX_TASKS:,}, not for {len(request.task_graph.tasks):,}"
        )
    return await _work_on(request.task_graph, partial(task_graph_request, request.task_graph))


async def _work_on(task_graph: wire.TaskGraph, call: Callable[[], _ResultT]) -> _ResultT:
    """Make a call that takes the longer the larger a graph is: that for a large one in a thread."""
    return call() if task_graph.ByteSize() <= _SMALL_BYTES else await run_planning(call)


async def assignments(groups: tuple[RegisteredFlowGroup, ...]) -> wire.RegisterFlowGroupsResponse:
    """The answer to a registration."""
    answer = wire.RegisterFlowGroupsResponse()
    await in_slices(writing_assignments(groups, answer), FLOWS_AT_ONCE)
    return answer
