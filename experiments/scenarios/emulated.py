"""A scenario on the emulator: real packets, real registrations, a real controller, in virtual time.

The run owns the only clock. What happens to a job at t is told to the controller at t + ``reaction_delay_s``; until
then the fabric goes on under the rules it has. There the clock stands until the controller has answered that its plan
is made, written to every switch and delivered to every job. The emulator knows nothing of all this.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

from controller.config import ClockName, ControllerConfig, SwitchAddress
from controller.telemetry.window import WINDOW_US
from emulator.clock import Clock, VirtualClock
from emulator.fabric import PS_PER_S, wire_overhead
from emulator.p4runtime.pipeline import compiled_pipeline
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from experiments.scenarios.agent import JobAgent
from experiments.scenarios.calendar import (
    Arrival,
    ComputationEnd,
    Fault,
    HandOver,
    HoldEnd,
    PortsHeard,
    ProbeTurn,
    Recovery,
    Renewal,
    Sample,
)
from experiments.scenarios.connections import open_connections
from experiments.scenarios.controller_process import ControllerProcess
from experiments.scenarios.dialogue import Dialogue
from experiments.scenarios.faults import Faults
from experiments.scenarios.noted_plan import NotedPlan
from experiments.scenarios.probing import Probing, agents_of
from experiments.scenarios.record import Record, result_of
from experiments.scenarios.results import RunResult
from experiments.scenarios.stage import Progress, Stage
from experiments.scenarios.traffic import Traffic, default_scale
from hostlib.client import Client
from hostlib.clock import DrivenClock
from p4src import P4INFO, PROGRAM
from policies.policy_name import PolicyName
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing
from workloads.alone import run_alone
from workloads.jobs import training_jobs
from workloads.scenario import Scenario

LEASE_S = 30.0
RENEWAL_S = LEASE_S / 3


async def run_on_emulator(scenario: Scenario, policy: PolicyName, *, on_progress: Progress) -> RunResult:
    """Run a scenario to the departure of its last job, with a controller in a process of its own.

    Raises ControllerProcessError where the controller does not start, ValueError where the jobs do not fit.
    """
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
            hash=scenario.hash,
            steering=scenario.steering,
            seed=scenario.seed,
            num_levels=scenario.num_levels,
            reads_ports=scenario.reads_ports,
            lease_s=LEASE_S,
            clock=ClockName.DRIVEN,
            # Bytes are fewer by the scale, and more by headers.
            utilisation_window_us=WINDOW_US * wire_overhead(traffic.emulated.options) / traffic.scale,
            bytes_per_count=traffic.scale / wire_overhead(traffic.emulated.options),
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
        run = _Run(scenario, fabric, traffic, agents, dialogue, clock)
        record = await run.to_the_end(on_progress)
    return result_of(
        *(scenario, policy, routing, record),
        backend="emulator",
        scale=traffic.scale,
        packet_hops=traffic.emulated.packet_hops,
        events=scenario.events,
    )


class _Run:
    """The loop that lets the fabric, the jobs and the controller act on each other."""

    def __init__(
        self,
        scenario: Scenario,
        fabric: Fabric,
        traffic: Traffic,
        agents: Mapping[str, JobAgent],
        dialogue: Dialogue,
        clock: Clock,
    ) -> None:
        self._fabric = fabric
        self._traffic = traffic
        self._dialogue = dialogue
        self._clock = clock
        self._followed_plan: int | None = None
        self._timer_ps: int | None = None
        self._stage = Stage(
            scenario,
            [agent.job for agent in agents.values()],
            traffic,
            alone_s={name: agent.alone_s for name, agent in agents.items()},
            delay_s=lambda job, now_s: agents[job].delay_s(now_s),
        )
        self._probing = Probing(traffic.emulated, agents_of(fabric)) if scenario.probes else None
        self._faults = Faults(scenario, traffic.emulated, dialogue, self._stage.calendar, self._probing)

    async def to_the_end(self, on_progress: Progress) -> Record:
        """Run until every job has departed and the controller has been told."""
        await self._hand_over(self._faults.ports_down)  # the fabric forwards from the start
        stage = self._stage
        stage.begin()
        stage.calendar.add(round(RENEWAL_S * PS_PER_S), Renewal())
        if self._probing is not None:
            stage.calendar.add(self._traffic.now_ps, ProbeTurn())
        while not stage.is_over:
            if completions := await self._clock.run(stage.calendar.next_ps):
                stage.transfers_end(self._traffic.ended(completions))
            while event := stage.calendar.take_due(self._traffic.now_ps):
                match event:
                    case Arrival() | ComputationEnd() | HoldEnd():
                        stage.happen(event)
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
                            await self._hand_over(self._faults.ports_down)
                    case PortsHeard():
                        await self._hand_over(self._faults.ports_down)
                    case ProbeTurn():
                        assert self._probing is not None
                        await self._probe(self._probing)
                    case Sample():
                        stage.sample(on_progress)
        stage.record.ended_s = stage.now_s
        return stage.record

    async def _hand_over(self, ports_down: Sequence[tuple[str, int]] | None = None) -> None:
        """Tell the controller what has happened, jobs in the scenario's order, and follow what it decides.

        Which ports are down it hears from the switches, and acts on where that is said here too.
        """
        self._stage.hand_over_begins()
        if not self._dialogue.is_open:
            return  # it is told when it is back
        arrived, departed = self._stage.due()
        settled = await self._dialogue.tell(self._stage.now_s, arrived, departed, ports_down)
        if settled.plan_number != self._followed_plan:
            self._followed_plan = settled.plan_number
            directives = await self._dialogue.directives(settled.plan_number)
            self._traffic.follow(directives)
            if directives:
                noted = NotedPlan.from_controller(await self._dialogue.plan(), self._fabric)
                self._stage.record.plans.append((self._stage.now_s, noted))
        self._keep_timer(settled.next_timer_s)

    async def _probe(self, probing: Probing) -> None:
        """Let the hosts' agents have a turn, and follow what comes of what they say."""
        probing.receive()
        exchanges = probing.exchanges()
        if exchanges and self._dialogue.is_open:
            now_s = self._stage.now_s
            await self._dialogue.move_clocks(now_s)
            for agent, exchange in exchanges:
                agent.answered(await self._dialogue.exchange_probes(exchange), now_s)
            await self._hand_over()
        probing.send()
        self._stage.calendar.add(round(probing.next_turn_s * PS_PER_S), ProbeTurn())

    def _keep_timer(self, next_timer_s: float | None) -> None:
        """Let the controller have its turn when it asks for it; one such appointment at a time is enough."""
        now_ps = self._traffic.now_ps
        if self._timer_ps is not None and self._timer_ps <= now_ps:
            self._timer_ps = None
        if next_timer_s is not None:
            timer_ps = round(next_timer_s * PS_PER_S)
            if timer_ps > now_ps and (self._timer_ps is None or timer_ps < self._timer_ps):
                self._timer_ps = timer_ps
                self._stage.calendar.add(timer_ps, HandOver())

    async def _renew(self) -> None:
        if self._dialogue.is_open:
            await self._dialogue.move_clocks(self._stage.now_s)
        self._stage.calendar.add(self._traffic.now_ps + round(RENEWAL_S * PS_PER_S), Renewal())
