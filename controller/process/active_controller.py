"""The active controller: connected to its switches, planning and measuring until its context ends."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence, Set
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import grpc

from controller.background import run_in_thread
from controller.clock import Clock
from controller.config import ControllerConfig
from controller.leadership.leader_gate import LeaderGate
from controller.notice import Notice, either
from controller.process.core import ControllerCore
from controller.registry.errors import CommitError
from controller.reload.errors import EndedMeanwhileError
from controller.southbound.configured import southbound_of
from controller.southbound.counting import count_from_zero, count_write
from controller.southbound.fabric_southbound import FabricSouthbound
from controller.southbound.fencing import Grant
from controller.southbound.gnmi import GnmiPortMonitor
from controller.southbound.p4runtime.switches import given_tables
from controller.southbound.southbound import SouthboundError, SwitchCondition
from controller.southbound.write_outcomes import SwitchWrite
from controller.web.presence import Presence
from topologies.routing import Routing

if TYPE_CHECKING:
    from controller.store.store import Store

_LOG = logging.getLogger(__name__)

_PORTS_LIMIT_S = 1.0
"""How long the first Plan waits for switches to report their ports."""
_REROUTED_AFTER_S = (0.2, 0.8, 2.0)
"""When base routing of others is read after a port has changed, one after the other."""
_FLUSH_LIMIT_S = 2.0
"""How long the end waits for the database to store the last Plan and the last measurements."""


class MakeCore(Protocol):
    """Makes a core for a configuration and its routing."""

    def __call__(
        self,
        config: ControllerConfig,
        routing: Routing,
        before: ControllerCore | None = None,
        aside: frozenset[int] = frozenset(),
    ) -> ControllerCore:
        """Make a core; ``before``: the one that it is to take over from."""


@dataclass(frozen=True, slots=True)
class ExternalTime:
    """A clock that something else moves, with the further gRPC services that move it.

    The controller then does nothing by itself: these services make it plan.
    """

    clock: Clock
    services: Callable[[ControllerCore], Sequence[grpc.GenericRpcHandler]]


class ActiveController:
    """A controller that runs: its core, which another one replaces when the fabric changes, and its connections.

    ``active_controller`` makes one.

    Attributes:
        core: The core that plans and answers now.
        config: The configuration in force.
        is_going_back: Whether it leaves that configuration for the one before, since a switch refuses it.
    """

    def __init__(
        self,
        config: ControllerConfig,
        core: ControllerCore,
        southbound: FabricSouthbound,
        monitor: GnmiPortMonitor,
        tasks: asyncio.TaskGroup,
        make_core: MakeCore,
        gate: LeaderGate,
        presence: Presence,
        switches: Notice,
        *,
        plans_by_itself: bool,
    ) -> None:
        self.config = config
        self.core = core
        self.is_going_back = False
        self.southbound = southbound
        self._monitor = monitor
        self._tasks = tasks
        self._make_core = make_core
        self._gate = gate
        self._presence = presence
        self._switches = switches
        self._plans_by_itself = plans_by_itself
        self._running: list[asyncio.Task[None]] = []
        self._changing: asyncio.Task[Sequence[str] | Exception] | None = None
        self._answering = ExitStack()

    def start(self) -> None:
        """Have the core plan and measure, unless somebody else makes it do so, and answer calls."""
        core = self.core
        loops = (
            core.planner.run,
            core.follow_ports,
            core.measure,
            core.count_loads,
            core.discover,
            core.record_silences,
            core.watchdog.run,
            partial(_read_back_after_ports, core, self.southbound),
        )
        self._running = [self._tasks.create_task(loop()) for loop in (loops if self._plans_by_itself else ())]
        self._running.append(self._tasks.create_task(self._use_new_cables()))
        self._answering.enter_context(self._gate.serving(core.handlers))
        self._answering.enter_context(self._presence.of(core.context))

    def stop(self) -> None:
        """Have the core do nothing by itself any longer; the calls in progress end. Another ``start`` is to follow."""
        self._presence.go_over()
        self._answering.close()
        for task in self._running:
            task.cancel()

    def end(self) -> None:
        """Stop, and give up a change to another configuration that is under way."""
        self.stop()
        self._presence.stay()
        if self._changing is not None:
            self._changing.cancel()

    async def see_through(self, change: Coroutine[Any, Any, Sequence[str]]) -> Sequence[str]:
        """Carry out a change to another configuration, also where the caller goes meanwhile; returns its outcome.

        Raises:
            ReloadError: As the change does.
            EndedMeanwhileError: The controller has ended meanwhile.
        """

        async def carry_out() -> Sequence[str] | Exception:
            try:
                with self.core.context.reloading.going_on():
                    return await change
            except Exception as error:
                return error  # raised, it would end the controller

        changing = self._changing = self._tasks.create_task(carry_out())
        changing.add_done_callback(lambda _: change.close())  # it may have been cancelled before it began
        await asyncio.wait({changing})
        if changing.cancelled():
            raise EndedMeanwhileError("the controller has ended meanwhile")
        if isinstance(outcome := changing.result(), Exception):
            raise outcome
        return outcome

    def tell(self, step: str) -> None:
        """Have those who ask know at which step the change is that goes on."""
        self.core.context.reloading.at(f"going back: {step}" if self.is_going_back else step)

    async def stopped(self) -> None:
        """Wait until all has ended after ``stop``, what was begun is stored, and nothing is being written."""
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._gate.all_ended()
        if self.core.discoverer is not None:
            await self.core.discoverer.finished()
        with suppress(CommitError):  # undone
            await self.core.registry.commit()

    def new_core(self, config: ControllerConfig, routing: Routing, aside: frozenset[int]) -> ControllerCore:
        """Make the core of another fabric, which does nothing yet; ``aside`` are cables that it is not to use yet."""
        return self._make_core(config, routing, before=self.core, aside=aside)

    async def go_over(self, core: ControllerCore, config: ControllerConfig) -> None:
        """Have another core go on, which has taken over from the one that was stopped.

        An error ends the controller, as neither fabric is in force then: the next start reads the switches.
        """
        self.core, self.config = core, config
        count_from_zero(address.name for address in config.switch_addresses)
        routing = core.planner.routing
        try:
            await self._monitor.follow(config.p4runtime_addresses if config.reads_ports else ())
            await self.southbound.use_fabric(config.switch_addresses, routing)
        except Exception as error:
            self._tasks.create_task(_fail(error))
            raise
        async with core.planner.between_plans():
            # Calls are answered meanwhile.
            self.start()
            try:
                await self.southbound.rebase(routing)
            except SouthboundError as error:
                _LOG.error("the new fabric is not on all switches yet; trying again: %s", error)

    @property
    def refusals(self) -> Mapping[str, str]:
        """The switches that refuse their entries, and each one's words."""
        return {
            status.name: f"switch {status.name!r}: {status.problem}"
            for status in self.southbound.statuses()
            if status.condition is SwitchCondition.REFUSES
        }

    async def in_force(self, limit_s: float, refusing: Set[str] | None = None) -> bool:
        """Wait until the Plan of now is in force, with all new cables, but not for longer; returns whether it is.

        It waits no longer where a switch refuses that is not one of ``refusing``; None: it does. Where somebody else
        makes it plan, it does not wait.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while True:
                    coming = self._switches.next, self.core.planner.settled.next
                    if not self._plans_by_itself or self._is_in_force:
                        return True
                    if refusing is not None and self.refusals.keys() - refusing:
                        return False
                    await either(*coming)
        return False

    @property
    def _is_in_force(self) -> bool:
        return not self.core.draining.aside and self.core.planner.is_settled

    async def _use_new_cables(self) -> None:
        """Use every cable that was set aside once the switches at both ends have taken their entries."""
        core = self.core
        cables, waiting = core.planner.routing.fabric.cables, core.draining.aside
        if waiting and self._plans_by_itself and self.config.reads_ports:
            # Otherwise they would be used as if all were up.
            await _wait_at_most(_PORTS_LIMIT_S, core.ports.all_heard())
        while waiting:
            coming = self._switches.next
            async with core.planner.between_plans():
                statuses = self.southbound.statuses()
                behind = {each.name for each in statuses if each.condition is not SwitchCondition.CAUGHT_UP}
                ready = frozenset(cable for cable in waiting if behind.isdisjoint(cables[cable].ends))
                if ready:
                    core.draining.set_aside(core.draining.aside - ready)
            waiting -= ready
            if waiting:
                await coming.wait()


@asynccontextmanager
async def active_controller(
    config: ControllerConfig,
    routing: Routing,
    clock: Clock,
    store: "Store | None" = None,
    grant: Grant | None = None,
    *,
    gate: LeaderGate | None = None,
    presence: Presence | None = None,
    plans_by_itself: bool = True,
) -> AsyncIterator[ActiveController]:
    """Run a controller while the context lasts.

    Args:
        config: Its configuration.
        routing: The routing of its fabric.
        clock: The time of leases and Plans.
        store: The state from which it goes on, and to which it writes; None: it begins anew.
        grant: Permission to write to switches, asked for before every request; None: always granted.
        gate: Passes calls to it, once it runs; None: nobody calls.
        presence: Has its parts for HTTP; None: nobody asks.
        plans_by_itself: Whether it plans and measures as time passes. Otherwise its caller makes it do so.

    Raises:
        StoreError: The stored state cannot be used.
    """
    count_from_zero(address.name for address in config.switch_addresses)

    def on_write(write: SwitchWrite) -> None:
        count_write(write)
        if store is not None:
            store.trail.record(write)

    read_back_s = config.read_back_s if plans_by_itself else None
    switches = Notice()
    southbound = southbound_of(config, routing, on_write, grant, read_back_s, switches.tell)

    def make_core(
        config: ControllerConfig,
        routing: Routing,
        before: ControllerCore | None = None,
        aside: frozenset[int] = frozenset(),
    ) -> ControllerCore:
        return ControllerCore(
            config,
            routing,
            southbound,
            clock,
            store,
            counters=southbound,
            link_counters=southbound,
            discovering=southbound if config.discovers and plans_by_itself else None,
            before=before,
            aside=aside,
        )

    # Reading a large registry takes time.
    core = await run_in_thread(partial(make_core, config, routing))
    given = given_tables(southbound)
    if given is not None:
        given.follow = core.planner.use_routing
        core.planner.use_routing(given.routing())
    active: ActiveController | None = None
    try:
        addresses = config.p4runtime_addresses if config.reads_ports else ()
        monitor = GnmiPortMonitor(addresses, core.ports, config.switch_tls)
        async with monitor, southbound.hearing_ports(core.ports if config.reads_ports else None):
            if plans_by_itself and config.reads_ports:
                # Otherwise switches would first be programmed as if all links were up.
                await _wait_at_most(_PORTS_LIMIT_S, core.ports.all_heard())
                await core.apply_port_states()
            await core.planner.begin_released()
            await core.planner.begin_drained()
            async with southbound, asyncio.TaskGroup() as tasks:
                active = ActiveController(
                    config,
                    core,
                    southbound,
                    monitor,
                    tasks,
                    make_core,
                    gate or LeaderGate(lambda: ""),
                    presence or Presence(),
                    switches,
                    plans_by_itself=plans_by_itself,
                )
                active.start()
                try:
                    yield active
                finally:
                    active.end()
    finally:
        await _wait_at_most(_FLUSH_LIMIT_S, (core if active is None else active.core).flush())


async def _fail(error: Exception) -> None:
    raise error


async def _read_back_after_ports(core: ControllerCore, southbound: FabricSouthbound) -> None:
    """Read base routing of others again after ports have changed, as they may route around these; until cancelled."""
    while given_tables(southbound) is not None:
        await core.ports.changed.wait()
        for pause_s in _REROUTED_AFTER_S:
            await asyncio.sleep(pause_s)
            await southbound.read_back()


async def _wait_at_most(limit_s: float, work: Coroutine[None, None, None]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            await work
