"""The gRPC service ``trainyard.v1.Controller`` over the registry and the planner."""

from collections.abc import AsyncIterator, Awaitable, Callable

import grpc
import grpc.aio

from controller.clock import Clock, DrivenClock
from controller.directives import DirectiveBoard
from controller.messages import (
    directives_response,
    flow_group_assignment,
    flow_group_request,
    job_request,
    plan_response,
)
from controller.planner import Planner
from controller.registration import (
    ConflictError,
    ExhaustedError,
    InvalidFieldError,
    RegistrationError,
    UnknownJobError,
)
from controller.registry import Registry
from controller.southbound.southbound import Southbound, SouthboundError
from hostlib.wire import methods
from hostlib.wire.methods import PROTOCOL_VERSION, SERVICE, Method, RequestT, ResponseT
from hostlib.wire.trainyard.v1 import trainyard_pb2 as wire

_STATUS_OF: dict[type[RegistrationError], grpc.StatusCode] = {
    InvalidFieldError: grpc.StatusCode.INVALID_ARGUMENT,
    UnknownJobError: grpc.StatusCode.NOT_FOUND,
    ConflictError: grpc.StatusCode.ALREADY_EXISTS,
    ExhaustedError: grpc.StatusCode.RESOURCE_EXHAUSTED,
}


class ControllerService:
    """Answers host libraries; a request that is refused changes nothing."""

    def __init__(
        self, registry: Registry, planner: Planner, board: DirectiveBoard, southbound: Southbound, clock: Clock
    ) -> None:
        self._registry = registry
        self._planner = planner
        self._board = board
        self._southbound = southbound
        self._clock = clock

    def handler(self) -> grpc.GenericRpcHandler:
        """The methods by name, for a gRPC server."""
        directives = methods.DIRECTIVES
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                methods.REGISTER_JOB.name: _unary(methods.REGISTER_JOB, self._register_job),
                methods.REGISTER_FLOW_GROUPS.name: _unary(methods.REGISTER_FLOW_GROUPS, self._register_flow_groups),
                methods.HEARTBEAT.name: _unary(methods.HEARTBEAT, self._heartbeat),
                methods.DEREGISTER_JOB.name: _unary(methods.DEREGISTER_JOB, self._deregister_job),
                methods.SETTLE.name: _unary(methods.SETTLE, self._settle),
                methods.GET_PLAN.name: _unary(methods.GET_PLAN, self._get_plan),
                directives.name: grpc.unary_stream_rpc_method_handler(
                    self._directives, directives.request.FromString, directives.response.SerializeToString
                ),
            },
        )

    async def _register_job(self, request: wire.RegisterJobRequest) -> wire.RegisterJobResponse:
        if request.protocol_version != PROTOCOL_VERSION:
            raise InvalidFieldError(
                f"protocol_version: this controller speaks {PROTOCOL_VERSION!r}, not {request.protocol_version!r}"
            )
        if self._registry.register_job(job_request(request), self._clock.now_s()):
            self._planner.mark_changed()
        return wire.RegisterJobResponse(lease_s=self._registry.lease_s)

    async def _register_flow_groups(self, request: wire.RegisterFlowGroupsRequest) -> wire.RegisterFlowGroupsResponse:
        requests = [flow_group_request(group) for group in request.flow_groups]
        is_new, groups = self._registry.register_flow_groups(request.job, requests)
        if is_new:
            self._planner.mark_changed()
        return wire.RegisterFlowGroupsResponse(flow_groups=[flow_group_assignment(group) for group in groups])

    async def _heartbeat(self, request: wire.HeartbeatRequest) -> wire.HeartbeatResponse:
        self._registry.renew(request.job, self._clock.now_s())
        return wire.HeartbeatResponse()

    async def _deregister_job(self, request: wire.DeregisterJobRequest) -> wire.DeregisterJobResponse:
        if self._registry.deregister(request.job):
            self._planner.mark_changed()
        return wire.DeregisterJobResponse()

    async def _directives(
        self,
        request: wire.DirectivesRequest,
        context: grpc.aio.ServicerContext[wire.DirectivesRequest, wire.DirectivesResponse],
    ) -> AsyncIterator[wire.DirectivesResponse]:
        if request.job not in self._registry:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"job: {request.job!r} is not registered")
        async for directives in self._board.follow(request.job):
            yield directives_response(directives, self._registry.fabric)

    async def _settle(self, request: wire.SettleRequest) -> wire.SettleResponse:
        if isinstance(self._clock, DrivenClock):
            try:
                self._clock.advance_to(request.time_s)
            except ValueError as error:
                raise InvalidFieldError(str(error)) from error
        await self._planner.settle()
        if isinstance(self._clock, DrivenClock):
            # Time stands still until the switches that are away are back.
            await self._southbound.caught_up()
        decision = self._planner.decision
        return wire.SettleResponse(
            plan_number=decision.number if decision else 0,
            next_timer_s=self._registry.next_lease_end_s,
            num_rules=decision.num_rules if decision else 0,
        )

    async def _get_plan(self, _: wire.GetPlanRequest) -> wire.GetPlanResponse:
        decision = self._planner.decision
        return plan_response(decision, self._registry.fabric) if decision else wire.GetPlanResponse()


def _unary(
    method: Method[RequestT, ResponseT], answer: Callable[[RequestT], Awaitable[ResponseT]]
) -> "grpc.RpcMethodHandler[RequestT, ResponseT]":
    """A handler whose errors become gRPC statuses."""

    async def handle(request: RequestT, context: grpc.aio.ServicerContext[RequestT, ResponseT]) -> ResponseT:
        try:
            return await answer(request)
        except RegistrationError as error:
            await context.abort(_STATUS_OF[type(error)], str(error))
        except SouthboundError as error:
            await context.abort(grpc.StatusCode.INTERNAL, str(error))

    return grpc.unary_unary_rpc_method_handler(handle, method.request.FromString, method.response.SerializeToString)
