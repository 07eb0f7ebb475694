"""A run's session with a controller in wall-clock time: jobs go on while the controller hears of them and plans."""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from experiments.scenarios.controller_process import ControllerProcess, ControllerProcessError
from experiments.scenarios.interfaces import ControllerAnswer
from experiments.scenarios.job_agent import JobAgent
from experiments.scenarios.real_hosts.real_network import RealNetwork
from experiments.scenarios.run_record import PlanSummary
from hostlib.connection import Connection
from hostlib.credentials import Credentials
from hostlib.errors import ControllerError
from hostlib.types import Directives
from topologies.fabric import Fabric

_LOG = logging.getLogger(__name__)

_LOOK_S = 0.02
"""So often the run loop asks whether there is a new Plan."""
_READS_PLANS_EVERY_S = 1.0
_RESTARTS_AFTER_S = 1.0


class RealSession:
    """Registers a run's jobs, follows their directives, and starts the controller again where it ends by itself.

    It is an async context manager, to be entered while the controller runs.

    Args:
        process: The controller.
        agents: The agents of jobs that the run registers; other jobs register themselves.
        network: Its hosts follow the jobs' directives.
        fabric: The fabric.
    """

    is_open = True
    """Jobs come and go without a controller: the host library tells it when there is one."""
    renewal_s = None
    """Agents renew their leases by themselves."""

    def __init__(
        self, process: ControllerProcess, agents: Mapping[str, JobAgent], network: RealNetwork, fabric: Fabric
    ) -> None:
        self._process = process
        self._agents = agents
        self._network = network
        self._fabric = fabric
        self._connection = Connection(process.address, credentials=Credentials())
        self._following: dict[str, asyncio.Task[None]] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._watching: list[asyncio.Task[None]] = []
        self._directives: dict[str, Directives] = {}
        self._summary: PlanSummary | None = None
        self._plan_in_force = (0, 0)
        self._number_of_plans = 0
        self._has_news = asyncio.Event()
        self._is_wanted = asyncio.Event()
        self._is_wanted.set()
        self._restarts = 0

    async def __aenter__(self) -> Self:
        self._watching = [asyncio.create_task(self._watch()), asyncio.create_task(self._read_plans())]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for task in (*self._watching, *self._following.values()):
            task.cancel()
        await asyncio.gather(*self._watching, *self._following.values(), *self._leaving, return_exceptions=True)
        await self._connection.close()

    async def move_clocks(self, _now_s: float) -> None:
        """Do nothing: clocks go by themselves."""

    async def update(
        self,
        now_s: float,
        arrived: Iterable[str],
        departed: Iterable[str],
        *,
        reports_ports: bool,  # noqa: ARG002 # the controller asks switches itself
    ) -> ControllerAnswer:
        """Begin to register and withdraw jobs; return what the controller has decided so far."""
        for name in arrived:
            if name in self._agents:
                self._following[name] = asyncio.create_task(self._follow(name))
        for name in departed:
            if name in self._following:
                self._leave(name)
        return ControllerAnswer(self._number_of_plans, now_s + _LOOK_S)

    async def apply_plan(self) -> PlanSummary | None:
        """Return the summary of the newest Plan; hosts follow it already."""
        return self._summary

    def delay_s(self, job: str, now_s: float) -> float:
        """See ``ControllerSession``."""
        return self._agents[job].delay_s(now_s) if job in self._agents else 0.0

    async def crash(self) -> None:
        """Kill the controller."""
        self._is_wanted.clear()
        await self._process.kill()

    async def restart(self, _now_s: float) -> None:
        """Begin to start a controller with an empty memory; the host library registers the jobs again by itself."""
        self._is_wanted.set()

    def _leave(self, name: str) -> None:
        self._following.pop(name).cancel()
        self._directives.pop(name, None)
        leaving = asyncio.create_task(_logged(f"job {name} cannot be withdrawn", self._agents[name].deregister()))
        self._leaving.add(leaving)

    async def _follow(self, name: str) -> None:
        """Register a job, and have its hosts follow its directives."""
        await _logged(f"job {name} goes on without the controller", self._registered_and_followed(name))

    async def _registered_and_followed(self, name: str) -> None:
        agent = self._agents[name]
        await agent.register()
        known: Directives | None = None
        while True:
            known = await agent.directives_after(known)
            self._directives[name] = known
            self._network.follow(self._directives)
            self._has_news.set()

    async def _read_plans(self) -> None:
        """Keep the summary of the Plan in force: jobs may have registered themselves."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_READS_PLANS_EVERY_S):
                    await self._has_news.wait()
            self._has_news.clear()
            with suppress(ControllerError):
                plan = await self._connection.plan()
                if plan.jobs and (self._restarts, plan.number) != self._plan_in_force:
                    self._plan_in_force = self._restarts, plan.number
                    self._summary = PlanSummary.from_controller(plan, self._fabric)
                    self._number_of_plans += 1

    async def _watch(self) -> None:
        """Start the controller again where it ends by itself."""
        while True:
            status = await self._process.wait()
            was_wanted = self._is_wanted.is_set()
            await self._is_wanted.wait()
            try:
                await self._process.restart()
                self._restarts += 1
                if was_wanted:
                    _LOG.warning("the controller has ended (status %s), and was started again", status)
            except (ControllerProcessError, TimeoutError) as error:  # it may have been ended while it started
                _LOG.warning("%s", error)
                await asyncio.sleep(_RESTARTS_AFTER_S)


async def _logged(what: str, work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except ControllerError as error:
        _LOG.warning("%s: %s", what, error)
