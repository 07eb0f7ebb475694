"""Invalid requests over the wire: each is refused with its status and its field, and changes nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
import pytest

from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire
from tests.hostlib.served import Served, served
from tests.patience import PATIENCE_S

_INVALID, _DENIED = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.PERMISSION_DENIED
_TAKEN, _UNKNOWN = grpc.StatusCode.ALREADY_EXISTS, grpc.StatusCode.NOT_FOUND
_OWNER, _FOREIGNER = "owner", "foreigner"


def _job(**changes: Any) -> wire.RegisterJobRequest:
    fields: dict[str, Any] = {
        "protocol_version": "trainyard.v1",
        "name": "gpt",
        "hosts": ["h0", "h2"],
        "gpus": 16,
        "profile": wire.Profile(compute_s=1.0, comm_start=0.5, work=16.0),
        "owner_token": _OWNER,
    }
    return wire.RegisterJobRequest(**fields | changes)


def _flow(**changes: Any) -> wire.Flow:
    fields: dict[str, Any] = {"source": wire.Nic(host="h0"), "destination": wire.Nic(host="h2"), "size_bytes": 10**9}
    return wire.Flow(**fields | changes)


def _groups(*flows: wire.Flow, owner_token: str = _OWNER, name: str = "ring") -> wire.RegisterFlowGroupsRequest:
    group = wire.FlowGroup(name=name, flows=flows)
    return wire.RegisterFlowGroupsRequest(job="gpt", flow_groups=[group], owner_token=owner_token)


async def _ask(channel: grpc.aio.Channel, path: str, request: bytes) -> grpc.aio.AioRpcError | None:
    """The refusal of a request; None where it was answered."""
    try:
        async for _ in channel.unary_stream(path)(request, timeout=PATIENCE_S):
            break
    except grpc.aio.AioRpcError as error:
        return error
    return None


def _run(scenario: Callable[[Served, grpc.aio.Channel], Awaitable[None]]) -> None:
    async def connected() -> None:
        async with (
            served(plans_by_itself=False) as controller,
            grpc.aio.insecure_channel(controller.address) as channel,
        ):
            assert await _ask(channel, methods.REGISTER_JOB.path, _job().SerializeToString()) is None
            held = _groups(_flow(five_tuple=_five_tuple(controller, 50_000)), name="held").SerializeToString()
            assert await _ask(channel, methods.REGISTER_FLOW_GROUPS.path, held) is None
            await asyncio.wait_for(scenario(controller, channel), PATIENCE_S)

    asyncio.run(connected())


def _five_tuple(controller: Served, source_port: int) -> wire.FiveTuple:
    nics = controller.routing.fabric.nics
    return wire.FiveTuple(
        source_address=nics["h0"][0].address,
        destination_address=nics["h2"][0].address,
        protocol=17,
        source_port=source_port,
        destination_port=4791,
    )


def _pairs(*hosts: tuple[str, str], nic: int = 0, times: int = 1) -> wire.GetPathLoadsRequest:
    pairs = [
        wire.NicPair(source=wire.Nic(host=source), destination=wire.Nic(host=destination, nic=nic))
        for source, destination in hosts
    ]
    return wire.GetPathLoadsRequest(pairs=pairs * times)


_IMPOSSIBLE = [
    (methods.REGISTER_JOB, _job(protocol_version="trainyard.v2"), _INVALID, "protocol_version"),
    (methods.REGISTER_JOB, _job(name="bert", hosts=["h0", "h9"]), _INVALID, "hosts[1]"),
    (methods.REGISTER_JOB, _job(name=""), _INVALID, "name"),
    (methods.REGISTER_JOB, _job(name="j" * 1000), _INVALID, "name"),
    (methods.REGISTER_JOB, _job(name="gpt/ring"), _INVALID, "name"),
    (methods.REGISTER_JOB, _job(name="bert\n\x1b[31mRED"), _INVALID, "name"),
    (methods.REGISTER_JOB, _job(name="bert", gpus=0), _INVALID, "gpus"),
    (methods.REGISTER_JOB, _job(name="bert", gpus=17), _INVALID, "gpus"),
    (methods.REGISTER_JOB, _job(owner_token=""), _INVALID, "owner_token"),
    (methods.REGISTER_JOB, _job(gpus=8), _TAKEN, "name"),
    (methods.REGISTER_JOB, _job(owner_token=_FOREIGNER), _DENIED, "owner_token"),
    (methods.REGISTER_FLOW_GROUPS, _groups(_flow(), owner_token=_FOREIGNER), _DENIED, "owner_token"),
    (methods.REGISTER_FLOW_GROUPS, _groups(_flow(), name="ring/0"), _INVALID, "flow_groups[0].name"),
    (methods.REGISTER_FLOW_GROUPS, _groups(_flow(), name="ring\x07"), _INVALID, "flow_groups[0].name"),
    (methods.REGISTER_FLOW_GROUPS, _groups(_flow(source=wire.Nic(host="h9"))), _INVALID, "flows[0].source.host"),
    (methods.REGISTER_FLOW_GROUPS, _groups(_flow(size_bytes=(1 << 63) + 1)), _INVALID, "flows[0].size_bytes"),
    (methods.REGISTER_FLOW_GROUPS, _groups(_flow(), _flow(offset_s=-0.1)), _INVALID, "flows[1].offset_s"),
    (methods.REGISTER_FLOW_GROUPS, _groups(_flow(held_source_port=80)), _INVALID, "flows[0].held_source_port"),
    (methods.HEARTBEAT, wire.HeartbeatRequest(job="gpt", owner_token=_FOREIGNER), _DENIED, "owner_token"),
    (methods.HEARTBEAT, wire.HeartbeatRequest(job="bert", owner_token=_OWNER), _UNKNOWN, "job"),
    (methods.DEREGISTER_JOB, wire.DeregisterJobRequest(job="gpt", owner_token=_FOREIGNER), _DENIED, "owner_token"),
    (methods.DIRECTIVES, wire.DirectivesRequest(job="gpt", owner_token=_FOREIGNER), _DENIED, "owner_token"),
    (methods.LOCATE_NICS, wire.LocateNicsRequest(addresses=[0] * 4097), _INVALID, "addresses"),
    (methods.GET_PATH_LOADS, _pairs(("h0", "h2"), times=1025), _INVALID, "pairs"),
    (methods.GET_PATH_LOADS, _pairs(("h0", "h2"), ("h9", "h2")), _INVALID, "pairs[1].source.host"),
    (methods.GET_PATH_LOADS, _pairs(("h0", "h2"), ("", "h2")), _INVALID, "pairs[1].source.host"),
    (methods.GET_PATH_LOADS, _pairs(("h0", "h2"), nic=1), _INVALID, "pairs[0].destination.nic"),
    (methods.GET_PATH_LOADS, _pairs(("h0", "h0")), _INVALID, "pairs[0].destination.host"),
    (
        methods.REPORT_PROFILE,
        wire.ReportProfileRequest(job="gpt", owner_token=_FOREIGNER, profile=wire.Profile(compute_s=1)),
        _DENIED,
        "owner_token",
    ),
    (
        methods.REPORT_PROFILE,
        wire.ReportProfileRequest(job="gpt", owner_token=_OWNER, profile=wire.Profile(compute_s=-1)),
        _INVALID,
        "profile.compute_s",
    ),
    (
        methods.START_FLOW_GROUPS,
        wire.StartFlowGroupsRequest(
            job="gpt", owner_token=_OWNER, instances=[wire.FlowGroupInstance(flow_group="reduce")]
        ),
        _INVALID,
        "instances[0].flow_group",
    ),
    (
        methods.START_FLOW_GROUPS,
        wire.StartFlowGroupsRequest(
            job="gpt", owner_token=_OWNER, instances=[wire.FlowGroupInstance(flow_group="held", iteration=1 << 63)]
        ),
        _INVALID,
        "instances[0].iteration",
    ),
]


@pytest.mark.parametrize(("method", "request_", "status", "field"), _IMPOSSIBLE)
def test_invalid_fields_are_refused_by_name_and_change_nothing(
    method: methods.Method[Any, Any], request_: Any, status: grpc.StatusCode, field: str
) -> None:
    async def scenario(controller: Served, channel: grpc.aio.Channel) -> None:
        before = controller.registry.jobs
        refusal = await _ask(channel, method.path, request_.SerializeToString())
        assert refusal is not None
        assert (refusal.code(), field in (refusal.details() or "")) == (status, True), refusal.details()
        assert controller.registry.jobs == before

    _run(scenario)


def test_a_5_tuple_that_a_flow_has_is_refused_to_another() -> None:
    async def scenario(controller: Served, channel: grpc.aio.Channel) -> None:
        before = controller.registry.jobs
        taken, free = _five_tuple(controller, 50_000), _five_tuple(controller, 50_001)
        for flows in ([_flow(five_tuple=free), _flow(five_tuple=taken)], [_flow(five_tuple=free)] * 2):
            request = _groups(*flows).SerializeToString()
            refusal = await _ask(channel, methods.REGISTER_FLOW_GROUPS.path, request)
            assert refusal is not None
            assert refusal.code() is _TAKEN
            assert "flow_groups[0].flows[1].five_tuple" in (refusal.details() or "")
            assert controller.registry.jobs == before

    _run(scenario)


@pytest.mark.parametrize("garbage", [b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x02\xc3\x28"])
def test_garbage_is_refused_and_the_connection_goes_on(garbage: bytes) -> None:
    async def scenario(_: Served, channel: grpc.aio.Channel) -> None:
        refusal = await _ask(channel, methods.REGISTER_JOB.path, garbage)
        assert refusal is not None
        assert refusal.code() is _INVALID
        assert "trainyard.v1.RegisterJobRequest" in (refusal.details() or "")
        assert await _ask(channel, methods.REGISTER_JOB.path, _job().SerializeToString()) is None

    _run(scenario)


def test_a_message_of_more_than_four_mebibytes_is_refused() -> None:
    async def scenario(_: Served, channel: grpc.aio.Channel) -> None:
        refusal = await _ask(channel, methods.REGISTER_JOB.path, bytes(5 << 20))
        assert refusal is not None
        assert refusal.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

    _run(scenario)


@pytest.mark.parametrize("path", ["/trainyard.v2.Controller/RegisterJob", "/trainyard.v1.Controller/Forget"])
def test_unknown_methods_are_unimplemented(path: str) -> None:
    async def scenario(_: Served, channel: grpc.aio.Channel) -> None:
        refusal = await _ask(channel, path, _job().SerializeToString())
        assert refusal is not None
        assert refusal.code() is grpc.StatusCode.UNIMPLEMENTED

    _run(scenario)
