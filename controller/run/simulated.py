"""A scenario on the simulator: fluid flows, and decisions made in the same process by the same code as live.

What happens to a job at t is decided on at t + ``reaction_delay_s``; until then flows go on as they did. Between two
events nothing happens and nothing is computed.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from controller.policy.catalogue import decide
from controller.policy.enforcement import Enforcement, rate_control
from controller.policy.policy_name import PolicyName
from controller.run.calendar import PS_PER_S, Arrival, ComputationEnd, Fault, HandOver, HoldEnd, Recovery, Sample
from controller.run.connections import open_connections
from controller.run.fluid_traffic import FluidTraffic
from controller.run.in_process import InProcessController
from controller.run.noted_plan import NotedPlan
from controller.run.outages import Outages
from controller.run.record import Record, result_of
from controller.run.results import RunResult
from controller.run.stage import Progress, Stage
from hostlib.start_shift import StartShift
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.alone import run_alone
from workloads.jobs import TrainingJob, training_jobs
from workloads.scenario import ElementState, Scenario, ScenarioEvent
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

    Raises ValueError where the jobs do not fit or the policy cannot decide,
    RegistrationError where the controller would refuse a job.
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
        fails = bool(scenario.events)
        self._traffic = FluidTraffic(
            self.routing, jobs, connections, policy, control, scenario.steering, may_fail=fails
        )
        self._new_controller = partial(
            InProcessController,
            *(self.routing, connections, partial(decide, policy), scenario.steering, scenario.seed),
            scenario.num_levels,
        )
        self._controller: InProcessController | None = self._new_controller()
        self._registered: dict[str, TrainingJob] = {}
        self._outages = Outages(fabric)
        self._recovery_ps = round(scenario.recovery_s * PS_PER_S)
        self._stage = Stage(scenario, jobs, self._traffic, self._alone_s, self._delay_s)
        for event in scenario.events:
            self._stage.calendar.add(round(event.at_s * PS_PER_S), Fault(event))

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
                    case Sample():
                        stage.sample(on_progress)
        stage.record.ended_s = stage.now_s
        return stage.record

    def _hand_over(self) -> None:
        """Tell the controller what has happened, and follow what it decides."""
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
        decision = self._controller.decide(self._stage.now_s)
        self._time_shift_s = {job.name: job.time_shift_s for job in decision.plan.jobs}
        self._traffic.follow(decision)
        if decision.plan.jobs:
            self._stage.record.plans.append((self._stage.now_s, NotedPlan.of(decision)))

    def _fail(self, event: ScenarioEvent) -> None:
        """Something goes down, or comes up; all but cables need a while then until they serve."""
        if event.link is None and event.state is ElementState.UP:
            self._stage.calendar.add(self._traffic.now_ps + self._recovery_ps, Recovery(event))
        elif event.controller is not None:
            self._controller = None
        else:
            self._outages.happen(event)
            self._traffic.lose(self._outages.links)

    def _recover(self, event: ScenarioEvent) -> None:
        """A switch serves again, filled; or a controller, which knows nothing until every job has registered anew."""
        if event.switch is not None:
            self._outages.recover(event.switch)
            self._traffic.lose(self._outages.links)
        else:
            self._controller = self._new_controller()
            for job in self._registered.values():
                self._controller.register(job)
            self._hand_over()

    def _delay_s(self, job: str, now_s: float) -> float:
        """Seconds for which the Plan in force has a job hold an iteration that could begin now."""
        return self._shifts[job].delay_s(now_s, self._time_shift_s.get(job), self._alone_s[job])
