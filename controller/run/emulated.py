"""A scenario on the emulator: real packets, real registrations, a real controller, in virtual time.

The run owns the only clock. What happens to a job at t is told to the controller at t + ``reaction_delay_s``; until
then the fabric goes on under the rules it has. There the clock stands until the controller has answered that its plan
is made, written to every switch and delivered to every job. The emulator knows nothing of all this.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack

from controller.config import ClockName, ControllerConfig, SwitchAddress
from controller.policy.policy_name import PolicyName
from controller.run.agent import JobAgent
from controller.run.calendar import (
    Arrival,
    Calendar,
    ComputationEnd,
    Fault,
    HandOver,
    HoldEnd,
    Recovery,
    Renewal,
    Sample,
)
from controller.run.carried import require_carried_events
from controller.run.connections import open_connections
from controller.run.controller_process import ControllerProcess
from controller.run.dialogue import Dialogue
from controller.run.faults import Faults
from controller.run.record import Record, result_of
from controller.run.results import RunResult
from controller.run.traffic import Traffic, default_scale
from emulator.clock import Clock, VirtualClock
from emulator.fabric import PS_PER_S
from emulator.p4runtime.pipeline import compiled_pipeline
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from hostlib.client import Client
from hostlib.clock import DrivenClock
from p4src import P4INFO, PROGRAM
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.alone import run_alone
from workloads.jitter import ComputeJitter
from workloads.jobs import training_jobs
from workloads.replay import Action, HoldIteration, JobReplay, StartComputation, StartTransfer
from workloads.scenario import Scenario

Progress = Callable[[float, float], None]
"""Told the virtual time and when the run is expected to end, both in seconds."""

LEASE_S = 30.0
RENEWAL_S = LEASE_S / 3
SAMPLES = 400
_SHORTEST_SAMPLE_PS = PS_PER_S // 1_000_000


async def run_on_emulator(scenario: Scenario, policy: PolicyName, *, on_progress: Progress) -> RunResult:
    """Run a scenario to the departure of its last job, with a controller in a process of its own.

    Raises ControllerProcessError where the controller does not start, ValueError where the jobs do not fit and for
    events that the emulator does not carry.
    """
    require_carried_events(scenario.events)
    fabric = scenario.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, scenario.seed))
    jobs = training_jobs(scenario, fabric)
    connections = open_connections(jobs, fabric)
    traffic = Traffic(routing, jobs, connections, scenario.scale or default_scale(fabric))
    exclusive = asyncio.Lock()
    async with AsyncExitStack() as stack:
        program = compiled_pipeline(P4INFO.read_text(), PROGRAM.read_bytes())
        service = P4RuntimeService(traffic.emulated.switches.values(), program, exclusive, traffic.emulated.packet_out)
        port = await stack.enter_async_context(serve(service))
        config = ControllerConfig(
            listen="127.0.0.1:0",
            topology=scenario.topology,
            switches=tuple(
                SwitchAddress(name=switch.name, address=f"127.0.0.1:{port}", device_id=switch.device_id)
                for switch in traffic.emulated.switches.values()
            ),
            hash_seed=scenario.seed,
            policy=policy,
            steering=scenario.steering,
            seed=scenario.seed,
            lease_s=LEASE_S,
            clock=ClockName.DRIVEN,
        )
        process = await stack.enter_async_context(ControllerProcess(config))
        job_clock = DrivenClock()
        client = await stack.enter_async_context(Client(process.address, clock=job_clock))
        agents = {
            job.name: JobAgent(
                client, job, connections, scenario.steering, alone_s=run_alone(job, routing).iteration_time_s
            )
            for job in jobs
        }
        for agent in agents.values():
            await stack.enter_async_context(agent)
        dialogue = await stack.enter_async_context(Dialogue(process, agents, job_clock))
        clock = VirtualClock(traffic.emulated, exclusive, service.deliver)
        run = _Run(scenario, traffic, agents, dialogue, clock)
        await run.to_the_end(on_progress)
    return result_of(
        *(scenario, policy, routing, run.record),
        backend="emulator",
        scale=traffic.scale,
        packet_hops=traffic.emulated.packet_hops,
    )


class _Run:
    """The loop that lets the fabric, the jobs and the controller act on each other."""

    def __init__(
        self,
        scenario: Scenario,
        traffic: Traffic,
        agents: Mapping[str, JobAgent],
        dialogue: Dialogue,
        clock: Clock,
    ) -> None:
        self._traffic = traffic
        self._dialogue = dialogue
        self._clock = clock
        self._reaction_ps = round(scenario.reaction_delay_s * PS_PER_S)
        self._replays = {
            name: JobReplay(agent.job, agent.delay_s, ComputeJitter.of(scenario, agent.job))
            for name, agent in agents.items()
        }
        self._arrived_ps: dict[str, int] = {}
        self._departed_ps: dict[str, int] = {}
        self._hand_over_ps: int | None = None
        self._followed_plan: int | None = None
        self._timer_ps: int | None = None
        self._calendar = Calendar()
        self._faults = Faults(scenario, traffic.emulated, dialogue, self._calendar)
        self._expected_end_s = max(_expected_end_s(agent) for agent in agents.values())
        self.record = Record(list(self._replays.values()))

    async def to_the_end(self, on_progress: Progress) -> None:
        """Run until every job has departed and the controller has been told."""
        await self._hand_over()  # the fabric forwards from the start
        for replay in self._replays.values():
            arrival_ps = round(replay.job.specification.arrival_s * PS_PER_S)
            self._calendar.add(arrival_ps, Arrival(replay.job.name))
        self._calendar.add(self._sample_ps, Sample())
        self._calendar.add(round(RENEWAL_S * PS_PER_S), Renewal())
        while self._departed_ps or not all(replay.departed for replay in self._replays.values()):
            if completions := await self._clock.run(self._calendar.next_ps):
                for end in self._traffic.ended(completions):
                    if end.tardiness_s is not None:
                        self.record.tardiness.setdefault((end.job, end.group), []).append(
                            (self._now_s, end.tardiness_s)
                        )
                    self._act(end.job, self._replays[end.job].transfer_finished(end.task, self._now_s))
            while event := self._calendar.take_due(self._now_ps):
                match event:
                    case Arrival(job):
                        self._arrived_ps[job] = self._now_ps
                        self._tell_later()
                        replay = self._replays[job]
                        self._act(job, replay.start(max(self._now_s, replay.job.specification.arrival_s)))
                    case ComputationEnd(job, task):
                        self._act(job, self._replays[job].computation_finished(task, self._now_s))
                    case HoldEnd(job):
                        self._act(job, self._replays[job].begin_iteration(self._now_s))
                    case HandOver():
                        await self._hand_over()
                    case Renewal():
                        await self._renew()
                    case Fault(fault):
                        await self._faults.happen(fault)
                    case Recovery(fault):
                        await self._faults.recover(fault)
                        if fault.controller is not None:
                            self._followed_plan = None
                            await self._hand_over()
                    case Sample():
                        self.record.loads.append(self._traffic.sample_loads())
                        self._calendar.add(self._now_ps + self._sample_ps, Sample())
                        on_progress(self._now_s, max(self._now_s, self._expected_end_s))
        self.record.ended_s = self._now_s

    def _act(self, job: str, actions: Sequence[Action]) -> None:
        """Start what a replay asks for, and note when it has departed."""
        for action in actions:
            match action:
                case StartComputation(task, _, ends_at_s):
                    self._calendar.add(max(self._now_ps, round(ends_at_s * PS_PER_S)), ComputationEnd(job, task))
                case HoldIteration(until_s):
                    self._calendar.add(max(self._now_ps, round(until_s * PS_PER_S)), HoldEnd(job))
                case StartTransfer():
                    self._traffic.start(job, action)
        if self._replays[job].departed:
            self._departed_ps[job] = self._now_ps
            self._tell_later()

    def _tell_later(self) -> None:
        """One hand-over is for all that happens at one time."""
        if self._hand_over_ps != self._now_ps + self._reaction_ps:
            self._hand_over_ps = self._now_ps + self._reaction_ps
            self._calendar.add(self._hand_over_ps, HandOver())

    async def _hand_over(self) -> None:
        """Tell the controller what has happened, jobs in the scenario's order, and follow what it decides."""
        if self._hand_over_ps == self._now_ps:
            self._hand_over_ps = None
        if not self._dialogue.is_open:
            return  # it is told when it is back
        due_ps = self._now_ps - self._reaction_ps
        arrived, departed = self._due(self._arrived_ps, due_ps), self._due(self._departed_ps, due_ps)
        settled = await self._dialogue.tell(self._now_s, arrived, departed)
        if settled.plan_number != self._followed_plan:
            self._followed_plan = settled.plan_number
            directives = await self._dialogue.directives(settled.plan_number)
            self._traffic.follow(directives)
            if directives:
                self.record.plans.append((self._now_s, await self._dialogue.plan()))
        self._keep_timer(settled.next_timer_s)

    def _due(self, happened_ps: dict[str, int], until_ps: int) -> list[str]:
        """Take out the jobs to which something happened up to a time, in the scenario's order."""
        names = [name for name in self._replays if happened_ps.get(name, until_ps + 1) <= until_ps]
        for name in names:
            del happened_ps[name]
        return names

    def _keep_timer(self, next_timer_s: float | None) -> None:
        """Let the controller have its turn when it asks for it; one such appointment at a time is enough."""
        if self._timer_ps is not None and self._timer_ps <= self._now_ps:
            self._timer_ps = None
        if next_timer_s is not None:
            timer_ps = round(next_timer_s * PS_PER_S)
            if timer_ps > self._now_ps and (self._timer_ps is None or timer_ps < self._timer_ps):
                self._timer_ps = timer_ps
                self._calendar.add(timer_ps, HandOver())

    async def _renew(self) -> None:
        if self._dialogue.is_open:
            await self._dialogue.move_clocks(self._now_s)
        self._calendar.add(self._now_ps + round(RENEWAL_S * PS_PER_S), Renewal())

    @property
    def _sample_ps(self) -> int:
        return max(_SHORTEST_SAMPLE_PS, round(self._expected_end_s / SAMPLES * PS_PER_S))

    @property
    def _now_ps(self) -> int:
        return self._traffic.emulated.now_ps

    @property
    def _now_s(self) -> float:
        return self._now_ps / PS_PER_S


def _expected_end_s(agent: JobAgent) -> float:
    specification = agent.job.specification
    if specification.duration_s is not None:
        return specification.arrival_s + specification.duration_s
    assert specification.iterations is not None
    return specification.arrival_s + specification.iterations * agent.alone_s
