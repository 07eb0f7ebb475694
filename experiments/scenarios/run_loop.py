"""The loop of a run: the network, the jobs and the controller act on each other in virtual time.

The run owns the only clock. What happens to a job at t is told to the controller at t + ``reaction_delay_s``; until
then the network goes on under the rules it has. There the clock stands until the controller has answered that its Plan
is made and carried out. The loop is the same for every network and every controller.
"""

from collections.abc import Mapping, Sequence

from experiments.scenarios.event_queue import (
    PS_PER_S,
    Arrival,
    ComputationEnd,
    ControllerUpdate,
    Fault,
    HoldEnd,
    PortsHeard,
    ProbeTurn,
    Recovery,
    Renewal,
    Sample,
)
from experiments.scenarios.faults import FaultHandler
from experiments.scenarios.interfaces import ControllerSession, NetworkBackend, Probes
from experiments.scenarios.job_driver import JobDriver, Progress
from experiments.scenarios.outages import Outages
from experiments.scenarios.run_record import RunRecord
from workloads.jobs import TrainingJob
from workloads.scenario import Scenario


class RunLoop:
    """Runs the jobs of a scenario on a network, with a controller and, where hosts probe, their ``probes``.

    ``alone_s`` is how long an iteration of each job takes with the fabric to itself. ``outages`` is shared with
    whoever tells the controller of ports.
    """

    def __init__(
        self,
        scenario: Scenario,
        jobs: Sequence[TrainingJob],
        network: NetworkBackend,
        session: ControllerSession,
        outages: Outages,
        alone_s: Mapping[str, float],
        probes: Probes | None = None,
    ) -> None:
        self._network = network
        self._session = session
        self._probes = probes
        self._driver = JobDriver(scenario, jobs, network, alone_s, session.delay_s)
        self._queue = self._driver.queue
        self._faults = FaultHandler(scenario, outages, network, session, self._queue, probes)
        self._followed_plan: int | None = None
        self._timer_ps: int | None = None

    async def to_the_end(self, on_progress: Progress) -> RunRecord:
        """Run until every job has departed and the controller has been told."""
        driver, queue, network = self._driver, self._queue, self._network
        await self._update_controller(hears_ports=True)  # the fabric forwards from the start
        driver.begin()
        self._renew_later()
        if self._probes is not None:
            queue.add(network.now_ps, ProbeTurn())
        while not driver.is_over:
            driver.transfers_end(await network.run(queue.next_ps))
            while event := queue.take_due(network.now_ps):
                match event:
                    case Arrival() | ComputationEnd() | HoldEnd():
                        driver.happen(event)
                    case ControllerUpdate():
                        await self._update_controller()
                    case PortsHeard():
                        await self._update_controller(hears_ports=True)
                    case Fault(fault):
                        await self._faults.happen(fault)
                    case Recovery(fault):
                        await self._faults.recover(fault)
                        if fault.controller is not None:
                            self._followed_plan = None
                            await self._update_controller(hears_ports=True)
                    case Renewal():
                        if self._session.is_open:
                            await self._session.move_clocks(driver.now_s)
                        self._renew_later()
                    case ProbeTurn():
                        assert self._probes is not None
                        await self._probe(self._probes)
                    case Sample():
                        driver.sample(on_progress)
        driver.record.ended_s = driver.now_s
        return driver.record

    async def _update_controller(self, *, hears_ports: bool = False) -> None:
        """Tell the controller what has happened, jobs in the scenario's order, and carry out what it decides."""
        self._driver.update_begins()
        if not self._session.is_open:
            return  # it is told when it is back
        arrived, departed = self._driver.due()
        answer = await self._session.tell(self._driver.now_s, arrived, departed, hears_ports=hears_ports)
        if answer.plan_number != self._followed_plan:
            self._followed_plan = answer.plan_number
            if (plan := await self._session.carry_out()) is not None:
                self._driver.record.plans.append((self._driver.now_s, plan))
        self._keep_timer(answer.next_timer_s)

    async def _probe(self, probes: Probes) -> None:
        """Let the hosts' agents have a turn, and carry out what comes of what they tell."""
        if await probes.exchange(self._driver.now_s):
            await self._update_controller()
        probes.send()
        self._queue.add(round(probes.next_turn_s * PS_PER_S), ProbeTurn())

    def _keep_timer(self, next_timer_s: float | None) -> None:
        """Update the controller when it asks for it; one such update in the queue at a time is enough."""
        now_ps = self._network.now_ps
        if self._timer_ps is not None and self._timer_ps <= now_ps:
            self._timer_ps = None
        if next_timer_s is not None:
            timer_ps = round(next_timer_s * PS_PER_S)
            if timer_ps > now_ps and (self._timer_ps is None or timer_ps < self._timer_ps):
                self._timer_ps = timer_ps
                self._queue.add(timer_ps, ControllerUpdate())

    def _renew_later(self) -> None:
        if self._session.renewal_s is not None:
            self._queue.add(self._network.now_ps + round(self._session.renewal_s * PS_PER_S), Renewal())
