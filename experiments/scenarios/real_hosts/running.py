"""Runs a scenario on real hosts: real programs and connections, a real controller, and the emulator's switches."""

import asyncio
import logging
from contextlib import AsyncExitStack

import grpc

from controller.config import ControllerConfig, SwitchAddress
from experiments.scenarios.controller_process import ControllerProcess
from experiments.scenarios.job_agent import JobAgent
from experiments.scenarios.job_driver import Progress
from experiments.scenarios.outages import Outages
from experiments.scenarios.real_hosts.emulator_process import EmulatorProcess
from experiments.scenarios.real_hosts.host_agents import HostAgents
from experiments.scenarios.real_hosts.laboratory import Laboratory
from experiments.scenarios.real_hosts.link_counters import LinkCounters
from experiments.scenarios.real_hosts.programs import CommandPrograms
from experiments.scenarios.real_hosts.ranks import Ranks
from experiments.scenarios.real_hosts.real_flows import connections_of, real_flows
from experiments.scenarios.real_hosts.real_network import RealNetwork
from experiments.scenarios.real_hosts.real_session import RealSession
from experiments.scenarios.real_hosts.run_folder import run_folder
from experiments.scenarios.results import RunResult
from experiments.scenarios.run_loop import RunLoop
from experiments.scenarios.run_record import result_of
from hostlib.client import Client
from hostlib.credentials import Credentials
from hostlib.wire.int_md import UTILISATION_WINDOW_US
from policies.policy import Policy
from policies.registry import as_policy, source_of
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.namespaces.host_network import NetworkError
from topologies.routing import Routing
from workloads.isolated_run import run_isolated
from workloads.jobs import training_jobs
from workloads.scenario import ProfileSource, Scenario
from workloads.workload import CommandWorkload

_LOG = logging.getLogger(__name__)

_SAMPLE_S = 0.25


async def run_on_real_hosts(
    scenario: Scenario,
    policy: Policy | str,
    laboratory: Laboratory,
    fabric: Fabric,
    scale: float,
    *,
    backend: str,
    is_real_time: bool,
    on_progress: Progress,
) -> RunResult:
    """Run a scenario to the departure of its last job.

    Args:
        scenario: The scenario.
        policy: The policy, which the controller loads itself.
        laboratory: The hosts.
        fabric: The scenario's fabric at the rates that the laboratory's links have.
        scale: What its rates have been divided by; bytes are too.
        backend: Its name, for the result.
        is_real_time: Whether the emulator is to ask for real-time priority.
        on_progress: Called with the time that has passed and the expected end.

    Raises:
        ControllerProcessError: The controller does not start.
        EmulatorProcessError: The emulator does not start.
        RanksError: Ranks do not start, or do not reach each other.
        ValueError: The jobs do not fit, or the controller cannot load the policy.
    """
    policy = as_policy(policy)
    unscaled = scenario.topology.build()
    routing = Routing(unscaled, hash_multipliers(unscaled.switches, scenario.seed))
    jobs = training_jobs(scenario, unscaled)
    isolated_s = {job.name: run_isolated(job, routing).iteration_time_s for job in jobs}
    played = [job for job in jobs if not isinstance(job.specification.workload, CommandWorkload)]
    flows = real_flows(played, routing)
    connections = connections_of(flows)
    network = RealNetwork(played, flows, scale)
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(run_folder())
        emulator = EmulatorProcess(fabric, laboratory, is_real_time=is_real_time, on_loss=network.lost)
        network.emulator = await stack.enter_async_context(emulator)
        config = _config(scenario, policy, emulator.address, f"unix:{folder / 'controller.sock'}", scale)
        process = await stack.enter_async_context(
            ControllerProcess(config, started_by=laboratory.outside, folder=folder)
        )
        network.ranks = ranks = await stack.enter_async_context(
            Ranks(
                *(laboratory, flows, {job.name: job.hosts for job in played}, folder),
                on_arrival=network.arrived,
                on_failure=network.failed,
            )
        )
        await ranks.connect()
        client = await stack.enter_async_context(Client(process.address, credentials=Credentials()))
        agents = {
            job.name: JobAgent(client, job, connections, scenario.steering, isolated_s=isolated_s[job.name])
            for job in jobs
            if job in played or job.specification.profile is ProfileSource.MEASURED
        }
        for agent in agents.values():
            await stack.enter_async_context(agent)
        if scenario.probes:
            await stack.enter_async_context(HostAgents(fabric, laboratory, process.address, folder))
        session = await stack.enter_async_context(RealSession(process, agents, network, unscaled))
        programs = await stack.enter_async_context(
            CommandPrograms(jobs, laboratory, unscaled, process.address, network.happened)
        )
        counters = await stack.enter_async_context(LinkCounters(fabric, laboratory, emulator.address))
        loop = RunLoop(scenario, jobs, network, session, Outages(unscaled), isolated_s, programs=programs)
        network.begin()
        sampling = asyncio.create_task(_sample(counters, network))
        try:
            record = await loop.run_to_end(on_progress)
        finally:
            sampling.cancel()
            await asyncio.gather(sampling, return_exceptions=True)
    return result_of(
        *(scenario, policy.name, routing, record),
        backend=backend,
        scale=scale,
        packet_hops=counters.packets,
        events=scenario.events,
    )


async def _sample(counters: LinkCounters, network: RealNetwork) -> None:
    """Sample the links' counters for as long as the run lasts."""
    while True:
        await asyncio.sleep(_SAMPLE_S)
        if network.has_sample:
            continue  # a sample lasts until the next is taken
        try:
            network.sampled(await counters.sample(network.now_s))
        except grpc.RpcError:
            _LOG.info("the emulator does not answer: its counters are read later")
        except (NetworkError, LookupError) as error:
            _LOG.warning("the counters of links cannot be read: %s", error)


def _config(scenario: Scenario, policy: Policy, address: str, listen: str, scale: float) -> ControllerConfig:
    """Return the configuration of the run's controller: it knows the fabric's own rates, and bytes before scaling."""
    return ControllerConfig(
        listen=listen,
        agents=True,
        topology=scenario.topology,
        switches=tuple(
            SwitchAddress(name=name, address=address, device_id=1 + index)
            for index, name in enumerate(scenario.topology.build().switches)
        ),
        hash_seed=scenario.seed,
        policy=source_of(policy),
        hash=scenario.hash,
        steering=scenario.steering,
        seed=scenario.seed,
        num_levels=scenario.num_levels,
        reads_ports=scenario.reads_ports,
        utilisation_window_us=UTILISATION_WINDOW_US / scale,
        bytes_per_count=scale,
    )
