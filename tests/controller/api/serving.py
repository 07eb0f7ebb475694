"""A service on loopback whose clock is driven, and the jobs that call it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import grpc
import grpc.aio

from controller.access.authenticator import Anybody
from controller.api.calls import Calls
from controller.api.context import ServiceContext
from controller.api.service import ControllerService
from controller.links.port_states import PortStateTable
from controller.planning.context import PlannerContext
from controller.planning.directives import DirectivePublisher
from controller.planning.draining import Draining
from controller.planning.planner import Planner
from controller.planning.snapshots import Snapshots
from controller.process.server import SERVER_OPTIONS
from controller.registry.registry import Registry
from controller.southbound.recording import RecordingSouthbound
from controller.telemetry.telemetry import Telemetry
from experiments.scenarios.driven.clock import DrivenClock
from experiments.scenarios.driven.service import DrivenTimeService
from hostlib.types import Flow, FlowGroup, Job, Nic, Profile
from policies.registry import find_policy
from tests.driven import DrivenConnection
from topologies.routing import Routing
from topologies.steering import Steering

GPT = Job("gpt", ("h0", "h2"), 16, Profile(compute_s=1.0, comm_start=0.5, work=16.0))
BERT = Job("bert", ("h1", "h3"), 8, Profile(compute_s=1.0, comm_start=0.5, work=1.0))
BERT_AS_GPT = replace(BERT, name="gpt")
RING = FlowGroup("ring", (Flow(Nic("h0"), Nic("h2"), 10**9), Flow(Nic("h2"), Nic("h0"), 10**9)))
OTHER_RING = FlowGroup("ring", (Flow(Nic("h1"), Nic("h3"), 10**9), Flow(Nic("h3"), Nic("h1"), 10**9)))
Scenario = Callable[[DrivenConnection, RecordingSouthbound], Awaitable[None]]


@asynccontextmanager
async def served(
    registry: Registry, routing: Routing, steering: Steering = Steering.RULE, telemetry: Telemetry | None = None
) -> AsyncIterator[tuple[str, RecordingSouthbound]]:
    southbound, directives, clock = RecordingSouthbound(), DirectivePublisher(registry), DrivenClock()
    snapshots = Snapshots(registry, routing, num_levels=8, seed=1)
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
        )
    )
    server = grpc.aio.server(options=SERVER_OPTIONS)
    telemetry = telemetry or Telemetry(routing, lease_s=10.0)
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
    driven = DrivenTimeService(planner, southbound, PortStateTable(routing.fabric.switches), clock)
    server.add_generic_rpc_handlers((service.handler(), driven.handler()))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}", southbound
    finally:
        await server.stop(None)


Run = Callable[[Scenario], None]
