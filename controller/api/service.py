"""The gRPC service ``trainyard.v1.Controller``, by which hosts register jobs and receive directives."""

from collections.abc import AsyncIterator, Callable, Container
from functools import partial
from typing import Any

import grpc

from controller.access.errors import ForbiddenError
from controller.access.identity import Role
from controller.api.calls import Caller
from controller.api.context import ServiceContext
from controller.api.directive_pages import DirectivePages
from controller.api.group_registrations import GroupRegistrations, assignments
from controller.api.messages import (
    instance_request,
    job_request,
    nic_locations,
    plan_pages,
    probe_answer,
    probe_exchange,
)
from controller.api.path_loads import PathLoads
from controller.api.probe_targets import ProbeTargets
from controller.background import to_its_end
from controller.registry.admission import check_name
from controller.registry.errors import InvalidFieldError, UnknownJobError
from hostlib.messages import MAX_ADDRESSES_PER_CALL
from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire
from hostlib.wire.methods import PROTOCOL_VERSION, SERVICE, Method

_JOB = (Role.JOB,)
_JOB_OR_VIEWER = (Role.JOB, Role.VIEWER)
MAX_INSTANCES_PER_CALL = 10_000


class ControllerService:
    """Answers the host library. A request that is refused changes nothing."""

    def __init__(self, context: ServiceContext) -> None:
        self._registry = context.registry
        self._planner = context.planner
        self._directives = context.directives
        self._pages = DirectivePages(context.planner.routing.fabric)
        self._directives.prepare = self._pages.prepare
        self._clock = context.clock
        self._telemetry = context.telemetry
        self._probe_targets = ProbeTargets(self._telemetry)
        self._path_loads = PathLoads(context)
        self._registrations = GroupRegistrations(self._registry)
        self._calls = context.calls

    def handler(self) -> grpc.GenericRpcHandler:
        """The handler of all methods, for a gRPC server."""
        unary, streaming = self._calls.unary, self._calls.streaming
        handlers: dict[Method[Any, Any], grpc.RpcMethodHandler[Any, Any]] = {
            methods.REGISTER_JOB: unary(methods.REGISTER_JOB, _JOB, self._register_job, subject=_name),
            methods.REGISTER_FLOW_GROUPS: unary(
                methods.REGISTER_FLOW_GROUPS, _JOB, self._register_flow_groups, subject=_job
            ),
            methods.REPORT_PROFILE: unary(methods.REPORT_PROFILE, _JOB, self._report_profile, subject=_job),
            methods.START_FLOW_GROUPS: unary(methods.START_FLOW_GROUPS, _JOB, self._start_flow_groups),
            methods.HEARTBEAT: unary(methods.HEARTBEAT, _JOB, self._heartbeat),
            methods.DEREGISTER_JOB: unary(methods.DEREGISTER_JOB, _JOB, self._deregister_job, subject=_job),
            methods.EXCHANGE_PROBES: unary(methods.EXCHANGE_PROBES, (Role.AGENT,), self._exchange_probes),
            methods.DIRECTIVES: streaming(methods.DIRECTIVES, _JOB, self._follow_directives),
            methods.GET_PLAN: streaming(methods.GET_PLAN, _JOB_OR_VIEWER, self._get_plan),
            methods.LOCATE_NICS: unary(methods.LOCATE_NICS, _JOB_OR_VIEWER, self._locate_nics),
            methods.GET_PATH_LOADS: unary(methods.GET_PATH_LOADS, _JOB_OR_VIEWER, self._path_loads.answer),
        }
        return grpc.method_handlers_generic_handler(
            SERVICE, {method.name: handler for method, handler in handlers.items()}
        )

    async def _register_job(self, request: wire.RegisterJobRequest, caller: Caller) -> wire.RegisterJobResponse:
        _check_version(request.protocol_version)
        check_name(request.owner_token, "owner_token")
        self._authorise(request.name, request.owner_token, caller)
        if len(request.hosts) > len(self._registry.fabric.hosts):
            raise InvalidFieldError(f"hosts: the fabric has {len(self._registry.fabric.hosts):,} hosts")
        job, was_there = job_request(request), request.name in self._registry
        is_new = self._registry.register_job(
            job, self._clock.now_s(), request.owner_token, request.age_s, caller.identity.tenant
        )
        await self._commit(request.name, is_change=is_new, tell=None if was_there else self._tell_admitted)
        return wire.RegisterJobResponse(lease_s=self._registry.lease_s)

    async def _register_flow_groups(
        self, request: wire.RegisterFlowGroupsRequest, caller: Caller
    ) -> wire.RegisterFlowGroupsResponse:
        authorise = partial(self._authorise, request.job, request.owner_token, caller)
        authorise()
        is_new, groups = await self._registrations.register(request, authorise)
        await self._commit(request.job, is_change=is_new)
        return await assignments(groups)

    async def _report_profile(self, request: wire.ReportProfileRequest, caller: Caller) -> wire.ReportProfileResponse:
        authorise = partial(self._authorise, request.job, request.owner_token, caller)
        authorise()
        is_new = await self._registrations.amend(request, authorise)
        await self._commit(request.job, is_change=is_new)
        return wire.ReportProfileResponse()

    async def _start_flow_groups(
        self, request: wire.StartFlowGroupsRequest, caller: Caller
    ) -> wire.StartFlowGroupsResponse:
        self._authorise(request.job, request.owner_token, caller)
        if len(request.instances) > MAX_INSTANCES_PER_CALL:
            raise InvalidFieldError(f"instances: one call has room for {MAX_INSTANCES_PER_CALL:,}")
        reports = {instance.flow_group: instance_request(instance) for instance in request.instances}
        sent_before = self._registry.sent_bytes(request.job)
        if self._registry.update_instances(request.job, reports, self._clock.now_s()):
            self._planner.mark_groups_changed()
        if self._registry.sent_bytes(request.job) != sent_before:
            self._planner.mark_changed()
        await self._commit(request.job, is_change=False)
        return wire.StartFlowGroupsResponse()

    async def _heartbeat(self, request: wire.HeartbeatRequest, caller: Caller) -> wire.HeartbeatResponse:
        self._authorise(request.job, request.owner_token, caller)
        if self._registry.renew(request.job, self._clock.now_s()):
            await self._commit(request.job, is_change=False)
        return wire.HeartbeatResponse()

    async def _deregister_job(self, request: wire.DeregisterJobRequest, caller: Caller) -> wire.DeregisterJobResponse:
        self._authorise(request.job, request.owner_token, caller)
        was_there = self._registry.deregister(request.job)
        tell = self._registry.log.deregistered if was_there else None
        await self._commit(request.job, is_change=was_there, tell=tell)
        return wire.DeregisterJobResponse()

    def _tell_admitted(self, name: str) -> None:
        if (job := self._registry.job(name)) is not None:
            self._registry.log.admitted(job)

    async def _commit(self, job: str, *, is_change: bool, tell: Callable[[str], None] | None = None) -> None:
        """Plan, log by ``tell`` and reply only after commit.

        A request that changes nothing waits too: an equal one before it may not be committed yet. A committed change is
        planned even where the caller has gone meanwhile.
        """
        committed = self._registry.commit(job)

        async def commit() -> None:
            await committed
            if is_change:
                self._planner.mark_changed()
            if tell is not None:
                tell(job)

        await to_its_end(commit())

    async def _follow_directives(
        self, request: wire.DirectivesRequest, caller: Caller
    ) -> AsyncIterator[wire.DirectivesResponse]:
        if request.job not in self._registry:
            raise UnknownJobError(f"job: {request.job!r} is not registered")
        self._authorise(request.job, request.owner_token, caller)
        async for directives in self._directives.follow(request.job):
            for page in self._pages.of(request.job, directives):
                yield page

    async def _exchange_probes(
        self, request: wire.ExchangeProbesRequest, caller: Caller
    ) -> wire.ExchangeProbesResponse:
        _check_version(request.protocol_version)
        check_name(request.owner_token, "owner_token")
        if caller.identity.is_known and caller.identity.name != request.host:
            raise ForbiddenError(f"host: {caller.identity} may not speak for host {request.host!r}")
        if request.host not in self._registry.fabric.host_index:
            raise InvalidFieldError(f"host: unknown host {request.host!r}")
        self._telemetry.authorise(request.host, request.owner_token, len(request.reports), self._clock.now_s())
        version = self._telemetry.version
        # This waits for the first exchange after a Plan: without host agents nobody needs it.
        await self._probe_targets.follow(self._planner.decision)
        now_s = self._clock.now_s()
        answer = self._telemetry.exchange(probe_exchange(request), now_s)
        if self._telemetry.version != version:
            self._planner.links.set_silent_links(self._telemetry.silent_links, now_s)
            self._planner.mark_changed()
        return probe_answer(answer)

    async def _get_plan(self, _: wire.GetPlanRequest, caller: Caller) -> AsyncIterator[wire.GetPlanResponse]:
        decision = self._planner.decision
        if decision is None:
            yield wire.GetPlanResponse()
            return
        for page in plan_pages(decision, self._registry.fabric, self._visible_jobs(caller)):
            await self._calls.charge(caller, page.ByteSize())
            yield page

    async def _locate_nics(self, request: wire.LocateNicsRequest, caller: Caller) -> wire.LocateNicsResponse:
        if len(request.addresses) > MAX_ADDRESSES_PER_CALL:
            raise InvalidFieldError(f"addresses: one call has room for {MAX_ADDRESSES_PER_CALL:,}")
        answer = nic_locations(request.addresses, self._registry.fabric)
        await self._calls.charge(caller, answer.ByteSize())
        return answer

    def _visible_jobs(self, caller: Caller) -> Container[str] | None:
        """The jobs that a caller may see: a tenant's own; None: all."""
        identity = caller.identity
        if Role.VIEWER in identity.roles:
            return None
        return {job.request.name for job in self._registry.jobs if job.tenant == identity.tenant}

    def _authorise(self, job: str, owner_token: str, caller: Caller) -> None:
        """Raise NotOwnerError where a job is another tenant's, or registered under another token."""
        self._registry.authorise(job, owner_token, caller.identity.tenant)


def _check_version(version: str) -> None:
    if version != PROTOCOL_VERSION:
        raise InvalidFieldError(f"protocol_version: this controller speaks {PROTOCOL_VERSION!r}, not {version!r}")


def _name(request: wire.RegisterJobRequest) -> str:
    return request.name


def _job(request: wire.RegisterFlowGroupsRequest | wire.ReportProfileRequest | wire.DeregisterJobRequest) -> str:
    return request.job
