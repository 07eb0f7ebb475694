"""Floods and nonsense are refused, bounded, and leave the server to others."""

import asyncio
import logging
import time
from collections.abc import Awaitable
from typing import Any
from unittest.mock import patch

import grpc.aio
import pytest
from finsy.grpcutil import GRPCStatusCode
from finsy.p4client import P4Client, P4ClientError
from finsy.proto import gnmi, gnmi_grpc, p4r, p4r_grpc

from emulator.p4runtime import gnmi as gnmi_service
from emulator.p4runtime import stream as stream_module
from emulator.p4runtime.clients import MAX_CONTROLLERS
from emulator.p4runtime.pipeline import Pipeline
from emulator.p4runtime.slicing import MAX_STEPS
from emulator.p4runtime.stream import MAX_WAITING, StreamSession
from tests.emulator.p4runtime.clients import advice, bid, primary, run, serving, set_pipeline, write
from tests.emulator.p4runtime.messages import INSERT, LEVEL, exact, set_level, table_entry

COMMIT = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
EVERYTHING = p4r.Entity(table_entry=p4r.TableEntry())


async def read(client: P4Client, request: p4r.ReadRequest) -> None:
    async for _ in client.request_iter(request):
        pass


async def refused(call: Awaitable[object]) -> P4ClientError:
    with pytest.raises(P4ClientError) as error:
        await call
    return error.value


def raw(channel: grpc.aio.Channel, method: str) -> Any:
    """A method that is called with bytes."""
    return (
        channel.stream_stream(method)
        if method.endswith(("StreamChannel", "Subscribe"))
        else channel.unary_unary(method)
    )


