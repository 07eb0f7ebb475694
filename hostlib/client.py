"""The host library's client: what a training job says to the controller, over gRPC."""

from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Self

import grpc
import grpc.aio

from hostlib.errors import ControllerError, RefusedError, UnreachableError
from hostlib.messages import (
    directives_from_wire,
    five_tuple_from_wire,
    flow_group_to_wire,
    job_to_wire,
    plan_from_wire,
    settled_from_wire,
)
from hostlib.types import Directives, FlowGroup, FlowGroupAssignments, Job, PlanInForce, Settled
from hostlib.wire import methods
from hostlib.wire.methods import Method, RequestT, ResponseT
from hostlib.wire.trainyard.v1 import trainyard_pb2 as wire

_NO_ANSWER = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)


class Client:
    """Asynchronous client of the controller at ``address`` (``host:port``).

    Every method raises RefusedError where the controller refuses and UnreachableError where it does not answer within
    ``deadline_s`` seconds. To be closed, or used as an async context manager:

        async with Client("controller:4790") as client:
            await client.register_job(job)
            await client.register_flow_groups(job.name, flow_groups)
            async for directives in client.directives(job.name):
                ...
    """

    def __init__(self, address: str, deadline_s: float = 10.0) -> None:
        self._channel = grpc.aio.insecure_channel(address)
        self._deadline_s = deadline_s

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; streams of directives end."""
        await self._channel.close()

    async def register_job(self, job: Job) -> float:
        """Make a job known and start its lease; returns the length of the lease in seconds."""
        response = await self._call(methods.REGISTER_JOB, job_to_wire(job), self._deadline_s)
        return response.lease_s

    async def register_flow_groups(self, job: str, flow_groups: Sequence[FlowGroup]) -> FlowGroupAssignments:
        """Give the template of a job's flow groups; returns the 5-tuple of every flow."""
        request = wire.RegisterFlowGroupsRequest(
            job=job, flow_groups=[flow_group_to_wire(group) for group in flow_groups]
        )
        response = await self._call(methods.REGISTER_FLOW_GROUPS, request, self._deadline_s)
        return {
            group.name: tuple(five_tuple_from_wire(five_tuple) for five_tuple in group.five_tuples)
            for group in response.flow_groups
        }

    async def heartbeat(self, job: str) -> None:
        """Renew a job's lease."""
        await self._call(methods.HEARTBEAT, wire.HeartbeatRequest(job=job), self._deadline_s)

    async def deregister(self, job: str) -> None:
        """Withdraw a job with its flow groups; nothing happens where the controller does not know it."""
        await self._call(methods.DEREGISTER_JOB, wire.DeregisterJobRequest(job=job), self._deadline_s)

    async def directives(self, job: str) -> AsyncIterator[Directives]:
        """A job's part of the plan in force and of every later one, until the job is withdrawn."""
        call = self._channel.unary_stream(
            methods.DIRECTIVES.path,
            request_serializer=wire.DirectivesRequest.SerializeToString,
            response_deserializer=wire.DirectivesResponse.FromString,
        )
        try:
            async for response in call(wire.DirectivesRequest(job=job)):
                yield directives_from_wire(response)
        except grpc.aio.AioRpcError as error:
            raise _error_of(error) from None

    async def settle(self, time_s: float = 0.0, deadline_s: float | None = None) -> Settled:
        """Wait until nothing is pending at the controller; where the caller drives its clock, at ``time_s``.

        Planning may take long: there is no deadline but the one given here.
        """
        return settled_from_wire(await self._call(methods.SETTLE, wire.SettleRequest(time_s=time_s), deadline_s))

    async def plan(self) -> PlanInForce:
        """The plan in force, of all jobs, with its reasons."""
        return plan_from_wire(await self._call(methods.GET_PLAN, wire.GetPlanRequest(), self._deadline_s))

    async def _call(
        self, method: Method[RequestT, ResponseT], request: RequestT, deadline_s: float | None
    ) -> ResponseT:
        call = self._channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        try:
            return await call(request, timeout=deadline_s)
        except grpc.aio.AioRpcError as error:
            raise _error_of(error) from None


def _error_of(error: grpc.aio.AioRpcError) -> ControllerError:
    message = error.details() or error.code().name
    return UnreachableError(message) if error.code() in _NO_ANSWER else RefusedError(error.code(), message)
