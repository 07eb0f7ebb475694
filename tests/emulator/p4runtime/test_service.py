"""The calls of the service, by a bare client."""

import asyncio
import json
from typing import cast

import pytest
from finsy.grpcutil import GRPCStatusCode
from finsy.p4client import P4Client, P4ClientError
from finsy.proto import U128, p4r

from emulator.p4runtime.pipeline import Pipeline
from emulator.p4runtime.server import MAX_REQUEST_BYTES
from tests.emulator.p4runtime.clients import advice, bid, primary, run, serving, set_pipeline, write
from tests.emulator.p4runtime.messages import INSERT, LEVEL, exact, flow_key, set_level, table_entry

Set = p4r.SetForwardingPipelineConfigRequest
GET = p4r.GetForwardingPipelineConfigRequest(device_id=1)
Request = (
    p4r.WriteRequest | p4r.ReadRequest | p4r.SetForwardingPipelineConfigRequest | p4r.GetForwardingPipelineConfigRequest
)
FLOW_UPDATE = p4r.Update(type=INSERT, entity=table_entry(f"{flow_key()} {set_level(5)}"))


async def refused(client: P4Client, request: Request, code: GRPCStatusCode, message: str) -> None:
    """The request must fail so."""
    with pytest.raises(P4ClientError, match=message) as error:
        await (gather(client, request, []) if isinstance(request, p4r.ReadRequest) else client.request(request))
    assert error.value.code is code


async def gather(client: P4Client, request: p4r.ReadRequest, responses: list[p4r.ReadResponse]) -> None:
    """Collect the messages of a read, until it ends or fails."""
    async for response in client.request_iter(request):
        responses.append(response)


async def read(client: P4Client, *entities: p4r.Entity) -> list[p4r.ReadResponse]:
    """The messages of a read of device 1."""
    responses: list[p4r.ReadResponse] = []
    await gather(client, p4r.ReadRequest(device_id=1, entities=entities), responses)
    return responses


def with_cookie(pipeline: Pipeline, cookie: int) -> p4r.ForwardingPipelineConfig:
    config = p4r.ForwardingPipelineConfig()
    config.CopyFrom(pipeline.message)
    config.cookie.cookie = cookie
    return config


