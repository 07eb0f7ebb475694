"""The loop of a run: jobs, network and controller act on each other.

The run owns the only clock. The controller learns what happens to a job at t at t + ``reaction_delay_s``; until then
the network goes on under the rules it has. There the clock stops until the controller has planned and the Plan is
applied. The loop is the same for every network and every controller.
"""

from collections.abc import Mapping, Sequence

from experiments.scenarios.event_queue import (
    PS_PER_S,
    Arrival,
    ComputationEnd,
    ControllerUpdate,
    EventQueue,
    Fault,
    HoldEnd,
    LeaseRenewal,
    LoadSampling,
    PortReport,
    ProbeRound,
    Recovery,
)
from experiments.scenarios.interfaces import ControllerSession, NetworkBackend, Probes, Programs
from experiments.scenarios.job_driver import JobDriver, Progress
from experiments.scenarios.outages import Outages
from experiments.scenarios.run_record import RunRecord
from workloads.events import ElementState, ScenarioEvent
from workloads.jobs import TrainingJob
from workloads.scenario import Scenario


class RunLoop:
    """Runs the jobs of a scenario on a network, with a controller and, where hosts probe, their ``probes``.

    Where hosts are real, ``programs`` run the jobs' commands.

    ``isolated_s`` is how long an iteration of each job takes with the fabric to itself. The caller shares ``outages``
    with the session, which reports the ports that are down.
    """

    def __init__(
        self,
        scenario: Scenario,
        jobs: Sequence[TrainingJob],
        network: NetworkBackend,
        session: ControllerSession,
        outages: Outages,
        isolated_s: Mapping[str, float],
        probes: Probes | None = None,
        programs: Programs | None = None,
    ) -> None:
        self._network = network
        self._session = session
        self._probes = probes
        self._driver = JobDriver(scenario, jobs, network, isolated_s, session.delay_s, programs)
        self._queue = self._driver.queue
        self._faults = FaultHandler(scenario, outages, network, session, self._queue, probes)
        self._applied_plan: int | None = None
        self._timer_ps: int | None = None

    async def run_to_end(self, on_progress: Progress) -> RunRecord:
        """Run until every job has departed and the controller knows."""
        driver, queue, network = self._driver, self._queue, self._network
        await self._update_controller(reports_ports=True)  # the fabric forwards from the start
        driver.begin()
        self._schedule_renewal()
        if self._probes is not None:
            queue.add(network.now_ps, ProbeRound())
        while not driver.is_over:
            driver.take(await network.run(queue.next_ps))
            while event := queue.pop_due(network.now_ps):
                match event:
                    case Arrival() | ComputationEnd() | HoldEnd():
                        driver.handle(event)
                    case ControllerUpdate():
                        await self._update_controller()
                    case PortReport():
                        await self._update_controller(reports_ports=True)
                    case Fault(fault):
                        await self._faults.begin(fault)
                    case Recovery(fault):
                        await self._faults.recover(fault)
                        if fault.controller is not None:
                            self._applied_plan = None
                            await self._update_controller(reports_ports=True)
                    case LeaseRenewal():
                        if self._session.is_open:
                            await self._session.move_clocks(driver.now_s)
                        self._schedule_renewal()
                    case ProbeRound():
                        assert self._probes is not None
                        await self._probe(self._probes)
                    case LoadSampling():
                        driver.sample(on_progress)
        driver.record.ended_s = driver.now_s
        return driver.record

    async def _update_controller(self, *, reports_ports: bool = False) -> None:
        """Report what has happened, jobs in the scenario's order, and apply a new Plan."""
        self._driver.begin_update()
        if not self._session.is_open:
            return  # the controller learns it after its restart
        arrived, departed = self._driver.take_due()
        answer = await self._session.update(self._driver.now_s, arrived, departed, reports_ports=reports_ports)
        if answer.plan_number != self._applied_plan:
            self._applied_plan = answer.plan_number
            if (plan := await self._session.apply_plan()) is not None:
                self._driver.record.plans.append((self._driver.now_s, plan))
        self._schedule_timer(answer.next_timer_s)

    async def _probe(self, probes: Probes) -> None:
        """Exchange probes, and update the controller where there was something to report."""
        if await probes.exchange(self._driver.now_s):
            await self._update_controller()
        probes.send()
        self._queue.add(round(probes.next_round_s * PS_PER_S), ProbeRound())

    def _schedule_timer(self, next_timer_s: float | None) -> None:
        """Schedule the update that the controller asks for, unless an earlier one is in the queue."""
        now_ps = self._network.now_ps
        if self._timer_ps is not None and self._timer_ps <= now_ps:
            self._timer_ps = None
        if next_timer_s is not None:
            timer_ps = round(next_timer_s * PS_PER_S)
            if timer_ps > now_ps and (self._timer_ps is None or timer_ps < self._timer_ps):
                self._timer_ps = timer_ps
                self._queue.add(timer_ps, ControllerUpdate())

    def _schedule_renewal(self) -> None:
        if self._session.renewal_s is not None:
            self._queue.add(self._network.now_ps + round(self._session.renewal_s * PS_PER_S), LeaseRenewal())


class FaultHandler:
    """Takes cables, switches, hosts and the controller down and brings them back, as the scenario's events say.

    A cable is back at once, and so is a host, whose agent has an empty memory. A switch or a controller takes the
    scenario's ``recovery_s`` to serve again. A switch boots without links, comes up empty, and time stops until the
    controller has filled it; a controller has by then read all switches back and heard of all jobs. The controller acts
    on ports that go down or come up ``reaction_delay_s`` later.
    """

    def __init__(
        self,
        scenario: Scenario,
        outages: Outages,
        network: NetworkBackend,
        session: ControllerSession,
        queue: EventQueue,
        probes: Probes | None,
    ) -> None:
        self._outages = outages
        self._network = network
        self._session = session
        self._queue = queue
        self._probes = probes
        self._recovery_ps = round(scenario.recovery_s * PS_PER_S)
        self._reaction_ps = round(scenario.reaction_delay_s * PS_PER_S)
        for event in scenario.events:
            queue.add(round(event.at_s * PS_PER_S), Fault(event))

    async def begin(self, event: ScenarioEvent) -> None:
        """Begin an event whose time has come."""
        is_up = event.state is ElementState.UP
        if is_up and (event.switch is not None or event.controller is not None):
            self._queue.add(self._network.now_ps + self._recovery_ps, Recovery(event))
        elif event.controller is not None:
            await self._session.crash()
        else:
            await self._set_element(event, up=is_up)

    async def recover(self, event: ScenarioEvent) -> None:
        """Put the switch or controller that an event started into service."""
        if event.controller is not None:
            await self._session.restart(self._now_s)
        else:
            await self._set_element(event, up=True)

    async def _set_element(self, event: ScenarioEvent, *, up: bool) -> None:
        """Change an element now for switches and hosts, and later for the controller."""
        self._outages.set_element(event, up=up)
        self._network.apply(self._outages)
        self._queue.add(self._network.now_ps + self._reaction_ps, PortReport())
        if event.host is not None and self._probes is not None:
            self._probes.set_host(event.host, up=up)
        if event.switch is not None and self._session.is_open:
            # Time goes on once the controller has lost its connection to the switch, or has filled it again.
            await self._session.move_clocks(self._now_s)

    @property
    def _now_s(self) -> float:
        return self._network.now_ps / PS_PER_S
