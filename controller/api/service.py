"""The gRPC service ``trainyard.v1.Controller``, by which hosts register jobs and receive directives."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from controller.api.context import ServiceContext
from controller.api.messages import (
    directives_pages,
    flow_group_assignment,
    flow_group_request,
    job_request,
    plan_pages,
    probe_answer,
    probe_exchange,
    profile,
)
from controller.api.rate_limiter import MAX_STREAMS_PER_CONNECTION, RateLimiter, RateLimitError
from controller.planning.decision import Decision
from controller.registry.admission import check_name
from controller.registry.errors import (
    CommitError,
    ConflictError,
    ExhaustedError,
    InvalidFieldError,
    NotOwnerError,
    RegistrationError,
    UnknownJobError,
)
from controller.registry.requests import InstanceRequest
from controller.telemetry.planned_loads import PlannedLoads
from hostlib.messages import MAX_MESSAGE_BYTES
from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire
from hostlib.wire.methods import PROTOCOL_VERSION, SERVICE, Method, RequestT, ResponseT

SERVER_OPTIONS = (
    # Otherwise a second controller could listen on the same port.
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_concurrent_streams", MAX_STREAMS_PER_CONNECTION),
)

_STATUS_OF: dict[type[Exception], grpc.StatusCode] = {
    InvalidFieldError: grpc.StatusCode.INVALID_ARGUMENT,
    UnknownJobError: grpc.StatusCode.NOT_FOUND,
    ConflictError: grpc.StatusCode.ALREADY_EXISTS,
    NotOwnerError: grpc.StatusCode.PERMISSION_DENIED,
    ExhaustedError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    RateLimitError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    CommitError: grpc.StatusCode.INTERNAL,
}


class ControllerService:
    """Answers the host library. A request that is refused changes nothing."""

    def __init__(self, context: ServiceContext) -> None:
        self._registry = context.registry
        self._planner = context.planner
        self._directives = context.directives
        self._clock = context.clock
        self._telemetry = context.telemetry
        self._probed_for: Decision | None = None
        self._rate_limiter = RateLimiter()

    def handler(self) -> grpc.GenericRpcHandler:
        """The handler of all methods, for a gRPC server."""
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                methods.REGISTER_JOB.name: self._unary(methods.REGISTER_JOB, self._register_job),
                methods.REGISTER_FLOW_GROUPS.name: self._unary(
                    methods.REGISTER_FLOW_GROUPS, self._register_flow_groups
                ),
                methods.REPORT_PROFILE.name: self._unary(methods.REPORT_PROFILE, self._report_profile),
                methods.START_FLOW_GROUPS.name: self._unary(methods.START_FLOW_GROUPS, self._start_flow_groups),
                methods.HEARTBEAT.name: self._unary(methods.HEARTBEAT, self._heartbeat),
                methods.DEREGISTER_JOB.name: self._unary(methods.DEREGISTER_JOB, self._deregister_job),
                methods.EXCHANGE_PROBES.name: self._unary(methods.EXCHANGE_PROBES, self._exchange_probes),
                methods.DIRECTIVES.name: self._streaming(methods.DIRECTIVES, self._follow_directives),
                methods.GET_PLAN.name: self._streaming(methods.GET_PLAN, self._get_plan),
            },
        )

    async def _register_job(self, request: wire.RegisterJobRequest) -> wire.RegisterJobResponse:
        _check_version(request.protocol_version)
        check_name(request.owner_token, "owner_token")
        self._registry.authorise(request.name, request.owner_token)
        job = job_request(request)
        is_new = self._registry.register_job(job, self._clock.now_s(), request.owner_token, request.age_s)
        await self._commit(is_change=is_new)
        return wire.RegisterJobResponse(lease_s=self._registry.lease_s)

    async def _register_flow_groups(self, request: wire.RegisterFlowGroupsRequest) -> wire.RegisterFlowGroupsResponse:
        self._registry.authorise(request.job, request.owner_token)
        requests = [flow_group_request(group) for group in request.flow_groups]
        is_new, groups = self._registry.register_flow_groups(request.job, requests)
        await self._commit(is_change=is_new)
        return wire.RegisterFlowGroupsResponse(flow_groups=[flow_group_assignment(group) for group in groups])

    async def _report_profile(self, request: wire.ReportProfileRequest) -> wire.ReportProfileResponse:
        self._registry.authorise(request.job, request.owner_token)
        is_new = self._registry.report_profile(request.job, profile(request.profile))
        await self._commit(is_change=is_new)
        return wire.ReportProfileResponse()

    async def _start_flow_groups(self, request: wire.StartFlowGroupsRequest) -> wire.StartFlowGroupsResponse:
        self._registry.authorise(request.job, request.owner_token)
        reports = {
            instance.flow_group: InstanceRequest(instance.iteration, instance.has_ended)
            for instance in request.instances
        }
        if self._registry.update_instances(request.job, reports, self._clock.now_s()):
            self._planner.mark_groups_changed()
        await self._commit(is_change=False)
        return wire.StartFlowGroupsResponse()

    async def _heartbeat(self, request: wire.HeartbeatRequest) -> wire.HeartbeatResponse:
        self._registry.authorise(request.job, request.owner_token)
        if self._registry.renew(request.job, self._clock.now_s()):
            await self._commit(is_change=False)
        return wire.HeartbeatResponse()

    async def _deregister_job(self, request: wire.DeregisterJobRequest) -> wire.DeregisterJobResponse:
        self._registry.authorise(request.job, request.owner_token)
        was_there = self._registry.deregister(request.job)
        await self._commit(is_change=was_there)
        return wire.DeregisterJobResponse()

    async def _commit(self, *, is_change: bool) -> None:
        """Plan and reply only after commit.

        A request that changes nothing waits too: an equal one before it may not be committed yet. A committed change is
        planned even where the caller has gone meanwhile.
        """
        committed = self._registry.commit()

        async def commit() -> None:
            await committed
            if is_change:
                self._planner.mark_changed()

        committing = asyncio.ensure_future(commit())
        # Retrieves the error where the caller has gone.
        committing.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(committing)

    async def _follow_directives(
        self, request: wire.DirectivesRequest, _: str
    ) -> AsyncIterator[wire.DirectivesResponse]:
        if request.job not in self._registry:
            raise UnknownJobError(f"job: {request.job!r} is not registered")
        self._registry.authorise(request.job, request.owner_token)
        async for directives in self._directives.follow(request.job):
            for page in directives_pages(directives, self._registry.fabric):
                yield page

    async def _exchange_probes(self, request: wire.ExchangeProbesRequest) -> wire.ExchangeProbesResponse:
        _check_version(request.protocol_version)
        check_name(request.owner_token, "owner_token")
        if request.host not in self._registry.fabric.host_index:
            raise InvalidFieldError(f"host: unknown host {request.host!r}")
        now_s = self._clock.now_s()
        self._telemetry.authorise(request.host, request.owner_token, len(request.reports), now_s)
        version = self._telemetry.version
        self._set_probe_targets()
        answer = self._telemetry.exchange(probe_exchange(request), now_s)
        if self._telemetry.version != version:
            self._planner.links.set_silent_links(self._telemetry.silent_links, now_s)
            self._planner.mark_changed()
        return probe_answer(answer)

    def _set_probe_targets(self) -> None:
        """Have telemetry probe for the flows of the Plan in force, unless it does.

        This waits for the first exchange after a Plan: without host agents nobody needs it.
        """
        decision = self._planner.decision
        if decision is not None and decision is not self._probed_for:
            self._telemetry.set_probe_targets(
                flow.five_tuple for job in decision.snapshot.jobs for flow in job.registered_flows
            )
            self._telemetry.foreign_loads.set_expected(PlannedLoads.of(decision.snapshot, decision.plan))
            self._probed_for = decision

    async def _get_plan(self, _: wire.GetPlanRequest, connection: str) -> AsyncIterator[wire.GetPlanResponse]:
        decision = self._planner.decision
        if decision is None:
            yield wire.GetPlanResponse()
            return
        for page in plan_pages(decision, self._registry.fabric):
            await self._rate_limiter.charge(connection, page.ByteSize())
            yield page

    def _unary(
        self, method: Method[RequestT, ResponseT], answer: Callable[[RequestT], Awaitable[ResponseT]]
    ) -> "grpc.RpcMethodHandler[bytes, ResponseT]":
        """A handler that parses a request only once the rate limiter has admitted it."""

        async def handle(request: bytes, context: grpc.aio.ServicerContext[bytes, ResponseT]) -> ResponseT | None:
            async with _refusals(context), self._rate_limiter.admitted(context.peer(), len(request)):
                return await answer(_read(method, request))
            return None

        return grpc.unary_unary_rpc_method_handler(handle, None, method.response.SerializeToString)

    def _streaming(
        self, method: Method[RequestT, ResponseT], answer: Callable[[RequestT, str], AsyncIterator[ResponseT]]
    ) -> "grpc.RpcMethodHandler[bytes, ResponseT]":
        """The same for an answer in several messages; each waits until the client has taken the one before."""

        async def handle(
            request: bytes, context: grpc.aio.ServicerContext[bytes, ResponseT]
        ) -> AsyncIterator[ResponseT]:
            async with _refusals(context):
                async with self._rate_limiter.admitted(context.peer(), len(request)):
                    message = _read(method, request)
                async for response in answer(message, context.peer()):
                    yield response

        return grpc.unary_stream_rpc_method_handler(handle, None, method.response.SerializeToString)


@asynccontextmanager
async def _refusals(context: grpc.aio.ServicerContext[bytes, ResponseT]) -> AsyncIterator[None]:
    """Answer errors with their gRPC statuses."""
    try:
        yield
    except (RegistrationError, RateLimitError) as error:
        await context.abort(_STATUS_OF[type(error)], str(error))


def _check_version(version: str) -> None:
    if version != PROTOCOL_VERSION:
        raise InvalidFieldError(f"protocol_version: this controller speaks {PROTOCOL_VERSION!r}, not {version!r}")


def _read(method: Method[RequestT, ResponseT], request: bytes) -> RequestT:
    try:
        return method.request.FromString(request)
    except DecodeError:
        raise InvalidFieldError(f"request: cannot be read as {method.request.DESCRIPTOR.full_name}") from None
