"""The gRPC service ``trainyard.driven_time.v1.DrivenTime``, by which a run moves the controller's clock."""

import asyncio
from typing import Final

import grpc
import grpc.aio

from controller.links.port_states import PortStateTable
from controller.planning.planner import Planner
from controller.process.core import ControllerCore
from controller.profiling.profiler import Profiler
from controller.registry.errors import CommitError
from controller.southbound.southbound import Southbound, SouthboundError
from experiments.scenarios.driven import driven_time_pb2 as wire
from experiments.scenarios.driven.clock import DrivenClock
from hostlib.wire.methods import Method

SETTLE: Final = Method("Settle", wire.SettleRequest, wire.SettleResponse, service="trainyard.driven_time.v1.DrivenTime")


class DrivenTimeService:
    """Moves a controller's clock to the times of its caller, and settles it there.

    The caller may leave meanwhile; the controller finishes a Plan that it has begun. A decision that fails in a
    production controller leaves the Plan in force; here it is an error, as the run could not go on.
    """

    def __init__(
        self,
        planner: Planner,
        southbound: Southbound,
        ports: PortStateTable,
        clock: DrivenClock,
        profiler: Profiler | None = None,
    ) -> None:
        self._planner = planner
        self._southbound = southbound
        self._ports = ports
        self._clock = clock
        self._profiler = profiler

    @classmethod
    def of(cls, controller: ControllerCore, clock: DrivenClock) -> "DrivenTimeService":
        """Return the service of a controller that runs on ``clock``."""
        return cls(controller.planner, controller.southbound, controller.ports, clock, controller.profiler)

    def handler(self) -> grpc.GenericRpcHandler:
        """Return the handler of the service's methods for a gRPC server."""
        settle = grpc.unary_unary_rpc_method_handler(
            self._settle, SETTLE.request.FromString, SETTLE.response.SerializeToString
        )
        return grpc.method_handlers_generic_handler(SETTLE.service, {SETTLE.name: settle})

    async def _settle(
        self, request: wire.SettleRequest, context: grpc.aio.ServicerContext[wire.SettleRequest, wire.SettleResponse]
    ) -> wire.SettleResponse:
        try:
            self._check_switches(request)
            self._clock.advance_to(request.time_s)
        except ValueError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        try:
            await asyncio.shield(asyncio.ensure_future(self._settled(request)))
        except (SouthboundError, CommitError, _DecisionFailedError) as error:
            await context.abort(grpc.StatusCode.INTERNAL, str(error))
        decision = self._planner.decision
        return wire.SettleResponse(
            plan_number=decision.number if decision else 0,
            next_timer_s=self._next_timer_s,
            num_rules=decision.num_rules if decision else 0,
        )

    def _check_switches(self, request: wire.SettleRequest) -> None:
        if unknown := set(request.switches_down) - self._ports.switches:
            raise ValueError(f"switches_down: unknown switch {min(unknown)!r}")

    async def _settled(self, request: wire.SettleRequest) -> None:
        """Let the controller do everything that is due now."""
        if request.HasField("ports_down"):
            down = [(port.switch, port.port) for port in request.ports_down.ports]
            await self._ports.caught_up(down, silent=request.switches_down)
            self._planner.links.set_port_states(self._ports.states, self._clock.now_s())
        if self._profiler is not None and await self._profiler.take_turn(request.time_s, self._planner.snapshot):
            self._planner.mark_changed()
        failures = self._planner.policy.num_failures
        await self._planner.settle()
        if self._planner.policy.num_failures > failures:
            raise _DecisionFailedError(f"policy {self._planner.policy.name}: {self._planner.policy.problem}")
        # Time stands still until every switch with power is connected, and every other is known to be gone.
        await self._southbound.caught_up(down=request.switches_down)

    @property
    def _next_timer_s(self) -> float | None:
        timers = (self._planner.next_timer_s, None if self._profiler is None else self._profiler.next_turn_s)
        return min((timer for timer in timers if timer is not None), default=None)


class _DecisionFailedError(Exception):
    """The policy made no Plan; the message says why."""
