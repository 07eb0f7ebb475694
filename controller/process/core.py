"""A controller's parts put together, whatever carries its messages and whatever speaks to its switches."""

import asyncio
import logging
from typing import TYPE_CHECKING

import grpc

from controller.api.operations.service import OperationsService
from controller.api.service import ControllerService
from controller.clock import Clock
from controller.config import ControllerConfig
from controller.links.link_health import LinkHealth
from controller.links.port_states import PortStateTable
from controller.planning.directive_publisher import DirectiveBoard
from controller.planning.planner import Planner
from controller.planning.snapshots import Snapshots
from controller.profiling.measured import ProfilingResults
from controller.profiling.observation import Counters
from controller.profiling.profiler import Profiler
from controller.registry.registration import NotStoredError
from controller.registry.registry import Registry
from controller.southbound.southbound import Southbound, SouthboundError
from controller.telemetry.probed_paths import ProbedPaths
from controller.telemetry.telemetry import Telemetry
from policies.enforcement import Enforcement
from policies.registry import load_policy
from topologies.routing import Routing

if TYPE_CHECKING:
    # SQLAlchemy takes a while to import, and most controllers need none of it.
    from controller.store.store import Store

_LOG = logging.getLogger(__name__)
_IDLE_S = 0.5
"""In which jobs may have come that are to be measured."""


class Controller:
    """Registry, telemetry, planner and the two services of one controller; it has no process, socket or thread.

    ``handlers`` answer the host library and the operator, by method name and on serialised messages. ``ports`` is told
    by whoever listens to switches what they say of their ports. With a ``store`` it goes on where the controller before
    it has ended. Without ``counters`` jobs that tell nothing of themselves are not measured. Raises StoreError where
    that cannot be gone on with, and PolicyError where the policy cannot be loaded.
    """

    def __init__(
        self,
        config: ControllerConfig,
        routing: Routing,
        southbound: Southbound,
        clock: Clock,
        store: "Store | None" = None,
        counters: Counters | None = None,
    ) -> None:
        self.southbound = southbound
        self.ports = PortStateTable(routing.fabric.switches)
        self._clock = clock
        self._has_store = store is not None
        grace_end_s = clock.now_s() + config.lease_s
        policy = load_policy(config.policy)
        recorder = None
        if store is None:
            self.registry = Registry(routing.fabric, config.lease_s)
        else:
            self.registry = store.registry(routing.fabric, config.lease_s)
            grace_end_s = store.complete_from_s(config.lease_s)
            recorder = store.recorder(config, policy, routing)
        self.telemetry = Telemetry(routing, config.lease_s, window_us=config.utilisation_window_us)
        probed = ProbedPaths(self.telemetry, config.hash)
        results = ProfilingResults()
        self._profiles = profiles = None if store is None else store.profiles(routing)
        if profiles is not None:
            for job, measured in profiles.of(self.registry.jobs).items():
                results.record(job, measured)
        board = DirectiveBoard(self.registry)
        self.planner = Planner(
            self.registry,
            Snapshots(self.registry, routing, config.num_levels, config.seed, probed, results),
            routing,
            policy,
            config.steering,
            southbound,
            board,
            clock,
            config.hash,
            policy.rate_control(Enforcement.LEVELS).cadence,
            probed,
            LinkHealth(routing.fabric, config.damping),
            grace_end_s,
            recorder,
            config.policy_time_limit_s,
        )
        if self.registry.jobs:
            self.planner.mark_changed()
        self.profiler = None
        if counters is not None:
            self.profiler = Profiler(
                *(self.registry, results, routing, counters),
                *(config.profiling, config.num_levels, config.bytes_per_count),
                *(() if profiles is None else (profiles.keep,)),
            )
        service = ControllerService(self.registry, self.planner, board, clock, self.telemetry)
        name = None if config.leadership is None else config.leadership.name
        operations = OperationsService(
            *(self.registry, self.planner, southbound, clock, self.telemetry, results, store, name)
        )
        self.handlers: tuple[grpc.GenericRpcHandler, ...] = (service.handler(), operations.handler())

    async def hear_ports(self) -> None:
        """Leave the links that are dead by what is heard of ports now; a Plan is to follow."""
        self.planner.links.set_port_states(self.ports.states, self._clock.now_s())
        try:
            await self.planner.leave_dead_links()
        except SouthboundError:
            _LOG.exception("what died is not left everywhere; the next plan tries again")

    async def follow_ports(self) -> None:
        """The same as soon as anything else is heard, as time passes; until cancelled."""
        while True:
            news = self.ports.changed
            await self.hear_ports()
            await news.wait()

    async def measure(self) -> None:
        """Measure the jobs that tell nothing of themselves, as time passes; until cancelled."""
        profiler = self.profiler
        while profiler is not None:
            if await profiler.take_turn(self._clock.now_s(), self.planner.snapshot):
                self.planner.mark_changed()
            next_s = profiler.next_turn_s
            waiting_s = _IDLE_S if next_s is None else min(_IDLE_S, next_s - self._clock.now_s())
            await asyncio.sleep(max(0.0, waiting_s))

    async def written(self) -> None:
        """Return once the Plan in force and what was measured are in the database, or could not be."""
        await self.planner.recorded()
        if self._profiles is not None:
            await self._profiles.kept()

    async def tell_next(self) -> None:
        """Have the next controller know which jobs are not heard of, and what was in doubt; until cancelled."""
        while self._has_store:
            await asyncio.sleep(self.registry.silence_step_s)
            self.registry.tell_silences(self._clock.now_s())
            try:
                await self.registry.stored()
            except NotStoredError as error:
                _LOG.warning("what the next controller is to know: %s", error)
