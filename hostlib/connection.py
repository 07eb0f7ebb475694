"""Connection to a controller: every method is one call that succeeds or raises.

It is meant for tools and tests. Training jobs use ``Client``, which retries and survives controllers.
"""

import math
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from ipaddress import IPv4Address
from types import TracebackType
from typing import Self

from hostlib import checks
from hostlib.addresses import unique_addresses
from hostlib.credentials import Credentials
from hostlib.failover_channel import FailoverChannel
from hostlib.messages import (
    MAX_ADDRESSES_PER_CALL,
    MAX_PAIRS_PER_CALL,
    directives_from_wire,
    five_tuple_from_wire,
    flow_groups_to_wire,
    instance_to_wire,
    job_to_wire,
    locations_from_wire,
    path_loads_from_wire,
    path_loads_to_wire,
    plan_from_wire,
    profile_to_wire,
    task_graph_to_wire,
)
from hostlib.task_graph import TaskGraph
from hostlib.telemetry.messages import answer_from_wire, exchange_to_wire
from hostlib.telemetry.probe_agent import ProbeAnswer, ProbeExchange
from hostlib.types import (
    Directives,
    FiveTuple,
    FlowGroup,
    FlowGroupAssignments,
    GroupInstance,
    Job,
    Nic,
    NicPair,
    PathLoad,
    PlanInForce,
    Profile,
)
from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire


class Connection:
    """Connection to the controller at ``address``: HOST:PORT or unix:/PATH, or several, of which one is active.

    Jobs registered over it belong to whoever knows ``owner_token`` (None: a random one). Every method raises
    RefusedError if the controller refuses and UnreachableError if no address answers, each within ``deadline_s``
    seconds. ``credentials`` are those of the environment by default. Close it after use, or use it as an async context
    manager.

    Raises ValueError for an address that is neither, and for credentials that cannot be used.
    """

    def __init__(
        self,
        address: str | Sequence[str],
        owner_token: str | None = None,
        deadline_s: float = 10.0,
        credentials: Credentials | None = None,
    ) -> None:
        self.owner_token = secrets.token_hex(16) if owner_token is None else checks.name("owner_token", owner_token)
        self._channel = FailoverChannel(unique_addresses(address), credentials)
        self._deadline_s = deadline_s

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; streams of directives end."""
        self._channel.close()

    async def register_job(self, job: Job, age_s: float = 0.0) -> float:
        """Register a job that arrived ``age_s`` ago and start its lease; return the lease's length in seconds."""
        request = job_to_wire(job, self.owner_token, age_s)
        lease_s = (await self._channel.call(methods.REGISTER_JOB, request, self._deadline_s)).lease_s
        if not 0 < lease_s < math.inf:
            raise ValueError(f"lease_s: the controller answered {lease_s}, which is no time")
        return lease_s

    async def register_flow_groups(
        self, job: str, flow_groups: Sequence[FlowGroup], task_graph: TaskGraph | None = None
    ) -> FlowGroupAssignments:
        """Register the flow groups of a job, and its task graph; return the 5-tuple of every flow.

        Large registrations are split into messages. The controller registers each message as a whole or not at all. The
        task graph goes with the last groups, or behind them where both together are too large.
        """
        assignments: dict[str, tuple[FiveTuple, ...]] = {}
        for request in flow_groups_to_wire(flow_groups, task_graph):
            request.job, request.owner_token = job, self.owner_token
            response = await self._channel.call(methods.REGISTER_FLOW_GROUPS, request, self._deadline_s)
            for group in response.flow_groups:
                assignments[group.name] = tuple(five_tuple_from_wire(flow) for flow in group.five_tuples)
        return assignments

    async def report_profile(self, job: str, profile: Profile, task_graph: TaskGraph | None = None) -> None:
        """Replace the profile of a job, and its task graph if there is another one."""
        request = wire.ReportProfileRequest(
            job=job,
            owner_token=self.owner_token,
            profile=profile_to_wire(profile),
            task_graph=None if task_graph is None else task_graph_to_wire(task_graph),
        )
        await self._channel.call(methods.REPORT_PROFILE, request, self._deadline_s)

    async def start_flow_groups(self, job: str, instances: Mapping[str, GroupInstance]) -> None:
        """Report starts and ends of flow groups, each in its iteration. This also renews the lease."""
        messages = [instance_to_wire(group, instance) for group, instance in instances.items()]
        request = wire.StartFlowGroupsRequest(job=job, owner_token=self.owner_token, instances=messages)
        await self._channel.call(methods.START_FLOW_GROUPS, request, self._deadline_s)

    async def heartbeat(self, job: str) -> None:
        """Renew a job's lease."""
        request = wire.HeartbeatRequest(job=job, owner_token=self.owner_token)
        await self._channel.call(methods.HEARTBEAT, request, self._deadline_s)

    async def deregister(self, job: str) -> None:
        """Withdraw a job with its flow groups; an unknown job is ignored."""
        request = wire.DeregisterJobRequest(job=job, owner_token=self.owner_token)
        await self._channel.call(methods.DEREGISTER_JOB, request, self._deadline_s)

    async def directives(self, job: str) -> AsyncIterator[Directives]:
        """Yield a job's part of the plan in force and of every later plan, until the job is withdrawn."""
        request = wire.DirectivesRequest(job=job, owner_token=self.owner_token)
        pages: list[wire.DirectivesResponse] = []
        async for page in self._channel.stream(methods.DIRECTIVES, request, deadline_s=None):
            pages.append(page)
            if not page.is_continued:
                yield directives_from_wire(pages)
                pages = []

    async def exchange_probes(self, exchange: ProbeExchange) -> ProbeAnswer:
        """Report received probes; return the probes to send."""
        request = exchange_to_wire(exchange, self.owner_token)
        return answer_from_wire(await self._channel.call(methods.EXCHANGE_PROBES, request, self._deadline_s))

    async def plan(self) -> PlanInForce:
        """Return the plan in force for all jobs, with its reasons."""
        stream = self._channel.stream(methods.GET_PLAN, wire.GetPlanRequest(), self._deadline_s)
        return plan_from_wire([page async for page in stream])

    async def locate_nics(self, addresses: Sequence[IPv4Address]) -> tuple[Nic | None, ...]:
        """Return the NIC that has each address, in their order; None where no NIC of the fabric has it.

        Raises ValueError for what is no address, and for an answer that nobody can read.
        """
        numbers = [int.from_bytes(address.packed) for address in checks.items("addresses", addresses, IPv4Address)]
        nics: list[Nic | None] = []
        for first in range(0, len(numbers), MAX_ADDRESSES_PER_CALL):
            request = wire.LocateNicsRequest(addresses=numbers[first : first + MAX_ADDRESSES_PER_CALL])
            response = await self._channel.call(methods.LOCATE_NICS, request, self._deadline_s)
            nics += locations_from_wire(response, len(request.addresses))
        return tuple(nics)

    async def path_loads(self, pairs: Sequence[NicPair]) -> tuple[PathLoad, ...]:
        """Return how loaded the paths between NICs are, in the order of the pairs.

        Raises ValueError for what is no pair, and for an answer that nobody can read.
        """
        pairs = checks.items("pairs", pairs, NicPair)
        loads: list[PathLoad] = []
        for first in range(0, len(pairs), MAX_PAIRS_PER_CALL):
            request = path_loads_to_wire(pairs[first : first + MAX_PAIRS_PER_CALL])
            response = await self._channel.call(methods.GET_PATH_LOADS, request, self._deadline_s)
            loads += path_loads_from_wire(response, len(request.pairs))
        return tuple(loads)
