"""Runs a scenario on real hosts: real programs and connections, a real controller, and switches that forward."""

import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from controller.config import ControllerConfig
from experiments.scenarios.controller_process import ControllerProcess
from experiments.scenarios.interfaces import Programs
from experiments.scenarios.job_agent import JobAgent
from experiments.scenarios.job_driver import Progress
from experiments.scenarios.outages import Outages
from experiments.scenarios.real_hosts.emulator_process import EmulatorProcess
from experiments.scenarios.real_hosts.host_agents import HostAgents
from experiments.scenarios.real_hosts.laboratory import Laboratory
from experiments.scenarios.real_hosts.link_counters import LinkCounters
from experiments.scenarios.real_hosts.openvswitch_switches import OpenVSwitchSwitches
from experiments.scenarios.real_hosts.programs import CommandPrograms
from experiments.scenarios.real_hosts.rank_processes import RankProcesses
from experiments.scenarios.real_hosts.ranks import Ranks
from experiments.scenarios.real_hosts.real_flows import connections_of, real_flows
from experiments.scenarios.real_hosts.real_network import RealNetwork
from experiments.scenarios.real_hosts.real_session import RealSession
from experiments.scenarios.real_hosts.run_folder import run_folder
from experiments.scenarios.real_hosts.scaled_fabric import scaled_topology
from experiments.scenarios.real_hosts.switches import CountersAwayError, Switches, SwitchPlaces
from experiments.scenarios.real_hosts.torch_programs import TorchPrograms, torch_jobs
from experiments.scenarios.results import RunResult
from experiments.scenarios.run_loop import RunLoop
from experiments.scenarios.run_record import result_of
from experiments.scenarios.switch_kind import SwitchKind
from hostlib.client import Client
from hostlib.credentials import Credentials
from policies.policy import Policy
from policies.registry import as_policy, source_of
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.namespaces.host_network import NetworkError
from topologies.routing import Routing
from workloads.isolated_run import run_isolated
from workloads.jobs import training_jobs
from workloads.scenario import ProfileSource, Scenario
from workloads.workload import CommandWorkload, TorchWorkload

_LOG = logging.getLogger(__name__)

_SAMPLE_S = 0.25