def test_capabilities(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, P4Client(served.address) as client:
            reply = await client.request(p4r.CapabilitiesRequest())
            assert reply.p4runtime_api_version == "1.4.1"

    run(test())


def test_before_a_pipeline_is_set_there_is_nothing_to_do(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client:
            for request in (GET, write(FLOW_UPDATE), p4r.ReadRequest(device_id=1)):
                await refused(client, request, GRPCStatusCode.FAILED_PRECONDITION, "No forwarding pipeline config set")
            await client.request(set_pipeline(Set.VERIFY, pipeline.message))
            await refused(client, GET, GRPCStatusCode.FAILED_PRECONDITION, "No forwarding pipeline config set")
            assert served.switches[1].commits == 0

    run(test())


def test_commit_empties_the_switch_and_reconcile_does_not(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client:
            await client.request(set_pipeline(Set.VERIFY_AND_COMMIT, with_cookie(pipeline, 7)))
            assert (await client.request(GET)).config == with_cookie(pipeline, 7)
            await client.request(write(FLOW_UPDATE))
            await client.request(set_pipeline(Set.RECONCILE_AND_COMMIT, with_cookie(pipeline, 8)))
            assert (await client.request(GET)).config.cookie.cookie == 8
            assert len(list(served.switches[1].entries("Ingress.flow"))) == 1
            await client.request(set_pipeline(Set.VERIFY_AND_COMMIT, pipeline.message))
            assert list(served.switches[1].entries("Ingress.flow")) == []
            assert not (await client.request(GET)).config.HasField("cookie")
            assert [switch.commits for switch in served.switches.values()] == [2, 0]

    run(test())


def test_a_refused_pipeline_changes_nothing(pipeline: Pipeline) -> None:
    document = json.loads(pipeline.message.p4_device_config)
    document["program"] = "other.p4"
    other = with_cookie(pipeline, 1)
    other.p4_device_config = json.dumps(document).encode()
    torn = with_cookie(pipeline, 1)
    torn.p4_device_config = torn.p4_device_config[:-5]
    other_sizes = with_cookie(pipeline, 1)
    other_sizes.p4info.action_profiles[0].max_group_size += 1
    no_p4info = p4r.ForwardingPipelineConfig(p4_device_config=b"{}")
    missing = GRPCStatusCode.INVALID_ARGUMENT
    unsupported = GRPCStatusCode.UNIMPLEMENTED

    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client:
            await client.request(set_pipeline(Set.VERIFY_AND_COMMIT, pipeline.message))
            await client.request(write(FLOW_UPDATE))
            for action in (Set.VERIFY, Set.VERIFY_AND_SAVE, Set.VERIFY_AND_COMMIT, Set.RECONCILE_AND_COMMIT):
                named = r"compiled for small.p4 \(\w+\) and cannot run other.p4 \(\w+\)"
                await refused(client, set_pipeline(action, other), unsupported, named)
                await refused(client, set_pipeline(action, torn), missing, "not a BMv2 JSON")
                await refused(client, set_pipeline(action, no_p4info), missing, "no P4Info")
                await refused(client, set_pipeline(action, None), missing, "no P4Info")
            changed = r"cannot be kept: action profile Ingress\.ecmp differs"
            await refused(client, set_pipeline(Set.RECONCILE_AND_COMMIT, other_sizes), missing, changed)
            await refused(client, set_pipeline(Set.COMMIT, None), GRPCStatusCode.NOT_FOUND, "no saved pipeline")
            await refused(client, set_pipeline(Set.UNSPECIFIED, pipeline.message), missing, "action of .* is not set")
            unknown = cast(Set.Action.ValueType, 9)
            await refused(client, set_pipeline(unknown, pipeline.message), missing, "the unknown number 9")
            assert (await client.request(GET)).config == pipeline.message
            assert len(list(served.switches[1].entries("Ingress.flow"))) == 1

    run(test())


def test_only_the_primary_may_change_anything(pipeline: Pipeline) -> None:
    async def test() -> None:
        commit = set_pipeline(Set.VERIFY_AND_COMMIT, pipeline.message)
        async with serving(pipeline) as served, P4Client(served.address) as reader:
            await refused(reader, commit, GRPCStatusCode.PERMISSION_DENIED, "device 1 has no primary")
            async with primary(served) as client:
                await client.request(commit)
                for election_id in (4, 6):
                    request = write(FLOW_UPDATE, election_id=election_id)
                    await refused(reader, request, GRPCStatusCode.PERMISSION_DENIED, f"election id {election_id}")
                unset = p4r.WriteRequest(device_id=1, updates=[FLOW_UPDATE])
                await refused(reader, unset, GRPCStatusCode.PERMISSION_DENIED, "election id None")
                await client.request(write(FLOW_UPDATE))
                (response,) = await read(reader, table_entry(""))
                assert len(response.entities) == 2

    run(test())


def test_a_write_that_waited_while_another_became_primary_is_denied(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client, P4Client(served.address) as second:
            await client.request(set_pipeline(Set.VERIFY_AND_COMMIT, pipeline.message))
            async with served.exclusive:
                waiting = asyncio.create_task(client.request(write(FLOW_UPDATE)))
                await bid(second, 6)
                assert await advice(second) == ("OK", 6)
                assert not waiting.done()
            with pytest.raises(P4ClientError) as error:
                await waiting
            assert error.value.code is GRPCStatusCode.PERMISSION_DENIED
            assert list(served.switches[1].entries("Ingress.flow")) == []

    run(test())


@pytest.mark.parametrize(
    ("request_message", "code", "message"),
    [
        (p4r.WriteRequest(device_id=9), GRPCStatusCode.NOT_FOUND, "no device 9"),
        (p4r.ReadRequest(device_id=9), GRPCStatusCode.NOT_FOUND, "no device 9"),
        (p4r.GetForwardingPipelineConfigRequest(device_id=9), GRPCStatusCode.NOT_FOUND, "no device 9"),
        (p4r.SetForwardingPipelineConfigRequest(device_id=9), GRPCStatusCode.NOT_FOUND, "no device 9"),
        (p4r.WriteRequest(device_id=1, role="telemetry"), GRPCStatusCode.NOT_FOUND, "no role 'telemetry'"),
        (p4r.ReadRequest(device_id=1, role="telemetry"), GRPCStatusCode.NOT_FOUND, "no role 'telemetry'"),
        (
            p4r.WriteRequest(device_id=1, election_id=U128.encode(5), atomicity=p4r.WriteRequest.DATAPLANE_ATOMIC),
            GRPCStatusCode.UNIMPLEMENTED,
            "DATAPLANE_ATOMIC",
        ),
        (
            p4r.WriteRequest(
                device_id=1, election_id=U128.encode(5), atomicity=cast(p4r.WriteRequest.Atomicity.ValueType, 9)
            ),
            GRPCStatusCode.UNIMPLEMENTED,
            "atomicity 9",
        ),
    ],
)
def test_requests_refused_as_a_whole(
    pipeline: Pipeline, request_message: Request, code: GRPCStatusCode, message: str
) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client:
            await client.request(set_pipeline(Set.VERIFY_AND_COMMIT, pipeline.message))
            await refused(client, request_message, code, message)

    run(test())


def test_a_read_tells_which_of_its_parts_failed_after_it_gave_the_others(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client:
            await client.request(set_pipeline(Set.VERIFY_AND_COMMIT, pipeline.message))
            request = p4r.ReadRequest(device_id=1, entities=[table_entry(""), p4r.Entity()])
            responses: list[p4r.ReadResponse] = []
            with pytest.raises(P4ClientError) as error:
                await gather(client, request, responses)
            assert error.value.code is GRPCStatusCode.UNKNOWN
            assert {at: detail.canonical_code for at, detail in error.value.details.items()} == {
                1: GRPCStatusCode.INVALID_ARGUMENT
            }
            assert [len(response.entities) for response in responses] == [1]

    run(test())


def test_a_large_read_comes_in_several_messages(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client:
            await client.request(set_pipeline(Set.VERIFY_AND_COMMIT, pipeline.message))
            for dscp in range(50):
                entity = table_entry(f"{LEVEL} {exact(1, dscp)} {set_level(1)}")
                entity.table_entry.metadata = bytes(200_000)
                await client.request(write(p4r.Update(type=INSERT, entity=entity)))
            responses = await read(client, table_entry(LEVEL))
            assert len(responses) > 1
            assert sum(len(response.entities) for response in responses) == 50

    run(test())


def test_a_request_that_is_too_long_is_refused_and_the_server_serves_on(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, P4Client(served.address) as client:
            config = p4r.ForwardingPipelineConfig(p4_device_config=bytes(MAX_REQUEST_BYTES))
            await refused(client, set_pipeline(Set.VERIFY, config), GRPCStatusCode.RESOURCE_EXHAUSTED, "larger")
            await client.request(p4r.CapabilitiesRequest())

    run(test())


def test_a_switch_that_goes_down_ends_its_streams_and_comes_back_without_a_pipeline(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client, P4Client(served.address) as other:
            await client.request(set_pipeline(Set.VERIFY_AND_COMMIT, pipeline.message))
            await bid(other, 5, device_id=2)
            assert await advice(other) == ("OK", 5)
            served.switches[1].shut_down()
            with pytest.raises(P4ClientError, match="has gone down") as ended:
                await client.receive()
            assert ended.value.code is GRPCStatusCode.UNAVAILABLE
            for request in (write(FLOW_UPDATE), GET, p4r.ReadRequest(device_id=1)):
                await refused(client, request, GRPCStatusCode.UNAVAILABLE, "switch switch1 is down")
            async with P4Client(served.address) as early:
                await bid(early, 6)
                with pytest.raises(P4ClientError, match="switch switch1 is down"):
                    await early.receive()
            served.switches[1].power.turn_on()
            await refused(client, GET, GRPCStatusCode.FAILED_PRECONDITION, "No forwarding pipeline")
            commits = served.switches[1].commits
            async with primary(served, 7) as again:
                await again.request(set_pipeline(Set.RECONCILE_AND_COMMIT, pipeline.message, 7))
                assert served.switches[1].commits == commits + 1
                await again.request(write(FLOW_UPDATE, election_id=7))
            await bid(other, 6, device_id=2)
            assert await advice(other) == ("OK", 6)

    run(test())
