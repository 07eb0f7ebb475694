"""A controller with three jobs, two of which share links with the third, and its operations service over gRPC."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import grpc.aio
import pytest

from controller.api.context import ServiceContext
from controller.api.operations.service import OperationsService
from controller.planning.context import PlannerContext
from controller.planning.decision import Decision
from controller.planning.directives import DirectivePublisher
from controller.planning.draining import Draining
from controller.planning.planner import Planner
from controller.planning.snapshots import Snapshots
from controller.registry.errors import NotOwnerError
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from controller.southbound.recording import RecordingSouthbound
from controller.store.store import Store
from controller.telemetry.telemetry import Telemetry
from experiments.scenarios.driven.clock import DrivenClock
from hostlib.telemetry.parsing import Malformed
from hostlib.wire import trainyard_pb2 as wire
from policies.job import Profile
from policies.registry import find_policy
from tests.controller.telemetry.reports import exchange, five_tuple_to_wire, stack
from tests.patience import PATIENCE_S
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing
from topologies.specification import ClosSpecification

LEASE_S = 10.0
NOW_S = 4.0
SENT_BYTES = 10**9
WORK = {"gpt": 16.0, "bert": 4.0, "resnet": 1.0}
HOSTS = {"gpt": ("h0", "h2"), "bert": ("h1", "h3"), "resnet": ("h1", "h2")}


@dataclass(frozen=True, slots=True)
class PlannedController:
    """A controller that has planned its jobs under Crux."""

    registry: Registry
    planner: Planner
    fabric: Fabric
    telemetry: Telemetry

    @property
    def decision(self) -> Decision:
        assert self.planner.decision is not None
        return self.planner.decision


def planned_controller(jobs: Sequence[str] = tuple(HOSTS)) -> PlannedController:
    """The three jobs on two ToRs with two hosts each, two aggregation switches, two cables between every pair."""
    fabric = ClosSpecification(
        kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=2
    ).build()
    routing, registry = Routing(fabric, hash_multipliers(fabric.switches, seed=1)), Registry(fabric, LEASE_S)
    for name in jobs:
        _register(registry, name)
    snapshots = Snapshots(registry, routing, num_levels=8, seed=1)
    planner = Planner(
        PlannerContext(
            registry=registry,
            snapshots=snapshots,
            routing=routing,
            policy=find_policy("crux"),
            southbound=RecordingSouthbound(),
            directives=DirectivePublisher(registry),
            clock=DrivenClock(),
        )
    )
    planner.mark_changed()
    asyncio.run(planner.settle())
    telemetry = _telemetry(routing, planner) if jobs else Telemetry(routing, LEASE_S)
    return PlannedController(registry, planner, fabric, telemetry)


def _telemetry(routing: Routing, planner: Planner) -> Telemetry:
    """One path of the first flow is known, of which a probe is missing; a host and the controller have dropped some."""
    assert planner.decision is not None
    telemetry = Telemetry(routing, LEASE_S)
    flows = [flow for job in planner.decision.snapshot.jobs for flow in job.flows]
    telemetry.set_probe_targets([flow.five_tuple for flow in flows])
    flow = next(flow for flow in flows if flow.key.job == "gpt")
    port = flow.five_tuple.source_port
    reports = [
        wire.ProbeReport(
            five_tuple=five_tuple_to_wire(flow.five_tuple, port),
            sequence=sequence,
            port_sequence=sequence,
            stack=stack(routing.fabric, flow.hashed_path),
        )
        for sequence in (0, 1, 2, 4, 4)
    ]
    dropped = [wire.DroppedPackets(reason=Malformed.VERSION, packets=3)]
    request = wire.ExchangeProbesRequest(host="h2", session=1, reports=reports, dropped=dropped)
    telemetry.reporters.authorise("h2", "token", 0.0)
    exchange(telemetry, request, 0.0)
    with pytest.raises(NotOwnerError):
        telemetry.authorise("h2", "other", num_reports=2, now_s=0.0)
    return telemetry


def _register(registry: Registry, name: str) -> None:
    """A job with a flow each way between its two hosts, at time 0."""
    there, back = (NicReference(host, 0) for host in HOSTS[name])
    registry.register_job(JobRequest(name, HOSTS[name], 16, Profile(1.0, 0.5, WORK[name])), 0.0)
    flows = (FlowRequest(there, back, SENT_BYTES, 0.0), FlowRequest(back, there, SENT_BYTES, 0.0))
    registry.register_flow_groups(name, [FlowGroupRequest("ring", flows)])


@contextmanager
def served(controller: PlannedController, store: Store | None = None, port: int = 0) -> Iterator[str]:
    """The address at which a thread of its own answers operators, at NOW_S. Port 0 is any free one."""
    clock = DrivenClock()
    clock.advance_to(NOW_S)
    southbound = RecordingSouthbound(controller.fabric.switches)
    service = OperationsService(
        ServiceContext(
            registry=controller.registry,
            planner=controller.planner,
            directives=DirectivePublisher(controller.registry),
            southbound=southbound,
            telemetry=controller.telemetry,
            draining=Draining(controller.planner, controller.registry, southbound, clock, None, (), store),
            clock=clock,
            store=store,
        )
    )
    started, stop = threading.Event(), asyncio.Event()
    addresses: list[str] = []
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((service.handler(),))
        addresses.append(f"127.0.0.1:{server.add_insecure_port(f'127.0.0.1:{port}')}")
        await server.start()
        started.set()
        await stop.wait()
        await server.stop(None)

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert started.wait(PATIENCE_S)
        yield addresses[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE_S)
        loop.close()
