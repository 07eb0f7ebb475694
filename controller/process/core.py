"""The core of a controller: its parts, connected, without a process, a socket or a connection to switches."""

import asyncio
import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc

from controller.api.context import ServiceContext
from controller.api.operations.service import OperationsService
from controller.api.service import ControllerService
from controller.clock import Clock
from controller.config import ControllerConfig
from controller.errors import StoreError
from controller.links.link_health import LinkHealth
from controller.links.port_states import PortStateTable
from controller.planning.context import PlannerContext, PlanRecorder
from controller.planning.directives import DirectivePublisher
from controller.planning.planner import Planner
from controller.planning.snapshots import Snapshots
from controller.process.admission import calls_of
from controller.profiling.measured import ProfilingResults
from controller.profiling.observation import Counters
from controller.profiling.profiler import Profiler
from controller.registry.attendance import Attendance
from controller.registry.errors import CommitError
from controller.registry.registry import Registry
from controller.southbound.southbound import Southbound, SouthboundError
from controller.telemetry.probed_paths import ProbedPaths
from controller.telemetry.telemetry import Telemetry
from controller.watchdog import Watchdog
from policies.enforcement import Enforcement
from policies.policy import Policy
from policies.registry import load_policy
from topologies.routing import Routing

if TYPE_CHECKING:
    # SQLAlchemy is slow to import, and a controller without a database does not need it.
    from controller.store.profiles import ProfileStore
    from controller.store.store import Store

_LOG = logging.getLogger(__name__)
_IDLE_S = 0.5
"""How often an idle controller looks for jobs to measure."""


class ControllerCore:
    """Registry, telemetry, planner, profiler and the two services of one controller.

    ``handlers`` are the gRPC services for hosts and operators. ``ports`` holds the states of switch ports, which the
    caller has to report.

    Args:
        config: The configuration.
        routing: The routing of the fabric.
        southbound: The switches.
        clock: The time of leases and Plans.
        store: The state from which it goes on, and to which it writes; None: it begins anew.
        counters: The switches' counters, with which jobs without a profile are measured; None: they are not.

    Raises:
        StoreError: The stored state cannot be used.
        PolicyError: The policy cannot be loaded.
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
        self.watchdog = Watchdog()
        self._clock = clock
        self._store = store
        policy = load_policy(config.policy)
        initial = _initial_state(config, routing, policy, store)
        self.registry = initial.registry
        attendance = Attendance(clock, lambda: self.watchdog.overdue_s)
        self.watchdog.follow(self.registry.extend_leases)
        self.telemetry = Telemetry(routing, config.lease_s, window_us=config.utilisation_window_us)
        probed = ProbedPaths(self.telemetry, config.hash)
        results = ProfilingResults()
        self._profiles = profiles = initial.profiles
        if profiles is not None:
            for job, measured in profiles.load(self.registry.jobs).items():
                results.record(job, measured)
        directives = DirectivePublisher(self.registry)
        self.planner = Planner(
            PlannerContext(
                registry=self.registry,
                snapshots=Snapshots(self.registry, routing, config.num_levels, config.seed, probed, results),
                routing=routing,
                policy=policy,
                southbound=southbound,
                directives=directives,
                clock=clock,
                steering=config.steering,
                fabric_hash=config.hash,
                cadence=policy.rate_control(Enforcement.LEVELS).cadence,
                probed=probed,
                links=LinkHealth(routing.fabric, config.damping),
                grace_s=initial.grace_s,
                recorder=initial.recorder,
                policy_time_limit_s=config.policy_time_limit_s,
                attendance=attendance,
            )
        )
        if self.registry.jobs:
            self.planner.mark_changed()
        self.profiler = None
        if counters is not None:
            keep = {} if profiles is None else {"keep": profiles.save}
            self.profiler = Profiler(
                registry=self.registry,
                results=results,
                routing=routing,
                counters=counters,
                options=config.profiling,
                num_levels=config.num_levels,
                bytes_per_count=config.bytes_per_count,
                **keep,
            )
        self.calls = calls_of(config, None if store is None else store.trail)
        self.calls.attendance = attendance
        context = ServiceContext(
            registry=self.registry,
            planner=self.planner,
            directives=directives,
            southbound=southbound,
            telemetry=self.telemetry,
            clock=clock,
            calls=self.calls,
            profiling=results,
            store=store,
            watchdog=self.watchdog,
            name=None if config.leadership is None else config.leadership.name,
        )
        self.handlers: tuple[grpc.GenericRpcHandler, ...] = (
            ControllerService(context).handler(),
            OperationsService(context).handler(),
        )

    async def apply_port_states(self) -> None:
        """Stop using the links whose ports are down now; the next Plan routes around them."""
        self.planner.links.set_port_states(self.ports.states, self._clock.now_s())
        try:
            await self.planner.leave_dead_links()
        except SouthboundError:
            _LOG.exception("switches still use links that are down; the next plan tries again")

    async def follow_ports(self) -> None:
        """Apply the states of ports now and whenever they change, until cancelled."""
        while True:
            changed = self.ports.changed
            await self.apply_port_states()
            await changed.wait()

    async def measure(self) -> None:
        """Measure the jobs that report no profile, until cancelled."""
        profiler = self.profiler
        while profiler is not None:
            if await profiler.take_turn(self._clock.now_s(), self.planner.snapshot):
                self.planner.mark_changed()
            next_s = profiler.next_turn_s
            waiting_s = _IDLE_S if next_s is None else min(_IDLE_S, next_s - self._clock.now_s())
            await asyncio.sleep(max(0.0, waiting_s))

    async def flush(self) -> None:
        """Wait until the Plan in force and all measurements are in the database, or could not be."""
        await self.planner.flush_record()
        if self._profiles is not None:
            await self._profiles.flush()

    async def record_silences(self) -> None:
        """Commit now and then until cancelled: which jobs are silent, what is left of the grace, what is uncertain."""
        store = self._store
        recorded_grace_s = math.inf
        while store is not None:
            await asyncio.sleep(self.registry.silence_period_s)
            self.registry.record_silences(self._clock.now_s())
            try:
                await self.registry.commit()
                if recorded_grace_s > 0:
                    left_s = self.planner.grace_left_s
                    await store.record_grace(left_s)
                    recorded_grace_s = left_s
            except (CommitError, StoreError) as error:
                _LOG.warning("the silence of jobs: %s", error)


@dataclass(frozen=True, slots=True)
class _InitialState:
    """The state that a controller begins with; without a store it has no profiles and no recorder."""

    registry: Registry
    grace_s: float
    profiles: "ProfileStore | None" = None
    recorder: PlanRecorder | None = None


def _initial_state(config: ControllerConfig, routing: Routing, policy: Policy, store: "Store | None") -> _InitialState:
    if store is None:
        registry = Registry(routing.fabric, config.lease_s, quotas_of=config.quotas_of)
        return _InitialState(registry, config.lease_s)
    return _InitialState(
        store.registry(routing.fabric, config.lease_s, config.quotas_of),
        store.grace_s(config.lease_s),
        store.profiles(routing),
        store.recorder(config, policy, routing),
    )
