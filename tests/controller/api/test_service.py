"""The service and the host library's client over gRPC on loopback; the clock is driven."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from ipaddress import IPv4Address

import grpc
import grpc.aio
import pytest

from controller.access.authenticator import Anybody
from controller.api.calls import Calls
from controller.api.context import ServiceContext
from controller.api.service import ControllerService
from controller.links.port_states import PortStateTable
from controller.planning.context import PlannerContext
from controller.planning.directives import DirectivePublisher, JobDirectives
from controller.planning.planner import Planner
from controller.planning.snapshots import Snapshots
from controller.process.server import SERVER_OPTIONS
from controller.registry.registry import Registry
from controller.southbound.recording import RecordingSouthbound
from controller.telemetry.report_checks import RejectReason
from controller.telemetry.telemetry import Telemetry
from experiments.scenarios.driven.clock import DrivenClock
from experiments.scenarios.driven.service import DrivenTimeService
from hostlib.errors import RefusalReason, RefusedError, UnreachableError
from hostlib.telemetry.parsing import parse_probe
from hostlib.telemetry.probe_agent import ProbeExchange
from hostlib.telemetry.probes import Mark, Probe, probe_packet
from hostlib.telemetry.receiver import ProbeReport
from hostlib.types import FiveTuple, Flow, FlowGroup, Job, Nic, Profile
from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire
from policies.registry import find_policy
from tests.driven import DrivenConnection
from tests.patience import PATIENCE_S, until
from topologies.routing import Routing
from topologies.steering import Steering

GPT = Job("gpt", ("h0", "h2"), 16, Profile(compute_s=1.0, comm_start=0.5, work=16.0))
BERT = Job("bert", ("h1", "h3"), 8, Profile(compute_s=1.0, comm_start=0.5, work=1.0))
BERT_AS_GPT = replace(BERT, name="gpt")
RING = FlowGroup("ring", (Flow(Nic("h0"), Nic("h2"), 10**9), Flow(Nic("h2"), Nic("h0"), 10**9)))
OTHER_RING = FlowGroup("ring", (Flow(Nic("h1"), Nic("h3"), 10**9), Flow(Nic("h3"), Nic("h1"), 10**9)))

Scenario = Callable[[DrivenConnection, RecordingSouthbound], Awaitable[None]]


@asynccontextmanager
async def _served(
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


@pytest.fixture
def telemetry(routing: Routing) -> Telemetry:
    return Telemetry(routing, lease_s=10.0)


@pytest.fixture
def run(registry: Registry, routing: Routing, telemetry: Telemetry) -> Callable[[Scenario], None]:
    """Runs a scenario against a controller of its own."""

    def run_scenario(scenario: Scenario) -> None:
        async def connected() -> None:
            async with (
                _served(registry, routing, telemetry=telemetry) as (address, southbound),
                DrivenConnection(address) as client,
            ):
                await asyncio.wait_for(scenario(client, southbound), PATIENCE_S)

        asyncio.run(connected())

    return run_scenario


Run = Callable[[Scenario], None]


def test_registration_becomes_rules_and_directives(run: Run, routing: Routing) -> None:
    async def scenario(client: DrivenConnection, southbound: RecordingSouthbound) -> None:
        lease_s = await client.register_job(GPT)
        await client.register_job(BERT)
        five_tuples = await client.register_flow_groups("gpt", [RING])
        await client.register_flow_groups("bert", [OTHER_RING])
        assert southbound.written == []

        settled = await client.settle(0.0)
        assert (settled.plan_number, settled.next_timer_s) == (1, lease_s)
        assert settled.num_rules == sum(len(rules) for rules in southbound.written[-1].values()) > 0

        directives = await anext(client.directives("gpt"))
        assert directives.plan_number == 1
        there = directives.flows[0]
        assert (there.flow_group, there.flow) == ("ring", 0)
        assert (there.path.nodes[:2], there.path.nodes[3:]) == (("h0", "t0"), ("t1", "h2"))
        assert len(there.path.links) == len(there.path.nodes) - 1
        source_address = IPv4Address(routing.fabric.nics["h0"][0].address)
        assert five_tuples["ring"][0].source_address == source_address

    run(scenario)


def test_directives_are_for_the_job_that_has_the_name_now(run: Run) -> None:
    async def scenario(client: DrivenConnection, _: RecordingSouthbound) -> None:
        await client.register_job(GPT)
        await client.register_flow_groups("gpt", [RING])
        await client.settle(0.0)
        before = client.directives("gpt")
        assert (await anext(before)).plan_number == 1
        await client.deregister("gpt")
        await client.register_job(BERT_AS_GPT, age_s=5.0)
        await client.register_flow_groups("gpt", [OTHER_RING])
        after = asyncio.create_task(anext(client.directives("gpt")))
        await asyncio.sleep(0.1)
        await client.settle(0.0)
        directives = await after
        assert directives.plan_number == 2
        assert directives.flows[0].path.nodes[0] == "h1"
        assert await anext(before, None) is None

    run(scenario)


def test_the_plan_in_force_has_its_reasons(run: Run) -> None:
    async def scenario(client: DrivenConnection, _: RecordingSouthbound) -> None:
        assert (await client.plan()).number == 0
        await client.register_job(GPT)
        await client.register_job(BERT)
        five_tuples = await client.register_flow_groups("gpt", [RING])
        await client.settle(0.0)
        plan = await client.plan()
        assert (plan.number, plan.policy) == (1, "crux")
        assert {job.name for job in plan.jobs} == {"gpt", "bert"}
        assert all(job.reason for job in plan.jobs)
        flow = plan.flows[1]
        assert (flow.job, flow.flow_group, flow.flow) == ("gpt", "ring", 1)
        assert (flow.source, flow.destination) == (Nic("h2"), Nic("h0"))
        assert flow.five_tuple == five_tuples["ring"][1]
        assert (flow.path.nodes[0], flow.path.nodes[-1]) == ("h2", "h0")

    run(scenario)


def test_nics_are_located_by_address_in_the_order_of_the_question(run: Run, routing: Routing) -> None:
    nics = routing.fabric.nics
    known = {IPv4Address(nics[host][0].address): Nic(host) for host in ("h3", "h0")}
    unknown = [IPv4Address(number) for number in (0, nics["h0"][0].address + 1, (1 << 32) - 1)]

    async def scenario(client: DrivenConnection, _: RecordingSouthbound) -> None:
        assert await client.locate_nics([]) == ()
        assert await client.locate_nics([*known, *unknown, *known]) == (*known.values(), *[None] * 3, *known.values())

    run(scenario)


def test_more_addresses_than_a_call_has_room_for_are_located_in_several(run: Run, routing: Routing) -> None:
    addresses = [IPv4Address(routing.fabric.nics[host][0].address) for host in ("h0", "h1", "h2")]

    async def scenario(client: DrivenConnection, _: RecordingSouthbound) -> None:
        located = await client.locate_nics(addresses * 4096)
        assert located == (Nic("h0"), Nic("h1"), Nic("h2")) * 4096

    run(scenario)


def test_same_registration_twice_plans_once(run: Run) -> None:
    async def scenario(client: DrivenConnection, southbound: RecordingSouthbound) -> None:
        for _ in range(2):
            await client.register_job(GPT)
            first = await client.register_flow_groups("gpt", [RING])
            assert (await client.settle(0.0)).plan_number == 1
        assert await client.register_flow_groups("gpt", [RING]) == first
        assert len(southbound.written) == 1

    run(scenario)


def test_rules_go_with_the_job_and_its_stream_ends(run: Run) -> None:
    async def scenario(client: DrivenConnection, southbound: RecordingSouthbound) -> None:
        await client.register_job(GPT)
        await client.register_flow_groups("gpt", [RING])
        stream = client.directives("gpt")
        await client.settle(0.0)
        assert (await anext(stream)).plan_number == 1
        await client.deregister("gpt")
        await client.deregister("gpt")
        settled = await client.settle(0.0)
        assert (settled.plan_number, settled.num_rules) == (2, 0)
        assert southbound.written[-1] == {}
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    run(scenario)


def test_stream_of_a_job_that_left_before_any_plan_ends(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    follow, followed = DirectivePublisher.follow, []

    def noted(board: DirectivePublisher, job: str) -> AsyncIterator[JobDirectives]:
        followed.append(job)
        return follow(board, job)

    monkeypatch.setattr(DirectivePublisher, "follow", noted)

    async def scenario(client: DrivenConnection, _: RecordingSouthbound) -> None:
        await client.register_job(GPT)
        stream = client.directives("gpt")
        waiting = asyncio.ensure_future(anext(stream))
        await until(lambda: followed == ["gpt"])
        await client.deregister("gpt")
        await client.settle(0.0)
        with pytest.raises(StopAsyncIteration):
            await waiting

    run(scenario)


def test_heartbeats_keep_a_lease_in_virtual_time(run: Run) -> None:
    async def scenario(client: DrivenConnection, _: RecordingSouthbound) -> None:
        lease_s = await client.register_job(GPT)
        await client.settle(lease_s / 2)
        await client.heartbeat("gpt")
        assert (await client.settle(lease_s)).next_timer_s == lease_s * 1.5
        assert (await client.settle(lease_s * 1.5)).next_timer_s is None
        with pytest.raises(RefusedError, match="job: 'gpt'") as refusal:
            await client.heartbeat("gpt")
        assert refusal.value.reason is RefusalReason.UNKNOWN_JOB

    run(scenario)


def test_time_never_goes_back(run: Run) -> None:
    async def scenario(client: DrivenConnection, _: RecordingSouthbound) -> None:
        await client.settle(2.0)
        with pytest.raises(RefusedError, match="time_s") as refusal:
            await client.settle(1.0)
        assert refusal.value.reason is RefusalReason.INVALID

    run(scenario)


def test_an_unknown_switch_cannot_be_down(run: Run) -> None:
    async def scenario(client: DrivenConnection, _: RecordingSouthbound) -> None:
        with pytest.raises(RefusedError, match="switches_down: unknown switch 't9'") as refusal:
            await client.settle(1.0, ["t0", "t9"])
        assert refusal.value.reason is RefusalReason.INVALID
        await client.settle(0.5, ["t0"])

    run(scenario)


def test_a_failed_decision_is_reported_to_a_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("h0")

    async def scenario(client: DrivenConnection, _: RecordingSouthbound) -> None:
        await client.register_job(GPT)
        with pytest.raises(RefusedError, match="policy crux: KeyError: 'h0'") as refusal:
            await client.settle(1.0)
        assert refusal.value.reason is RefusalReason.FAILED

    monkeypatch.setattr("controller.planning.planner.decide", fail)
    run(scenario)


@pytest.mark.parametrize(
    ("job", "reason", "field"),
    [
        (replace(GPT, hosts=("h0", "h9")), RefusalReason.INVALID, "hosts"),
        (replace(GPT, gpus=8), RefusalReason.CONFLICT, "name"),
    ],
)
def test_refused_job_changes_nothing(run: Run, job: Job, reason: RefusalReason, field: str) -> None:
    async def scenario(client: DrivenConnection, southbound: RecordingSouthbound) -> None:
        await client.register_job(GPT)
        await client.settle(0.0)
        with pytest.raises(RefusedError, match=field) as refusal:
            await client.register_job(job)
        assert refusal.value.reason is reason
        assert (await client.settle(0.0)).plan_number == 1
        assert len(southbound.written) == 1

    run(scenario)


def test_refused_flow_names_the_field_and_changes_nothing(run: Run) -> None:
    async def scenario(client: DrivenConnection, _: RecordingSouthbound) -> None:
        await client.register_job(GPT)
        await client.settle(0.0)
        bad = FlowGroup("bad", (replace(RING.flows[0], destination=Nic("h2", index=7)),))
        with pytest.raises(RefusedError, match=r"flow_groups\[1\].flows\[0\].destination.nic") as refusal:
            await client.register_flow_groups("gpt", [RING, bad])
        assert refusal.value.reason is RefusalReason.INVALID
        assert (await client.settle(0.0)).plan_number == 1

    run(scenario)


@pytest.mark.parametrize("version", ["", "trainyard.v2"])
def test_other_protocol_versions_are_refused(registry: Registry, routing: Routing, version: str) -> None:
    async def scenario() -> grpc.aio.AioRpcError:
        async with _served(registry, routing) as (address, _), grpc.aio.insecure_channel(address) as channel:
            register = channel.unary_unary(
                methods.REGISTER_JOB.path,
                request_serializer=wire.RegisterJobRequest.SerializeToString,
                response_deserializer=wire.RegisterJobResponse.FromString,
            )
            with pytest.raises(grpc.aio.AioRpcError) as refusal:
                await register(wire.RegisterJobRequest(protocol_version=version, name="gpt", hosts=["h0"], gpus=8))
            return refusal.value

    refusal = asyncio.run(scenario())
    assert refusal.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "protocol_version" in (refusal.details() or "")
    assert registry.jobs == ()


def test_stream_for_an_unknown_job_is_refused(run: Run) -> None:
    async def scenario(client: DrivenConnection, _: RecordingSouthbound) -> None:
        with pytest.raises(RefusedError, match="job: 'nobody'") as refusal:
            await anext(client.directives("nobody"))
        assert refusal.value.reason is RefusalReason.UNKNOWN_JOB

    run(scenario)


def test_no_controller_is_an_error_of_its_own() -> None:
    async def scenario() -> None:
        async with DrivenConnection("127.0.0.1:1", deadline_s=2.0) as client:
            with pytest.raises(UnreachableError):
                await client.heartbeat("gpt")

    asyncio.run(scenario())


# ---- probes ----------------------------------------------------------------------------------------------------------


def exchange(host: str, number: int = 0) -> ProbeExchange:
    return ProbeExchange(host, 1, number, clock_ns=0, reports=(), dropped={}, targets_version=0)


def test_a_host_probes_the_flows_of_jobs(run: Run) -> None:
    async def scenario(client: DrivenConnection, _: RecordingSouthbound) -> None:
        assert (await client.exchange_probes(exchange("h0"))).targets == ()
        await client.register_job(GPT)
        assignments = await client.register_flow_groups("gpt", [RING])
        await client.settle(0.0)
        [target] = (await client.exchange_probes(exchange("h0", 1))).targets
        there = assignments["ring"][0]
        assert (target.pair.source_address, target.pair.destination_address) == (
            there.source_address,
            there.destination_address,
        )
        assert target.source_ports == (there.source_port,)
        assert (await client.exchange_probes(exchange("h1"))).targets == ()
        await client.deregister("gpt")
        await client.settle(0.0)
        assert (await client.exchange_probes(exchange("h0", 2))).targets == ()

    run(scenario)


def test_only_the_agent_of_a_host_reports_for_it(run: Run, telemetry: Telemetry) -> None:
    async def scenario(client: DrivenConnection, _: RecordingSouthbound) -> None:
        await client.exchange_probes(exchange("h0"))
        client.owner_token = "another"
        flow = FiveTuple(IPv4Address("10.0.2.1"), IPv4Address("10.0.0.1"), 17, 50_000, 4791)
        probe = parse_probe(probe_packet(Probe(flow, 0, Mark(1, 0, 0, 0))))
        with pytest.raises(RefusedError, match="owner_token: host 'h0'") as refused:
            await client.exchange_probes(replace(exchange("h0", 1), reports=(ProbeReport(probe, 0),)))
        assert refused.value.reason is RefusalReason.NOT_OWNER
        assert telemetry.rejected == {RejectReason.NOT_OWNER: 1}
        with pytest.raises(RefusedError, match="host: unknown host 'h99'"):
            await client.exchange_probes(exchange("h99"))
        client.owner_token = ""
        with pytest.raises(RefusedError, match="owner_token"):
            await client.exchange_probes(exchange("h1"))

    run(scenario)
