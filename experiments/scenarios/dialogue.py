"""What a run says to its controller and is answered, while virtual time stands still."""

import secrets
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self

from experiments.scenarios.agent import JobAgent
from experiments.scenarios.controller_process import ControllerProcess
from hostlib.clock import DrivenClock
from hostlib.connection import Connection
from hostlib.telemetry.agent import ProbeAnswer, ProbeExchange
from hostlib.types import Directives, PlanInForce, Settled


class Dialogue:
    """The controller of a run, and the agents of its jobs; an async context manager while the controller runs.

    Between ``lose`` and ``restore`` there is no controller: ``is_open`` is False, and nothing else may be called.
    ``switches_down`` names the switches without power, for which the controller is not to wait. All methods raise what
    ``Connection`` and ``JobAgent`` raise.
    """

    def __init__(self, process: ControllerProcess, agents: Mapping[str, JobAgent], job_clock: DrivenClock) -> None:
        self.switches_down: set[str] = set()
        self.is_open = True
        self._process = process
        self._agents = agents
        self._job_clock = job_clock
        self._owner_token = secrets.token_hex(16)
        self._registered: dict[str, JobAgent] = {}

    async def __aenter__(self) -> Self:
        self._connection = Connection(self._process.address, self._owner_token)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._connection.close()

    async def move_clocks(self, now_s: float) -> None:
        """The controller's clock, then the jobs', which renew the leases that are due."""
        await self._settle(now_s)
        self._job_clock.advance_to(now_s)
        await self._all_acknowledged()

    async def tell(
        self,
        now_s: float,
        arrived: Iterable[str],
        departed: Iterable[str],
        ports_down: Iterable[tuple[str, int]] | None = None,
    ) -> Settled:
        """Register the jobs that have arrived and withdraw those that have departed, and have a plan for the rest.

        Where it is said which ports are down, the controller is to have heard so from the switches, and to act on it.
        """
        await self.move_clocks(now_s)
        for name in arrived:
            self._registered[name] = self._agents[name]
            await self._agents[name].register()
        for name in departed:
            await self._registered.pop(name).deregister()
        return await self._settle(now_s, ports_down)

    async def exchange_probes(self, exchange: ProbeExchange) -> ProbeAnswer:
        """Tell what probes have met at a host; returns which ones it is to send."""
        return await self._connection.exchange_probes(exchange)

    async def directives(self, plan_number: int) -> dict[str, Directives]:
        """What every registered job is told by a plan."""
        return {name: await agent.directives(plan_number) for name, agent in self._registered.items()}

    async def plan(self) -> PlanInForce:
        """The plan in force, with its reasons."""
        return await self._connection.plan()

    async def lose(self) -> None:
        """Kill the controller; returns when every job has noticed."""
        self.is_open = False
        await self._process.kill()
        await self._connection.close()
        for agent in self._registered.values():
            await agent.lost()

    async def restore(self, now_s: float) -> None:
        """Start a controller that knows nothing; returns when every registered job has told it everything again."""
        await self._process.restart(now_s)
        self._connection = Connection(self._process.address, self._owner_token)
        self._job_clock.advance_to(now_s)
        await self._all_acknowledged()
        self.is_open = True

    async def _settle(self, now_s: float, ports_down: Iterable[tuple[str, int]] | None = None) -> Settled:
        return await self._connection.settle(now_s, sorted(self.switches_down), ports_down=ports_down)

    async def _all_acknowledged(self) -> None:
        for agent in self._registered.values():
            await agent.acknowledged()