def test_a_read_of_everything_many_times_is_refused_and_others_are_served_meanwhile(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client, P4Client(served.address) as other:
            await client.request(set_pipeline(COMMIT, pipeline.message))
            updates = [
                p4r.Update(type=INSERT, entity=table_entry(f"{LEVEL} {exact(1, number)} {set_level(1)}"))
                for number in range(60)
            ]
            await client.request(write(*updates))
            many = p4r.ReadRequest(device_id=1, entities=[EVERYTHING] * 20_000)
            reading = asyncio.create_task(refused(read(client, many)))
            slowest_s = 0.0
            num_answers = 0
            while not reading.done():
                began_s = time.perf_counter()
                await other.request(p4r.CapabilitiesRequest())
                slowest_s = max(slowest_s, time.perf_counter() - began_s)
                num_answers += 1
            assert (await reading).code is GRPCStatusCode.RESOURCE_EXHAUSTED
            assert f"{MAX_STEPS:,} entities" in (await reading).message
            # The refused read takes seconds; in one piece it would have let one of these through.
            assert num_answers > 20

    run(test())


def test_a_read_that_takes_too_long_is_refused(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client:
            await client.request(set_pipeline(COMMIT, pipeline.message))
            with patch("emulator.p4runtime.slicing.MAX_CPU_S", 0.0):
                error = await refused(read(client, p4r.ReadRequest(device_id=1, entities=[EVERYTHING] * 1000)))
            assert (error.code, "takes longer" in error.message) == (GRPCStatusCode.RESOURCE_EXHAUSTED, True)
            await read(client, p4r.ReadRequest(device_id=1, entities=[EVERYTHING] * 10))

    run(test())


def test_a_write_of_too_many_updates_changes_nothing(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client:
            await client.request(set_pipeline(COMMIT, pipeline.message))
            entry = table_entry(f"{LEVEL} {exact(1, 9)} {set_level(1)}")
            updates = [p4r.Update(type=INSERT, entity=entry)] * (MAX_STEPS + 1)
            assert (await refused(client.request(write(*updates)))).code is GRPCStatusCode.RESOURCE_EXHAUSTED
            assert list(served.switches[1].entries("Ingress.level")) == []

    run(test())


def test_thousands_of_failed_updates_end_with_a_status_that_clients_accept(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client:
            await client.request(set_pipeline(COMMIT, pipeline.message))
            error = await refused(client.request(write(*[p4r.Update()] * 5000)))
            assert (error.code, error.message) == (
                GRPCStatusCode.UNKNOWN,
                "5000 of 5000 updates failed; they are too many to tell each apart",
            )

    run(test())


@pytest.mark.parametrize("method", ["/p4.v1.P4Runtime/Write", "/p4.v1.P4Runtime/Read", "/gnmi.gNMI/Get"])
def test_undecodable_requests_are_invalid_and_leave_no_traceback(
    pipeline: Pipeline, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, grpc.aio.insecure_channel(served.address) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await raw(channel, method)(b"\xff\xff\xff")
            assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    run(test())
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("method", ["/p4.v1.P4Runtime/StreamChannel", "/gnmi.gNMI/Subscribe"])
def test_undecodable_messages_end_a_stream_and_leave_no_traceback(
    pipeline: Pipeline, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, grpc.aio.insecure_channel(served.address) as channel:
            stream = raw(channel, method)()
            await stream.write(b"\xff\xff\xff")
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await stream.read()
            assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    run(test())
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_device_has_a_limited_number_of_controllers(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, grpc.aio.insecure_channel(served.address) as channel:
            streams: list[Any] = []
            for number in range(MAX_CONTROLLERS + 1):
                stream = p4r_grpc.P4RuntimeStub(channel).StreamChannel()
                streams.append(stream)
                update = p4r.MasterArbitrationUpdate(device_id=1, election_id=p4r.Uint128(low=number + 1))
                await stream.write(p4r.StreamMessageRequest(arbitration=update))
                if number < MAX_CONTROLLERS:
                    assert (await stream.read()).arbitration.status.code == 0
            with pytest.raises(grpc.aio.AioRpcError, match="32 controllers already") as error:
                await streams[-1].read()
            assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            streams[0].cancel()
            async with P4Client(served.address) as client:
                while True:
                    await bid(client, 99)
                    try:
                        assert await advice(client) == ("OK", 99)
                        break
                    except P4ClientError:
                        await asyncio.sleep(0.01)

    run(test())


def test_a_stream_without_a_bid_and_a_subscription_without_a_request_are_ended(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, grpc.aio.insecure_channel(served.address) as channel:
            for stream in (p4r_grpc.P4RuntimeStub(channel).StreamChannel(), gnmi_grpc.gNMIStub(channel).Subscribe()):
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    await stream.read()
                assert error.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED

    with patch.object(stream_module, "_FIRST_BID_S", 0.1), patch.object(gnmi_service, "_FIRST_REQUEST_S", 0.1):
        run(test())


def test_a_client_that_takes_no_packets_loses_them_and_one_that_takes_nothing_its_stream() -> None:
    async def test() -> None:
        session = StreamSession(1, {}, asyncio.Lock())
        packet = p4r.StreamMessageResponse(packet=p4r.PacketIn(payload=b"x"))
        for _ in range(2 * MAX_WAITING):
            session._send(packet)
        assert session._outbox.qsize() == MAX_WAITING
        assert not session._ending.done()
        session._send(p4r.StreamMessageResponse(arbitration=p4r.MasterArbitrationUpdate()))
        assert session._ending.result().code is grpc.StatusCode.RESOURCE_EXHAUSTED

    run(test())


def test_subscriptions_and_paths_are_limited(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, grpc.aio.insecure_channel(served.address) as channel:
            stub = gnmi_grpc.gNMIStub(channel)
            with pytest.raises(grpc.aio.AioRpcError, match="100 paths") as error:
                await stub.Get(gnmi.GetRequest(prefix=gnmi.Path(target="switch1"), path=[gnmi.Path()] * 101))
            assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            wanted = gnmi.SubscriptionList(
                prefix=gnmi.Path(target="switch1"),
                subscription=[gnmi.Subscription(mode=gnmi.SubscriptionMode.ON_CHANGE)],
            )
            with patch.object(gnmi_service, "MAX_SUBSCRIPTIONS_PER_SWITCH", 1):
                streams = [stub.Subscribe() for _ in range(3)]
                for stream in streams[:2]:
                    await stream.write(gnmi.SubscribeRequest(subscribe=wanted))
                    await stream.read()
                with pytest.raises(grpc.aio.AioRpcError, match="2 subscriptions") as error:
                    await streams[2].read()
                assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

    run(test())
