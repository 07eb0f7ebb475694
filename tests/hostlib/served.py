"""An in-process controller over gRPC on loopback, whose southbound records what it receives."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc.aio

from controller.access.authenticator import Anybody
from controller.api.calls import Calls
from controller.api.context import ServiceContext
from controller.api.service import ControllerService
from controller.clock import Clock
from controller.links.port_states import PortStateTable
from controller.planning.context import PlannerContext
from controller.planning.directives import DirectivePublisher
from controller.planning.draining import Draining
from controller.planning.planner import Planner
from controller.planning.snapshots import Snapshots
from controller.process.server import SERVER_OPTIONS
from controller.registry.registry import Registry
from controller.southbound.recording import RecordingSouthbound
from controller.telemetry.probed_paths import ProbedPaths
from controller.telemetry.telemetry import Telemetry
from experiments.scenarios.driven.clock import DrivenClock
from experiments.scenarios.driven.service import DrivenTimeService
from hostlib.types import Flow, FlowGroup, Job, Nic, Profile
from policies.enforcement import Cadence
from policies.registry import find_policy
from topologies.ecmp import FabricHash, hash_multipliers
from topologies.routing import Routing
from topologies.specification import ClosSpecification
from topologies.steering import Steering

LEASE_S = 10.0
GPT = Job("gpt", ("h0", "h2"), 16, Profile(compute_s=1.0, comm_start=0.5, work=16.0))
BERT = Job("bert", ("h1", "h3"), 8, Profile(compute_s=1.0, comm_start=0.5, work=1.0))
RING = FlowGroup("ring", (Flow(Nic("h0"), Nic("h2"), 10**9), Flow(Nic("h2"), Nic("h0"), 10**9)))

_CLOS = ClosSpecification(
    kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=2
)


@dataclass(frozen=True)
class Served:
    """A controller that answers at ``address``."""

    address: str
    registry: Registry
    planner: Planner
    directives: DirectivePublisher
    southbound: RecordingSouthbound
    routing: Routing
    telemetry: Telemetry


@asynccontextmanager
async def served(
    address: str = "127.0.0.1:0",
    *,
    clock: Clock | None = None,
    steering: Steering = Steering.RULE,
    plans_by_itself: bool = True,
    cadence: Cadence = Cadence.JOB_EVENT,
    fabric_hash: FabricHash = FabricHash.KNOWN,
) -> AsyncIterator[Served]:
    """Serve a controller that knows no job; with another clock than its own it uses virtual time."""
    fabric = _CLOS.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, seed=1))
    clock = clock or DrivenClock()
    registry = Registry(fabric, LEASE_S)
    directives, southbound = DirectivePublisher(registry), RecordingSouthbound()
    telemetry = Telemetry(routing, LEASE_S)
    probed = ProbedPaths(telemetry, fabric_hash)
    snapshots = Snapshots(registry, routing, num_levels=8, seed=1, probed=probed)
    planner = Planner(
        PlannerContext(
            registry=registry,
            snapshots=snapshots,
            routing=routing,
            policy=find_policy("crux"),
            southbound=southbound,
            directives=directives,
            clock=clock,
            steering=steering,
            fabric_hash=fabric_hash,
            cadence=cadence,
            probed=probed,
        )
    )
    server = grpc.aio.server(options=SERVER_OPTIONS)
    service = ControllerService(
        ServiceContext(
            registry=registry,
            planner=planner,
            directives=directives,
            southbound=southbound,
            telemetry=telemetry,
            draining=Draining(planner, registry, southbound, clock),
            clock=clock,
            calls=Calls(Anybody(agents=True)),
        )
    )
    server.add_generic_rpc_handlers((service.handler(),))
    if isinstance(clock, DrivenClock):
        driven = DrivenTimeService(planner, southbound, PortStateTable(fabric.switches), clock)
        server.add_generic_rpc_handlers((driven.handler(),))
    port = server.add_insecure_port(address)
    await server.start()
    planning = asyncio.create_task(planner.run()) if plans_by_itself else None
    try:
        yield Served(f"127.0.0.1:{port}", registry, planner, directives, southbound, routing, telemetry)
    finally:
        if planning is not None:
            planning.cancel()
            await asyncio.gather(planning, return_exceptions=True)
        await server.stop(None)
