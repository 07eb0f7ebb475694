"""The core of a controller: its parts, connected, without a process, a socket or a connection to switches."""

import asyncio
import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc

from controller.api.calls import Calls
from controller.api.context import ServiceContext
from controller.api.operations.service import OperationsService
from controller.api.service import ControllerService
from controller.clock import Clock
from controller.config import ControllerConfig
from controller.discovery.discoverer import Discoverer, Misplacement
from controller.errors import StoreError
from controller.links.drains import Drain
from controller.links.link_health import LinkHealth
from controller.links.port_states import PortStateTable
from controller.links.quiet_links import LinkCounters, QuietLinks
from controller.metrics import LEASES_EXTENDED
from controller.planning.context import PlannerContext
from controller.planning.directives import DirectivePublisher
from controller.planning.draining import Draining
from controller.planning.interventions import Interventions
from controller.planning.planner import Planner
from controller.planning.snapshots import Snapshots
from controller.process.admission import calls_of
from controller.process.changing_options import ChangingOptions
from controller.profiling.measured import ProfilingResults
from controller.profiling.observation import Counters
from controller.profiling.profiler import Profiler
from controller.record.codec import Setting
from controller.registry.attendance import Attendance
from controller.registry.errors import CommitError
from controller.registry.jobs import RegisteredJob
from controller.registry.registry import Registry
from controller.reload.progress import ReloadProgress
from controller.reload.refit import refitted_measurements
from controller.southbound.southbound import DiscoveringSouthbound, Southbound, SouthboundError
from controller.telemetry.counted_loads import PERIOD_S, CountedLoads
from controller.telemetry.probed_paths import ProbedPaths
from controller.telemetry.telemetry import Telemetry
from controller.watchdog import Watchdog
from policies.enforcement import Enforcement
from policies.policy import Policy
from policies.registry import load_policy
from topologies.fabric import Fabric
from topologies.fabric_match import FabricMatch
from topologies.routing import Routing

if TYPE_CHECKING:
    # SQLAlchemy is slow to import, and a controller without a database does not need it.
    from controller.store.profiles import ProfileStore
    from controller.store.recorder import Recorder
    from controller.store.store import Store

_LOG = logging.getLogger(__name__)
_IDLE_S = 0.5
"""How often an idle controller looks for jobs to measure."""


