"""One connection to a controller: every method is one call, which succeeds or raises.

For tools and tests that want to know. A training job uses ``Client``, which outlives controllers.
"""

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Self

from hostlib.batches import batches
from hostlib.channels import Channels, addresses_of
from hostlib.messages import (
    directives_from_wire,
    five_tuple_from_wire,
    flow_group_to_wire,
    job_to_wire,
    plan_from_wire,
    profile_to_wire,
)
from hostlib.telemetry.agent import ProbeAnswer, ProbeExchange
from hostlib.telemetry.messages import answer_from_wire, exchange_to_wire
from hostlib.types import (
    Directives,
    FiveTuple,
    FlowGroup,
    FlowGroupAssignments,
    GroupInstance,
    Job,
    PlanInForce,
    Profile,
)
from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire


class Connection:
    """Connection to the controller at ``address``: ``host:port``, or those of several of which one leads.

    Jobs that are registered over it belong to whoever knows ``owner_token`` (None: a random one). Every method raises
    RefusedError where the controller refuses and UnreachableError where no address answers, each within ``deadline_s``
    seconds. To be closed, or used as an async context manager.
    """

    def __init__(self, address: str | Sequence[str], owner_token: str | None = None, deadline_s: float = 10.0) -> None:
        self.owner_token = secrets.token_hex(16) if owner_token is None else owner_token
        self._channels = Channels(addresses_of(address))
        self._deadline_s = deadline_s

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; streams of directives end."""
        self._channels.close()

    async def register_job(self, job: Job, age_s: float = 0.0) -> float:
        """Make a job known that arrived ``age_s`` ago, and start its lease; returns the lease's length in seconds."""
        request = job_to_wire(job, self.owner_token, age_s)
        return (await self._channels.call(methods.REGISTER_JOB, request, self._deadline_s)).lease_s

    async def register_flow_groups(self, job: str, flow_groups: Sequence[FlowGroup]) -> FlowGroupAssignments:
        """Give the template of a job's flow groups; returns the 5-tuple of every flow.

        What does not fit into one message goes in several; each of them is registered as a whole or not at all.
        """
        assignments: dict[str, tuple[FiveTuple, ...]] = {}
        for batch in batches([flow_group_to_wire(group) for group in flow_groups]):
            request = wire.RegisterFlowGroupsRequest(job=job, flow_groups=batch, owner_token=self.owner_token)
            response = await self._channels.call(methods.REGISTER_FLOW_GROUPS, request, self._deadline_s)
            for group in response.flow_groups:
                assignments[group.name] = tuple(five_tuple_from_wire(flow) for flow in group.five_tuples)
        return assignments

    async def report_profile(self, job: str, profile: Profile) -> None:
        """Replace what a job is known to compute in one iteration."""
        request = wire.ReportProfileRequest(job=job, owner_token=self.owner_token, profile=profile_to_wire(profile))
        await self._channels.call(methods.REPORT_PROFILE, request, self._deadline_s)

    async def start_flow_groups(self, job: str, instances: Mapping[str, GroupInstance]) -> None:
        """Flow groups begin to send, or have ended, each in the iteration named; renews the lease as well."""
        messages = [
            wire.FlowGroupInstance(flow_group=group, iteration=instance.iteration, has_ended=instance.has_ended)
            for group, instance in instances.items()
        ]
        request = wire.StartFlowGroupsRequest(job=job, owner_token=self.owner_token, instances=messages)
        await self._channels.call(methods.START_FLOW_GROUPS, request, self._deadline_s)

    async def heartbeat(self, job: str) -> None:
        """Renew a job's lease."""
        request = wire.HeartbeatRequest(job=job, owner_token=self.owner_token)
        await self._channels.call(methods.HEARTBEAT, request, self._deadline_s)

    async def deregister(self, job: str) -> None:
        """Withdraw a job with its flow groups; nothing happens where the controller does not know it."""
        request = wire.DeregisterJobRequest(job=job, owner_token=self.owner_token)
        await self._channels.call(methods.DEREGISTER_JOB, request, self._deadline_s)

    async def directives(self, job: str) -> AsyncIterator[Directives]:
        """A job's part of the plan in force and of every later one, until the job is withdrawn."""
        request = wire.DirectivesRequest(job=job, owner_token=self.owner_token)
        pages: list[wire.DirectivesResponse] = []
        async for page in self._channels.stream(methods.DIRECTIVES, request, deadline_s=None):
            pages.append(page)
            if not page.is_continued:
                yield directives_from_wire(pages)
                pages = []

    async def exchange_probes(self, exchange: ProbeExchange) -> ProbeAnswer:
        """Tell what probes have met at a host; returns which ones it is to send."""
        request = exchange_to_wire(exchange, self.owner_token)
        return answer_from_wire(await self._channels.call(methods.EXCHANGE_PROBES, request, self._deadline_s))

    async def plan(self) -> PlanInForce:
        """The plan in force, of all jobs, with its reasons."""
        stream = self._channels.stream(methods.GET_PLAN, wire.GetPlanRequest(), self._deadline_s)
        return plan_from_wire([page async for page in stream])