class RealHosts:
    """The hosts and switches of a scenario, on which it is run under one policy after the other; an async context.

    PyTorch imports while the switches start. The ranks of PyTorch jobs find each other in the first run; with
    ``keeps_ranks`` they go on in the others, where only the controller is another one.

    Args:
        scenario: The scenario.
        laboratory: The hosts.
        fabric: The scenario's fabric at the rates that the laboratory's links have.
        scale: What its rates have been divided by; bytes are too.
        backend: Its name, for results.
        switch: What the switches are.
        is_real_time: Whether the emulator is to ask for real-time priority.
        keeps_ranks: Whether there is more than one run.
    """

    def __init__(
        self,
        scenario: Scenario,
        laboratory: Laboratory,
        fabric: Fabric,
        scale: float,
        *,
        backend: str,
        switch: SwitchKind = SwitchKind.EMULATOR,
        is_real_time: bool,
        keeps_ranks: bool = False,
    ) -> None:
        self._scenario = scenario
        self._laboratory = laboratory
        self._fabric = fabric
        self._scale = scale
        self._backend = backend
        self._unscaled = scenario.topology.build()
        self._routing = Routing(self._unscaled, hash_multipliers(self._unscaled.switches, scenario.seed))
        self._jobs = training_jobs(scenario, self._unscaled)
        self._isolated = {job.name: run_isolated(job, self._routing) for job in self._jobs}
        self._isolated_s = {name: alone.iteration_time_s for name, alone in self._isolated.items()}
        self._switches: Switches = (
            EmulatorProcess(fabric, laboratory, is_real_time=is_real_time, on_loss=self._lost)
            if switch is SwitchKind.EMULATOR
            else OpenVSwitchSwitches(fabric, laboratory, on_loss=self._lost)
        )
        hosts = [host for job in torch_jobs(self._jobs) for host in job.hosts]
        self._processes = RankProcesses(laboratory, hosts)
        self._torch = TorchPrograms(
            *(self._jobs, laboratory, self._processes), scale=scale, seed=scenario.seed, is_kept=keeps_ranks
        )
        self._is_ready = False
        self._loss: str | None = None
        self._network: RealNetwork | None = None
        self._stack = AsyncExitStack()
        self._folder: Path

    async def __aenter__(self) -> Self:
        """Start the switches. Raises SwitchesError where they do not start."""
        async with AsyncExitStack() as stack:
            self._folder = stack.enter_context(run_folder())
            await stack.enter_async_context(self._processes)
            await stack.enter_async_context(self._switches)
            await stack.enter_async_context(self._torch)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, traceback)

    async def run(self, policy: Policy | str, on_progress: Progress) -> RunResult:
        """Run the scenario to the departure of its last job.

        Args:
            policy: The policy, which the controller loads itself.
            on_progress: Called with the time that has passed and the expected end.

        Raises:
            ControllerProcessError: The controller does not start.
            SwitchesError: The switches have ended for good.
            RanksError: Ranks do not start, or do not reach each other.
            ValueError: The controller cannot load the policy, or the window of measurement is empty.
        """
        policy = as_policy(policy)
        scenario = self._scenario
        played = [
            job for job in self._jobs if not isinstance(job.specification.workload, CommandWorkload | TorchWorkload)
        ]
        flows = real_flows(played, self._routing)
        network = RealNetwork(played, flows, self._scale)
        network.switches = self._switches
        self._network = network
        if self._loss is not None:
            network.lost(self._loss)
        self._torch.happened = network.happened
        async with AsyncExitStack() as stack:
            places = self._switches.places()
            config = _config(scenario, policy, places, f"unix:{self._folder / 'controller.sock'}", self._scale)
            process = await stack.enter_async_context(
                ControllerProcess(config, started_by=self._laboratory.outside, folder=self._folder)
            )
            network.ranks = ranks = await stack.enter_async_context(
                Ranks(
                    *(self._laboratory, flows, {job.name: job.hosts for job in played}, self._folder),
                    on_arrival=network.arrived,
                    on_failure=network.failed,
                )
            )
            await ranks.connect()
            if not self._is_ready:
                await self._torch.get_ready(process.address)
                self._is_ready = True
            client = await stack.enter_async_context(Client(process.address, credentials=Credentials()))
            agents = {
                job.name: JobAgent(
                    *(client, job, connections_of(flows), scenario.steering),
                    isolated_s=self._isolated_s[job.name],
                    scale=self._scale,
                )
                for job in self._jobs
                if job in played or job.specification.profile is ProfileSource.MEASURED
            }
            for agent in agents.values():
                await stack.enter_async_context(agent)
            if scenario.probes:
                await stack.enter_async_context(
                    HostAgents(self._fabric, self._laboratory, process.address, self._folder)
                )
            session = await stack.enter_async_context(RealSession(process, agents, network, self._unscaled))
            commands = await stack.enter_async_context(
                CommandPrograms(self._jobs, self._laboratory, self._unscaled, process.address, network.happened)
            )
            counted = await stack.enter_async_context(self._switches.counters())
            counters = await stack.enter_async_context(LinkCounters(self._fabric, self._laboratory, counted))
            loop = RunLoop(
                *(scenario, self._jobs, network, session, Outages(self._unscaled), self._isolated_s),
                programs=_Programs((commands, self._torch)),
            )
            network.begin()
            sampling = asyncio.create_task(_sample(counters, network))
            try:
                record = await loop.run_to_end(on_progress)
            finally:
                sampling.cancel()
                await asyncio.gather(sampling, return_exceptions=True)
        return result_of(
            *(scenario, policy.name, self._routing, record, self._isolated),
            backend=self._backend,
            scale=self._scale,
            packet_hops=counters.packets,
            events=scenario.events,
        )

    def _lost(self, reason: str) -> None:
        """The switches have ended for good."""
        self._loss = reason
        if self._network is not None:
            self._network.lost(reason)


@dataclass(frozen=True, slots=True)
class _Programs:
    """Programs of several kinds, as one; a job has at most one kind."""

    kinds: tuple[Programs, ...]

    def runs(self, job: str) -> bool:
        """Return whether a job has programs."""
        return any(kind.runs(job) for kind in self.kinds)

    def start(self, job: str) -> None:
        """Start the programs of a job."""
        for kind in self.kinds:
            if kind.runs(job):
                kind.start(job)


async def _sample(counters: LinkCounters, network: RealNetwork) -> None:
    """Sample the links' counters for as long as the run lasts."""
    while True:
        await asyncio.sleep(_SAMPLE_S)
        if network.has_sample:
            continue  # a sample lasts until the next is taken
        try:
            network.sampled(await counters.sample(network.now_s))
        except CountersAwayError:
            _LOG.info("the switches do not answer: their counters are read later")
        except (NetworkError, LookupError) as error:
            _LOG.warning("the counters of links cannot be read: %s", error)


def _config(scenario: Scenario, policy: Policy, places: SwitchPlaces, listen: str, scale: float) -> ControllerConfig:
    """Return the configuration of the run's controller: like programs in hosts, it knows what links really carry."""
    return ControllerConfig(
        listen=listen,
        agents=True,
        topology=scaled_topology(scenario.topology, scale),
        switches=places.switches,
        openflow=places.openflow,
        hash_seed=scenario.seed,
        policy=source_of(policy),
        hash=places.hash or scenario.hash,
        steering=scenario.steering,
        seed=scenario.seed,
        num_levels=scenario.num_levels,
        reads_ports=scenario.reads_ports,
    )
