"""The service and the host library's client over gRPC on loopback; the clock is driven."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from ipaddress import IPv4Address

import grpc
import grpc.aio
import pytest

from controller.planning.directives import DirectivePublisher, JobDirectives
from controller.registry.registry import Registry
from controller.southbound.recording import RecordingSouthbound
from hostlib.errors import RefusalReason, RefusedError, UnreachableError
from hostlib.types import FlowGroup, Job, Nic
from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire
from tests.controller.api.serving import BERT, BERT_AS_GPT, GPT, OTHER_RING, RING, Run, served
from tests.driven import DrivenConnection
from tests.patience import until
from topologies.routing import Routing


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
        async with served(registry, routing) as (address, _), grpc.aio.insecure_channel(address) as channel:
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
