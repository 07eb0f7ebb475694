"""Registers the flow groups of a request in slices, so that the largest request holds up nobody else."""

import asyncio
from collections.abc import Callable
from weakref import WeakValueDictionary

from controller.api.messages import reading_flow_groups, writing_assignments
from controller.background import in_slices
from controller.registry.errors import ExhaustedError, InvalidFieldError
from controller.registry.group_registration import MAX_FLOWS_PER_JOB
from controller.registry.jobs import RegisteredFlowGroup
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest
from hostlib.wire import trainyard_pb2 as wire

FLOWS_AT_ONCE = 200
"""This takes some milliseconds."""


class GroupRegistrations:
    """The registrations of flow groups that are under way, one at a time for every job."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def register(
        self, request: wire.RegisterFlowGroupsRequest, authorise: Callable[[], None] = lambda: None
    ) -> tuple[bool, tuple[RegisteredFlowGroup, ...]]:
        """Register all groups or none; returns whether any is new, and all. Raises the errors of the registry.

        ``authorise`` raises where the job is not the caller's: it may be somebody else's by the time of its turn.
        """
        if len(request.flow_groups) > MAX_FLOWS_PER_JOB:
            raise InvalidFieldError(f"flow_groups: a job has room for {MAX_FLOWS_PER_JOB:,} flows, each in one group")
        if sum(len(group.flows) for group in request.flow_groups) > MAX_FLOWS_PER_JOB:
            raise ExhaustedError(f"flow_groups: a job has room for {MAX_FLOWS_PER_JOB:,} flows")
        requests: list[FlowGroupRequest] = []
        await in_slices(reading_flow_groups(request.flow_groups, requests), FLOWS_AT_ONCE)
        turn = self._turns.setdefault(request.job, asyncio.Lock())
        async with turn:
            authorise()
            registration = self._registry.registering(request.job, requests)
            try:
                await in_slices(registration.steps(), FLOWS_AT_ONCE)
                return registration.finish()
            except BaseException:
                registration.cancel()
                raise


async def assignments(groups: tuple[RegisteredFlowGroup, ...]) -> wire.RegisterFlowGroupsResponse:
    """The answer to a registration."""
    answer = wire.RegisterFlowGroupsResponse()
    await in_slices(writing_assignments(groups, answer), FLOWS_AT_ONCE)
    return answer
