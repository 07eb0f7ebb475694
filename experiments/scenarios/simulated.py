"""A scenario on the simulator: fluid flows, and decisions made in the same process by the same code as live.

What happens to a job at t is decided on at t + ``reaction_delay_s``; until then flows go on as they did. Between two
events nothing happens and nothing is computed.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from controller.links.damping import Damping
from controller.links.link_health import LinkHealth
from experiments.scenarios.calendar import (
    PS_PER_S,
    Arrival,
    ComputationEnd,
    Fault,
    HandOver,
    HoldEnd,
    PortsHeard,
    Recovery,
    Sample,
)
from experiments.scenarios.connections import open_connections
from experiments.scenarios.fluid_traffic import FluidTraffic
from experiments.scenarios.in_process import InProcessController
from experiments.scenarios.noted_plan import NotedPlan
from experiments.scenarios.outages import Outages
from experiments.scenarios.record import Record, result_of
from experiments.scenarios.results import RunResult
from experiments.scenarios.stage import Progress, Stage
from hostlib.start_shift import StartShift
from policies.catalogue import decide
from policies.enforcement import Enforcement, rate_control
from policies.policy_name import PolicyName
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.alone import run_alone
from workloads.events import ElementState, ScenarioEvent
from workloads.jobs import TrainingJob, training_jobs
from workloads.scenario import Scenario
from workloads.task_graph import TaskGraph


def run_on_simulator(
    scenario: Scenario,
    policy: PolicyName,
    enforcement: Enforcement = Enforcement.LEVELS,
    *,
    on_progress: Progress,
    told_as: Callable[[TaskGraph], TaskGraph] | None = None,
) -> RunResult:
    """Run a scenario to the departure of its last job.

    ``told_as`` makes of a job's task graph the one that is run and registered, where its flow groups are to be told
    otherwise than they are (``workloads.stages``); the result has the groups as told.

    Raises ValueError where the jobs do not fit or the policy cannot decide, RegistrationError where the controller
    would refuse a job.
    """
    run = _Run(scenario, policy, enforcement, told_as)
    record = run.to_the_end(on_progress)
    return result_of(
        *(scenario, policy, run.routing, record),
        backend="simulator",
        enforcement=enforcement,
        events=scenario.events,
    )


class _Run:
    """The loop that lets the jobs, their flows and the controller act on each other."""

    def __init__(
        self,
        scenario: Scenario,
        policy: PolicyName,
        enforcement: Enforcement,
        told_as: Callable[[TaskGraph], TaskGraph] | None,
    ) -> None:
        fabric = scenario.topology.build()
        self.routing = Routing(fabric, hash_multipliers(fabric.switches, scenario.seed))
        jobs = training_jobs(scenario, fabric)
        if told_as is not None:
            jobs = tuple(replace(job, graph=told_as(job.graph)) for job in jobs)
        connections = open_connections(jobs, fabric)
        self._jobs = {job.name: job for job in jobs}
        self._alone_s = {job.name: run_alone(job, self.routing).iteration_time_s for job in jobs}
        self._shifts = {job.name: StartShift(job.specification.arrival_s) for job in jobs}
        self._time_shift_s: dict[str, float | None] = {}
        control = rate_control(policy, enforcement)
        may_fail = bool(scenario.events)
        self._traffic = FluidTraffic(
            self.routing, jobs, connections, policy, control, scenario.steering, may_fail=may_fail
        )
        self._fabric, self._may_fail = fabric, may_fail
        self._in_process = partial(
            InProcessController,
            *(self.routing, connections, partial(decide, policy), scenario.steering, scenario.seed),
            scenario.num_levels,
        )
        self._controller: InProcessController | None = self._new_controller()
        self._registered: dict[str, TrainingJob] = {}
        self._outages = Outages(fabric)
        self._recovery_ps = round(scenario.recovery_s * PS_PER_S)
        self._reaction_ps = round(scenario.reaction_delay_s * PS_PER_S)
        self._release_ps: int | None = None
        self._stage = Stage(scenario, jobs, self._traffic, self._alone_s, self._delay_s)
        for event in scenario.events:
            self._stage.calendar.add(round(event.at_s * PS_PER_S), Fault(event))

    def _new_controller(self) -> InProcessController:
        """One that knows of no job, nor of a link that has flapped."""
        return self._in_process(links=LinkHealth(self._fabric, Damping()) if self._may_fail else None)

    def to_the_end(self, on_progress: Progress) -> Record:
        """Run until every job has departed and the controller has decided without it."""
        stage = self._stage
        stage.begin()
        while not stage.is_over:
            stage.transfers_end(self._traffic.run(stage.calendar.next_ps))
            while event := stage.calendar.take_due(self._traffic.now_ps):
                match event:
                    case Arrival() | ComputationEnd() | HoldEnd():
                        stage.happen(event)
                    case HandOver():
                        self._hand_over()
                    case Fault(fault):
                        self._fail(fault)
                    case Recovery(fault):
                        self._recover(fault)
                    case PortsHeard():
                        self._hand_over(hears_ports=True)
                    case Sample():
                        stage.sample(on_progress)
        stage.record.ended_s = stage.now_s
        return stage.record

    def _hand_over(self, *, hears_ports: bool = False) -> None:
        """Tell the controller what has happened, of ports too where it is time to, and follow what it decides."""
        self._stage.hand_over_begins()
        if self._controller is None:
            return  # it is told when it is back
        arrived, departed = self._stage.due()
        for job in arrived:
            self._registered[job] = self._jobs[job]
            self._controller.register(self._jobs[job])
        for job in departed:
            del self._registered[job]
            self._controller.deregister(job)
        if hears_ports and self._controller.links is not None:
            self._controller.links.note(self._outages.port_states, self._stage.now_s)
        decision = self._controller.decide(self._stage.now_s)
        self._time_shift_s = {job.name: job.time_shift_s for job in decision.plan.jobs}
        self._traffic.follow(decision, self._controller.routing)
        if decision.plan.jobs:
            self._stage.record.plans.append((self._stage.now_s, NotedPlan.of(decision)))
        self._keep_release(self._controller)

    def _keep_release(self, controller: InProcessController) -> None:
        """Let the controller use a link that it holds for flapping once it holds it no longer."""
        release_s = None if controller.links is None else controller.links.next_release_s(self._stage.now_s)
        release_ps = None if release_s is None else round(release_s * PS_PER_S)
        if release_ps is not None and release_ps != self._release_ps:
            self._stage.calendar.add(release_ps, HandOver())
        self._release_ps = release_ps

    def _fail(self, event: ScenarioEvent) -> None:
        """Something goes down, or comes up; a switch and a controller need a while then until they serve."""
        recovers = event.switch is not None or event.controller is not None
        if recovers and event.state is ElementState.UP:
            self._stage.calendar.add(self._traffic.now_ps + self._recovery_ps, Recovery(event))
        elif event.controller is not None:
            self._controller = None
        else:
            self._outages.happen(event)
            self._links_change()

    def _links_change(self) -> None:
        """Switches and hosts notice now, the controller when it hears of it."""
        self._traffic.lose(self._outages.links)
        self._stage.calendar.add(self._traffic.now_ps + self._reaction_ps, PortsHeard())

    def _recover(self, event: ScenarioEvent) -> None:
        """A switch serves again, filled; or a controller, which knows nothing until every job has registered anew."""
        if event.switch is not None:
            self._outages.recover(event.switch)
            self._links_change()
        else:
            self._controller = self._new_controller()
            for job in self._registered.values():
                self._controller.register(job)
            self._hand_over(hears_ports=True)

    def _delay_s(self, job: str, now_s: float) -> float:
        """Seconds for which the Plan in force has a job hold an iteration that could begin now."""
        return self._shifts[job].delay_s(now_s, self._time_shift_s.get(job), self._alone_s[job])
