"""Arbitration between clients on real streams."""

import pytest
from finsy.grpcutil import GRPCStatusCode
from finsy.p4client import P4Client, P4ClientError
from finsy.proto import p4r, rpc_code

from emulator.p4runtime.pipeline import Pipeline
from tests.emulator.p4runtime.clients import advice, bid, primary, run, serving

LARGE_ID = (1 << 64) + 7


def test_primary_backup_and_the_time_without_a_primary(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, P4Client(served.address) as backup:
            async with primary(served, LARGE_ID):
                await bid(backup, 4)
                assert await advice(backup) == ("ALREADY_EXISTS", LARGE_ID)
            assert await advice(backup) == ("NOT_FOUND", LARGE_ID)
            await bid(backup, LARGE_ID - 1)
            assert await advice(backup) == ("NOT_FOUND", LARGE_ID)
            await bid(backup, LARGE_ID)
            assert await advice(backup) == ("OK", LARGE_ID)

    run(test())


def test_a_higher_bid_takes_over_and_both_are_told(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served, 5) as first, P4Client(served.address) as second:
            await bid(second, 6)
            assert await advice(second) == ("OK", 6)
            assert await advice(first) == ("ALREADY_EXISTS", 6)

    run(test())


def test_an_unset_id_before_any_primary(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, P4Client(served.address) as client:
            await bid(client, None)
            assert await advice(client) == ("NOT_FOUND", None)

    run(test())


def test_devices_have_their_own_primaries(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served, 5), P4Client(served.address) as other:
            await bid(other, 5, device_id=2)
            assert await advice(other) == ("OK", 5)

    run(test())


@pytest.mark.parametrize(
    ("election_id", "device_id", "role", "code", "message"),
    [
        (5, 1, None, GRPCStatusCode.INVALID_ARGUMENT, "election id 5 exists"),
        (6, 9, None, GRPCStatusCode.NOT_FOUND, "there is no device 9"),
        (6, 1, p4r.Role(id=3), GRPCStatusCode.UNIMPLEMENTED, "roles by number are not supported"),
    ],
)
def test_a_refused_bid_ends_the_stream_and_leaves_the_primary(
    pipeline: Pipeline, election_id: int, device_id: int, role: p4r.Role | None, code: GRPCStatusCode, message: str
) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as first, P4Client(served.address) as second:
            await bid(second, election_id, device_id, role)
            with pytest.raises(P4ClientError, match=message) as error:
                await second.receive()
            assert error.value.code is code
            assert error.value.is_election_id_used == (election_id == 5)
            await bid(first, 5)
            assert await advice(first) == ("OK", 5)

    run(test())


def test_a_stream_keeps_its_device(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client, P4Client(served.address) as other:
            await bid(client, 6, device_id=2)
            with pytest.raises(P4ClientError, match="the stream belongs to device 1") as error:
                await client.receive()
            assert error.value.code is GRPCStatusCode.FAILED_PRECONDITION
            await bid(other, 5)
            assert await advice(other) == ("OK", 5)

    run(test())


@pytest.mark.parametrize(
    ("request_message", "code", "details", "named"),
    [
        (
            p4r.StreamMessageRequest(digest_ack=p4r.DigestListAck(digest_id=1)),
            rpc_code.FAILED_PRECONDITION,
            "digest_list_ack",
            "No forwarding pipeline config set",
        ),
        (p4r.StreamMessageRequest(), rpc_code.INVALID_ARGUMENT, "other", "not set"),
    ],
)
def test_other_stream_messages_are_refused_by_name(
    pipeline: Pipeline,
    request_message: p4r.StreamMessageRequest,
    code: rpc_code.Code.ValueType,
    details: str,
    named: str,
) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client:
            await client.send(request_message)
            error = (await client.receive()).error
            assert (error.canonical_code, error.WhichOneof("details")) == (code, details)
            assert named in error.message

    run(test())