class ControllerCore:
    """Registry, telemetry, planner, profiler and the two services of one controller.

    ``handlers`` are the gRPC services for hosts and operators, and ``context`` what these read and change. ``ports``
    holds the states of switch ports, which the caller has to report.

    Args:
        config: The configuration.
        routing: The routing of the fabric.
        southbound: The switches.
        clock: The time of leases and Plans.
        store: The state from which it goes on, and to which it writes; None: it begins anew.
        before: The core of the same controller on another fabric, from which it takes over; see ``take_over``.
        counters: The switches' counters, with which jobs without a profile are measured; None: they are not.
        link_counters: Those that tell when no packet leaves by a drained link, and how loaded links are where switches
            know no INT; None: they are not read.
        discovering: What finds out cables and MACs; None: the topology is believed.

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
        link_counters: LinkCounters | None = None,
        discovering: DiscoveringSouthbound | None = None,
        before: "ControllerCore | None" = None,
        aside: frozenset[int] = frozenset(),
    ) -> None:
        self.southbound = southbound
        self._clock = clock
        self._store = store
        self.policy = policy = load_policy(config.policy)
        self._lasting: _Lasting = _begin(config, routing, policy, clock, store) if before is None else before._lasting
        lasting = self._lasting
        self.ports, self.watchdog, self.registry, self.calls = (
            lasting.ports,
            lasting.watchdog,
            lasting.registry,
            lasting.calls,
        )
        without_int = frozenset(address.name for address in config.openflow_addresses)
        self.telemetry = Telemetry(
            routing, config.lease_s, window_us=config.utilisation_window_us, without_int=without_int
        )
        ordinary = routing.fabric.ordinary_switches
        probed = ProbedPaths(self.telemetry, config.hash, has_ordinary_switches=bool(ordinary))
        self._profiles = profiles = lasting.profiles
        self._results = results = ProfilingResults()
        if profiles is not None and before is None:
            for job, measured in profiles.load(self.registry.jobs).items():
                results.record(job, measured)
        self._snapshots = Snapshots(
            self.registry, routing, config.num_levels, config.seed, probed, results, config.steering
        )
        directives = DirectivePublisher(self.registry)
        self.planner = Planner(
            PlannerContext(
                registry=self.registry,
                snapshots=self._snapshots,
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
                grace_s=lasting.grace_s,
                recorder=lasting.recorder,
                policy_time_limit_s=config.policy_time_limit_s,
                attendance=lasting.attendance,
                interventions=lasting.interventions,
            )
        )
        if self.registry.jobs:
            self.planner.mark_changed()
        self.draining = Draining(
            self.planner,
            self.registry,
            southbound,
            clock,
            None if link_counters is None else QuietLinks(link_counters),
            () if store is None or before is not None else store.drains(),
            store,
            aside,
        )
        self._counted_loads = None
        if link_counters is not None and without_int:
            links = [link.index for link in routing.fabric.links if link.source in without_int]
            self._counted_loads = CountedLoads(link_counters, links)
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
        self.discoverer = None
        if discovering is not None:
            self.discoverer = Discoverer(
                routing.fabric,
                discovering,
                self.ports,
                self._apply_misplacement,
                take_probed=self.telemetry.probed_cables.take,
            )
        self.context = context = ServiceContext(
            registry=self.registry,
            planner=self.planner,
            directives=directives,
            southbound=southbound,
            telemetry=self.telemetry,
            draining=self.draining,
            clock=clock,
            calls=self.calls,
            profiling=results,
            store=store,
            watchdog=self.watchdog,
            discoverer=self.discoverer,
            reloading=lasting.reloading,
            name=None if config.leadership is None else config.leadership.name,
        )
        self.handlers: tuple[grpc.GenericRpcHandler, ...] = (
            ControllerService(context).handler(),
            OperationsService(context).handler(),
        )

    def use(self, config: ControllerConfig, policy: Policy) -> None:
        """Go by the keys of a configuration that change at once. To be called between Plans.

        ``policy`` is the one that it names.
        """
        options = self._lasting.options
        known, options.config = options.config, config
        self.policy = policy
        self._snapshots.use(config.num_levels, config.seed)
        self.planner.links.set_damping(config.damping)
        if (known.policy, known.policy_time_limit_s) != (config.policy, config.policy_time_limit_s):
            self.planner.use_policy(policy, config.policy_time_limit_s)
        self.planner.mark_changed()
        if self.profiler is not None:
            self.profiler.use(config.profiling, config.num_levels)
        if self._lasting.recorder is not None:
            self._lasting.recorder.use(Setting.of(config), policy, config.record)

    def take_over(
        self,
        before: "ControllerCore",
        match: FabricMatch,
        config: ControllerConfig,
        jobs: Iterable[RegisteredJob],
        drains: Iterable[Drain],
    ) -> None:
        """Go on with all that the core of another fabric was doing; that core plans and answers no longer.

        ``jobs`` and ``drains`` are those of that core on this one's fabric.
        """
        lasting, routing = self._lasting, self.planner.routing.whole
        measurements = refitted_measurements(before._results.all, match)
        self.draining.take_over(drains)
        self.planner.take_over(before.planner, match)
        for name, measured in measurements.items():
            self._results.record(name, measured)
        if lasting.recorder is not None:
            lasting.recorder.use(Setting.of(config), self.policy, config.record, routing)
        # Both cores share what is changed from here on.
        lasting.options.config = config
        lasting.ports.follow(_controlled(match.after))
        self.registry.use_fabric(match.after, jobs)
        if lasting.profiles is not None:
            lasting.profiles.use_routing(routing)
            for job in self.registry.jobs:
                if (kept := measurements.get(job.request.name)) is not None:
                    lasting.profiles.save(job, kept)

    async def apply_port_states(self) -> None:
        """Stop using the links whose ports are down now; the next Plan routes around them."""
        self.planner.links.set_port_states(self.ports.states, self._clock.now_s())
        await self._leave_dead_links()

    async def _apply_misplacement(self, found: Misplacement) -> None:
        """Stop using cables that are not where the topology says, and use those that are there again."""
        self.planner.links.set_found_cables(found.misplaced, found.unheard, found.confirmed, self._clock.now_s())
        await self._leave_dead_links()

    async def _leave_dead_links(self) -> None:
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

    async def discover(self) -> None:
        """Find out cables and MACs, until cancelled."""
        if self.discoverer is not None:
            await self.discoverer.run()

    async def measure(self) -> None:
        """Measure the jobs that report no profile, until cancelled."""
        profiler = self.profiler
        while profiler is not None:
            if await profiler.take_turn(self._clock.now_s(), self.planner.snapshot):
                self.planner.mark_changed()
            next_s = profiler.next_turn_s
            waiting_s = _IDLE_S if next_s is None else min(_IDLE_S, next_s - self._clock.now_s())
            await asyncio.sleep(max(0.0, waiting_s))

    async def count_loads(self) -> None:
        """Measure the loads of links by the counters of switches without INT, until cancelled."""
        counted = self._counted_loads
        while counted is not None:
            now_s = self._clock.now_s()
            self.telemetry.record_counted(await counted.read(now_s), now_s)
            await asyncio.sleep(PERIOD_S)

    async def flush(self) -> None:
        """Wait until the Plan in force and all measurements are in the database, or could not be."""
        await self.planner.flush_record()
        if self._profiles is not None:
            await self._profiles.flush()

    async def record_silences(self) -> None:
        """Commit now and then until cancelled: which jobs are silent, what is left of the grace, what is uncertain."""
        store, told = self._store, ""
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
                told = ""
            except (CommitError, StoreError) as error:
                if str(error) != told:
                    _LOG.warning("not stored for how long jobs have been silent: %s", error)
                told = str(error)


@dataclass(frozen=True, slots=True)
class _Lasting:
    """What stays when the fabric changes; without a store there are no profiles and no recorder."""

    options: ChangingOptions
    ports: PortStateTable
    watchdog: Watchdog
    registry: Registry
    attendance: Attendance
    calls: Calls
    interventions: Interventions
    grace_s: float
    reloading: ReloadProgress
    profiles: "ProfileStore | None" = None
    recorder: "Recorder | None" = None


def _begin(config: ControllerConfig, routing: Routing, policy: Policy, clock: Clock, store: "Store | None") -> _Lasting:
    fabric, lease_s, options = routing.fabric, config.lease_s, ChangingOptions(config)
    watchdog = Watchdog()
    if store is None:
        registry, grace_s = Registry(fabric, lease_s, quotas_of=options.quotas_of), lease_s
    else:
        registry, grace_s = store.registry(fabric, lease_s, options.quotas_of), store.grace_s(lease_s)

    def extend_leases(by_s: float) -> None:
        LEASES_EXTENDED.inc(by_s)
        registry.extend_leases(by_s)

    watchdog.follow(extend_leases)
    calls = calls_of(config, None if store is None else store.trail, options.quotas_of)
    calls.attendance = attendance = Attendance(clock, lambda: watchdog.overdue_s)
    return _Lasting(
        options,
        PortStateTable(_controlled(fabric)),
        watchdog,
        registry,
        attendance,
        calls,
        Interventions(clock) if store is None else store.interventions(),
        grace_s,
        ReloadProgress(),
        None if store is None else store.profiles(routing),
        None if store is None else store.recorder(config, policy, routing),
    )


def _controlled(fabric: Fabric) -> list[str]:
    return [switch for switch in fabric.switches if switch not in fabric.ordinary_switches]
