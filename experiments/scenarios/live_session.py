"""A run's session with a controller in a process of its own."""

import secrets
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self

from experiments.scenarios.controller_process import ControllerProcess
from experiments.scenarios.driven.client import DrivenTime
from experiments.scenarios.driven.clock import DrivenClock
from experiments.scenarios.emulated_network import EmulatedNetwork
from experiments.scenarios.interfaces import ControllerAnswer
from experiments.scenarios.job_agent import JobAgent
from experiments.scenarios.outages import Outages
from experiments.scenarios.run_record import PlanSummary
from hostlib.connection import Connection
from hostlib.credentials import Credentials
from hostlib.telemetry.probe_agent import ProbeAnswer, ProbeExchange

_RENEWALS_PER_LEASE = 3


class LiveSession:
    """Connects a run with its controller and with the agents of its jobs; virtual time stands still in every method.

    It is an async context manager, to be entered while the controller runs. The controller writes rules to the switches
    of ``network`` itself and, where it ``reads_ports``, they report their ports to it; it does not wait for switches
    without power. The hosts of ``network`` follow the jobs' directives. All methods raise what ``Connection``,
    ``DrivenTime`` and ``JobAgent`` raise.
    """

    def __init__(
        self,
        process: ControllerProcess,
        agents: Mapping[str, JobAgent],
        job_clock: DrivenClock,
        network: EmulatedNetwork,
        outages: Outages,
        *,
        reads_ports: bool,
        lease_s: float,
    ) -> None:
        self.is_open = True
        self.renewal_s = lease_s / _RENEWALS_PER_LEASE
        self._process = process
        self._agents = agents
        self._job_clock = job_clock
        self._network = network
        self._outages = outages
        self._reads_ports = reads_ports
        self._owner_token = secrets.token_hex(16)
        self._registered: dict[str, JobAgent] = {}
        self._plan_number = 0

    async def __aenter__(self) -> Self:
        self._connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._disconnect()

    async def move_clocks(self, now_s: float) -> None:
        """Move the controller's clock, then the jobs', which renews the leases that are due."""
        await self._settle(now_s)
        self._job_clock.advance_to(now_s)
        await self._wait_until_acknowledged()

    async def update(
        self, now_s: float, arrived: Iterable[str], departed: Iterable[str], *, reports_ports: bool
    ) -> ControllerAnswer:
        """See ``ControllerSession``."""
        await self.move_clocks(now_s)
        for name in arrived:
            self._registered[name] = self._agents[name]
            await self._agents[name].register()
        for name in departed:
            await self._registered.pop(name).deregister()
        answer = await self._settle(now_s, reports_ports=reports_ports and self._reads_ports)
        self._plan_number = answer.plan_number
        return answer

    async def apply_plan(self) -> PlanSummary | None:
        """Have the hosts follow the directives of the Plan in force; the controller has written its rules already."""
        directives = {name: await agent.directives(self._plan_number) for name, agent in self._registered.items()}
        self._network.follow(directives)
        if not directives:
            return None
        return PlanSummary.from_controller(await self._connection.plan(), self._network.fabric)

    def delay_s(self, job: str, now_s: float) -> float:
        """See ``ControllerSession``."""
        return self._agents[job].delay_s(now_s)

    async def exchange_probes(self, exchange: ProbeExchange) -> ProbeAnswer:
        """Report the probes that have reached a host; return which ones it is to send."""
        return await self._connection.exchange_probes(exchange)

    async def crash(self) -> None:
        """Kill the controller; return when every job has noticed."""
        self.is_open = False
        await self._process.kill()
        await self._disconnect()
        for agent in self._registered.values():
            await agent.wait_until_lost()

    async def restart(self, now_s: float) -> None:
        """Start a controller with an empty memory; return when every registered job has registered again."""
        await self._process.restart(now_s)
        self._connect()
        self._job_clock.advance_to(now_s)
        await self._wait_until_acknowledged()
        self.is_open = True

    async def _settle(self, now_s: float, *, reports_ports: bool = False) -> ControllerAnswer:
        ports_down = self._network.ports_down if reports_ports else None
        settled = await self._time.settle(now_s, sorted(self._outages.switches), ports_down)
        return ControllerAnswer(settled.plan_number, settled.next_timer_s)

    def _connect(self) -> None:
        self._connection = Connection(self._process.address, self._owner_token, credentials=Credentials())
        self._time = DrivenTime(self._process.address)

    async def _disconnect(self) -> None:
        self._time.close()
        await self._connection.close()

    async def _wait_until_acknowledged(self) -> None:
        for agent in self._registered.values():
            await agent.wait_until_acknowledged()
