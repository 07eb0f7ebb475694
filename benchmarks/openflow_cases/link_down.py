"""How soon the controller has new rules on all switches when a port goes down."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from time import perf_counter, process_time

from controller.clock import WallClock
from controller.config import ControllerConfig
from controller.process.core import ControllerCore
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from policies.job import Profile
from tests.controller.southbound.openflow.planned import route
from tests.controller.southbound.openflow.switched import LISTEN, Programmed, add_bridges, addresses_of, use_controller
from topologies.clos import ClosSpecification
from topologies.ecmp import FabricHash
from topologies.openvswitch.daemons import OpenVSwitch

CLOS = ClosSpecification(kind="clos", tors=4, aggs=4, hosts_per_tor=4, host_link_gbps=100, uplink_gbps=100)
_NUM_JOBS, _FLOWS_PER_JOB = 8, 12
_LEASE_S = 1e6


@dataclass(frozen=True, slots=True)
class LinkDown:
    """A port that went down, and how long after that switches had acknowledged new entries.

    ``left_s``: those that lead around the dead link; ``planned_s``: the rules of the next Plan. ``cpu_s`` is the
    controller's processor time until ``left_s``.
    """

    left_s: float
    cpu_s: float
    planned_s: float


async def link_down_figures(num_failures: int, seed: int = 1) -> dict[str, float]:
    """Return the 99th percentiles and medians of so many failures of ports between switches, one at a time.

    Open vSwitch reports the port, and the core of a controller does the rest, with jobs whose flows have rules.

    Raises:
        NetworkError: Open vSwitch is not installed, or does not start.
    """
    failures = await _failures(num_failures, seed)
    left_s = [failure.left_s for failure in failures]
    planned_s = [failure.planned_s for failure in failures]
    return {
        "link_downs": num_failures,
        "link_down_p99_s": round(percentile(left_s, 0.99), 4),
        "link_down_median_s": round(percentile(left_s, 0.5), 4),
        "link_down_cpu_median_s": round(percentile([failure.cpu_s for failure in failures], 0.5), 4),
        "link_down_plan_p99_s": round(percentile(planned_s, 0.99), 4),
        "link_down_plan_median_s": round(percentile(planned_s, 0.5), 4),
    }


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that this share of the values does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


async def _failures(num_failures: int, seed: int) -> list[LinkDown]:
    routing = route(CLOS.build())
    fabric = routing.fabric
    addresses = addresses_of(fabric.switches)
    config = ControllerConfig(
        topology=CLOS,
        switches=addresses,
        openflow=LISTEN,
        hash=FabricHash.UNKNOWN,
        lease_s=_LEASE_S,
        policy_time_limit_s=None,
        damping=None,
    )
    programmed = Programmed(routing, addresses)
    southbound = programmed.southbound
    core = ControllerCore(config, routing, southbound, WallClock())
    _register_jobs(core, Random(seed))
    ports = [
        (link.source, link.source_port)
        for link in fabric.links
        if link.source in fabric.switches and link.destination in fabric.switches
    ]
    with OpenVSwitch(has_dummies=True) as openvswitch:
        await asyncio.to_thread(add_bridges, openvswitch, fabric)
        async with southbound.hearing_ports(core.ports):
            await asyncio.to_thread(use_controller, openvswitch, fabric.switches, programmed.place)
            async with southbound:
                await southbound.caught_up()
                await core.apply_port_states()
                await core.planner.settle()
                return [await _fail(openvswitch, core, *ports[number % len(ports)]) for number in range(num_failures)]


def _register_jobs(core: ControllerCore, random: Random) -> None:
    fabric = core.planner.routing.fabric
    for number in range(_NUM_JOBS):
        name = f"job-{number}"
        hosts = tuple(random.sample(fabric.hosts, 4))
        nics = [NicReference(host, 0) for host in hosts]
        pairs = [random.sample(nics, 2) for _ in range(_FLOWS_PER_JOB)]
        flows = tuple(FlowRequest(source, destination, 1_000_000, 0.0) for source, destination in pairs)
        core.registry.register_job(JobRequest(name, hosts, 4, Profile(1.0, 0.5, random.uniform(10, 100))), now_s=0.0)
        core.registry.register_flow_groups(name, [FlowGroupRequest("group", flows)])
    core.planner.mark_changed()


async def _fail(openvswitch: OpenVSwitch, core: ControllerCore, switch: str, port: int) -> LinkDown:
    """Take a port down until its Plan is in force, then bring it up."""
    began_s, cpu_began_s = perf_counter(), process_time()
    await _set_port(openvswitch, core, switch, port, is_up=False)
    left_s, cpu_s = perf_counter() - began_s, process_time() - cpu_began_s
    assert core.planner.routing.dead, "the controller goes on over a dead link"
    await core.planner.settle()
    planned_s = perf_counter() - began_s
    await _set_port(openvswitch, core, switch, port, is_up=True)
    await core.planner.settle()
    return LinkDown(left_s, cpu_s, planned_s)


async def _set_port(openvswitch: OpenVSwitch, core: ControllerCore, switch: str, port: int, *, is_up: bool) -> None:
    """Change a port; return once the controller has heard of it and has acted."""
    state = "up" if is_up else "down"
    command = "netdev-dummy/set-admin-state", f"{switch}-{port}", state
    changing = asyncio.create_task(asyncio.to_thread(openvswitch.appctl, *command))
    while core.ports.states[switch].get(port) is not is_up:
        await core.ports.changed.wait()
    await core.apply_port_states()
    await changing
