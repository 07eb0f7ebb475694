"""Runs a scenario on the emulator: real packets and a real controller process, in virtual time."""

import asyncio
from contextlib import AsyncExitStack

from controller.config import ControllerConfig
from controller.switch_addresses import SwitchAddress
from emulator.base_entries import install_routing
from emulator.clock import VirtualClock
from emulator.host_options import wire_overhead
from emulator.p4runtime.pipeline import compiled_pipeline
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from experiments.scenarios.connections import open_connections
from experiments.scenarios.controller_process import ControllerProcess
from experiments.scenarios.driven.clock import DrivenClock
from experiments.scenarios.emulated_network import EmulatedNetwork, default_scale
from experiments.scenarios.job_agent import JobAgent
from experiments.scenarios.job_driver import Progress
from experiments.scenarios.live_session import LiveSession
from experiments.scenarios.ordinary_hashes import as_ordinary_switches_hash
from experiments.scenarios.outages import Outages
from experiments.scenarios.probing import HostProbes, Probing, agents_of
from experiments.scenarios.results import RunResult
from experiments.scenarios.run_loop import RunLoop
from experiments.scenarios.run_record import result_of
from hostlib.client import Client
from hostlib.credentials import Credentials
from hostlib.wire.int_md import UTILISATION_WINDOW_US
from p4src import P4INFO, PROGRAM
from policies.policy import Policy
from policies.registry import as_policy, source_of
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.isolated_run import run_isolated
from workloads.jobs import training_jobs
from workloads.scenario import Scenario

LEASE_S = 30.0


async def run_on_emulator(scenario: Scenario, policy: Policy | str, *, on_progress: Progress) -> RunResult:
    """Run a scenario to the departure of its last job, with a controller in a process of its own.

    The emulator knows nothing of jobs or of the controller. The controller loads the policy itself, so that it must be
    registered, or come from ``load_policy("module:attribute")``.

    Raises:
        ControllerProcessError: The controller does not start.
        ValueError: The jobs do not fit, or the controller cannot load the policy.
    """
    policy = as_policy(policy)
    fabric = scenario.topology.build()
    believed = Routing(fabric, hash_multipliers(fabric.switches, scenario.seed))
    routing = as_ordinary_switches_hash(believed, scenario.seed)
    jobs = training_jobs(scenario, fabric)
    isolated = {job.name: run_isolated(job, routing) for job in jobs}
    isolated_s = {name: alone.iteration_time_s for name, alone in isolated.items()}
    connections = open_connections(jobs, fabric)
    scale = scenario.scale or default_scale(fabric)
    network = EmulatedNetwork(routing, jobs, connections, scale, scenario.congestion_control)
    install_routing(network.emulated, routing, only=fabric.ordinary_switches)
    exclusive = asyncio.Lock()
    async with AsyncExitStack() as stack:
        program = compiled_pipeline(P4INFO.read_text(), PROGRAM.read_bytes())
        service = P4RuntimeService(network.emulated.switches.values(), program, exclusive, network.emulated.packet_out)
        port = await stack.enter_async_context(serve(service))
        network.clock = VirtualClock(network.emulated, exclusive, service.deliver)
        config = _config(scenario, policy, network, f"127.0.0.1:{port}")
        process = await stack.enter_async_context(ControllerProcess(config, is_driven=True))
        job_clock = DrivenClock()
        client = await stack.enter_async_context(Client(process.address, clock=job_clock, credentials=Credentials()))
        agents = {
            job.name: JobAgent(client, job, connections, scenario.steering, isolated_s=isolated_s[job.name])
            for job in jobs
        }
        for agent in agents.values():
            await stack.enter_async_context(agent)
        outages = Outages(fabric)
        session = LiveSession(
            *(process, agents, job_clock, network, outages), reads_ports=scenario.reads_ports, lease_s=LEASE_S
        )
        await stack.enter_async_context(session)
        probes = HostProbes(Probing(network.emulated, agents_of(fabric)), session) if scenario.probes else None
        record = await RunLoop(scenario, jobs, network, session, outages, isolated_s, probes).run_to_end(on_progress)
    return result_of(
        *(scenario, policy.name, routing, record, isolated),
        backend="emulator",
        scale=network.scale,
        packet_hops=network.emulated.packet_hops,
        events=scenario.events,
    )


def _config(scenario: Scenario, policy: Policy, network: EmulatedNetwork, address: str) -> ControllerConfig:
    """Return the configuration of the run's controller; all switches have one address."""
    # The emulator divides bytes by the scale, and its packets add headers.
    bytes_per_count = network.scale / wire_overhead(network.emulated.options)
    return ControllerConfig(
        listen="127.0.0.1:0",
        agents=True,
        topology=scenario.topology,
        switches=tuple(
            SwitchAddress(name=switch.name, address=address, device_id=switch.device_id)
            for switch in network.emulated.switches.values()
            if switch.name not in network.emulated.fabric.ordinary_switches
        ),
        hash_seed=scenario.seed,
        policy=source_of(policy),
        # The speed of the machine must not change results.
        policy_time_limit_s=None,
        hash=scenario.hash,
        steering=scenario.steering,
        seed=scenario.seed,
        num_levels=scenario.num_levels,
        reads_ports=scenario.reads_ports,
        lease_s=LEASE_S,
        utilisation_window_us=UTILISATION_WINDOW_US * wire_overhead(network.emulated.options) / network.scale,
        bytes_per_count=bytes_per_count,
    )
