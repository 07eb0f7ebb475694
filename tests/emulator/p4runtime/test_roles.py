"""Roles of clients: each has its own primary, and writes what its config names."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from finsy.grpcutil import GRPCStatusCode
from finsy.p4client import P4Client, P4ClientError
from finsy.pbutil import to_any
from finsy.proto import U128, p4r, stratum

from emulator.observations import PacketIn
from emulator.p4runtime.clients import MAX_ROLES
from emulator.p4runtime.pipeline import Pipeline
from tests.emulator.p4runtime.clients import Served, advice, bid, primary, run, serving, set_pipeline
from tests.emulator.p4runtime.messages import INSERT, LEVEL, exact, flow_key, set_level, table_entry

FLOW_UPDATE = p4r.Update(type=INSERT, entity=table_entry(f"{flow_key()} {set_level(3)}"))
FLOW_TABLE = FLOW_UPDATE.entity.table_entry.table_id
COMMIT = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
LEVEL_UPDATE = p4r.Update(type=INSERT, entity=table_entry(f"{LEVEL} {exact(1, 8)} {set_level(1)}"))


def role(name: str, *exclusive: int, receives_packet_ins: bool = False) -> p4r.Role:
    """A role with a config."""
    config = stratum.P4RoleConfig(exclusive_p4_ids=exclusive, receives_packet_ins=receives_packet_ins)
    return p4r.Role(name=name, config=to_any(config))


def filtering(port: int) -> p4r.Role:
    """A role that receives the packets that came in by a port."""
    config = stratum.P4RoleConfig(receives_packet_ins=True)
    config.packet_in_filter.metadata_id, config.packet_in_filter.value = 5, bytes([0, port])
    return p4r.Role(name="third", config=to_any(config))


@asynccontextmanager
async def primary_in(served: Served, wanted: p4r.Role, election_id: int = 5) -> AsyncIterator[P4Client]:
    """A client that has become primary of a role on device 1."""
    async with P4Client(served.address) as client:
        await bid(client, election_id, role=wanted)
        update = (await client.receive()).arbitration
        assert (update.status.code, update.role.name) == (0, wanted.name)
        yield client


def write_as(name: str, *updates: p4r.Update) -> p4r.WriteRequest:
    return p4r.WriteRequest(device_id=1, role=name, election_id=U128.encode(5), updates=updates)


async def refusal(
    client: P4Client, request: p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest
) -> P4ClientError:
    with pytest.raises(P4ClientError) as error:
        await client.request(request)
    return error.value


def test_each_role_has_its_own_primary_with_the_same_election_id(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with (
            serving(pipeline) as served,
            primary(served) as all_of_it,
            primary_in(served, role("flows", FLOW_TABLE)) as flows,
        ):
            await all_of_it.request(set_pipeline(COMMIT, pipeline.message))
            await flows.request(write_as("flows", FLOW_UPDATE))
            await all_of_it.request(p4r.WriteRequest(device_id=1, election_id=U128.encode(5), updates=[LEVEL_UPDATE]))
            async with P4Client(served.address) as second:
                await bid(second, 5, role=role("flows", FLOW_TABLE))
                with pytest.raises(P4ClientError, match="election id 5 exists"):
                    await second.receive()
            async with P4Client(served.address) as second:
                await bid(second, 6, role=role("flows", FLOW_TABLE))
                assert await advice(second) == ("OK", 6)
                assert await advice(flows) == ("ALREADY_EXISTS", 6)
            await bid(all_of_it, 5)
            assert await advice(all_of_it) == ("OK", 5)

    run(test())


def test_a_role_writes_and_reads_what_its_config_names_and_nothing_else(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with (
            serving(pipeline) as served,
            primary(served) as all_of_it,
            primary_in(served, role("flows", FLOW_TABLE)) as flows,
        ):
            await all_of_it.request(set_pipeline(COMMIT, pipeline.message))
            error = await refusal(flows, write_as("flows", LEVEL_UPDATE, FLOW_UPDATE))
            assert {at: detail.canonical_code for at, detail in error.details.items()} == {
                0: GRPCStatusCode.PERMISSION_DENIED
            }
            assert "role 'flows' does not include this table_entry" in error.details[0].message
            await all_of_it.request(p4r.WriteRequest(device_id=1, election_id=U128.encode(5), updates=[LEVEL_UPDATE]))
            for name, count in (("flows", 1), ("", 3)):
                request = p4r.ReadRequest(device_id=1, role=name, entities=[table_entry("")])
                found = [entity async for response in flows.request_iter(request) for entity in response.entities]
                assert len(found) == count, name

    run(test())


def test_a_role_without_a_config_writes_everything_and_sets_pipelines(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary_in(served, p4r.Role(name="free")) as client:
            request = set_pipeline(COMMIT, pipeline.message)
            request.role = "free"
            await client.request(request)
            await client.request(write_as("free", FLOW_UPDATE, LEVEL_UPDATE))

    run(test())


def test_a_pipeline_is_refused_to_a_role_that_sets_none(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary_in(served, role("flows", FLOW_TABLE)) as client:
            request = set_pipeline(COMMIT, pipeline.message)
            request.role = "flows"
            error = await refusal(client, request)
            assert (error.code, error.message) == (GRPCStatusCode.PERMISSION_DENIED, "role 'flows' sets no pipeline")

    run(test())


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [
        (role("other", FLOW_TABLE), GRPCStatusCode.INVALID_ARGUMENT, "role 'flows' has 0x.* exclusively"),
        (
            p4r.Role(name="other", config=to_any(p4r.Role(name="x"))),
            GRPCStatusCode.INVALID_ARGUMENT,
            "not a stratum.P4RoleConfig",
        ),
        (role("", FLOW_TABLE), GRPCStatusCode.INVALID_ARGUMENT, "the default role has no config"),
        (p4r.Role(name="x" * 300), GRPCStatusCode.INVALID_ARGUMENT, "more than 256 characters"),
    ],
)
def test_a_config_that_contradicts_is_refused(
    pipeline: Pipeline, wanted: p4r.Role, code: GRPCStatusCode, message: str
) -> None:
    async def test() -> None:
        async with (
            serving(pipeline) as served,
            primary_in(served, role("flows", FLOW_TABLE)),
            P4Client(served.address) as client,
        ):
            await bid(client, 5, role=wanted)
            with pytest.raises(P4ClientError, match=message) as error:
                await client.receive()
            assert error.value.code is code

    run(test())


def test_all_of_a_role_are_told_the_config_of_its_primary(pipeline: Pipeline) -> None:
    async def test() -> None:
        first, second = role("flows", FLOW_TABLE), role("flows", FLOW_TABLE, receives_packet_ins=True)
        async with serving(pipeline) as served, primary_in(served, first) as client, P4Client(served.address) as backup:
            await bid(backup, 4, role=second)
            assert (await backup.receive()).arbitration.role == first
            await bid(client, 5, role=second)
            for other in (backup, client):
                assert (await other.receive()).arbitration.role == second

    run(test())


def test_a_stream_keeps_its_role(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary_in(served, role("flows", FLOW_TABLE)) as client:
            await bid(client, 6)
            with pytest.raises(P4ClientError, match="the stream belongs to role 'flows'") as error:
                await client.receive()
            assert error.value.code is GRPCStatusCode.FAILED_PRECONDITION

    run(test())


def test_roles_are_not_made_without_end(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served:
            for number in range(MAX_ROLES):
                async with P4Client(served.address) as client:
                    await bid(client, 5, role=p4r.Role(name=f"role{number}"))
                    if number < MAX_ROLES - 1:
                        assert await advice(client) == ("OK", 5)
                    else:
                        with pytest.raises(P4ClientError, match="16 roles already"):
                            await client.receive()

    run(test())


def test_packets_go_to_roles_that_receive_them(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with (
            serving(pipeline) as served,
            primary(served) as all_of_it,
            primary_in(served, role("deaf", FLOW_TABLE)) as deaf,
            primary_in(served, role("hearing", receives_packet_ins=True)) as hearing,
            primary_in(served, filtering(port=3)) as third,
        ):
            await all_of_it.request(set_pipeline(COMMIT, pipeline.message))
            for port in (2, 3):
                served.service.deliver([PacketIn("switch1", 0, (port << 7).to_bytes(2, "big") + bytes([port]))])
            for client, expected in ((all_of_it, [2, 3]), (hearing, [2, 3]), (third, [3])):
                assert [(await client.receive()).packet.payload[0] for _ in expected] == expected
            for client, name in ((deaf, "deaf"), (third, "third")):
                wanted = role("deaf", FLOW_TABLE) if name == "deaf" else filtering(port=3)
                await bid(client, 5, role=wanted)
                assert (await client.receive()).HasField("arbitration")
            update = p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=b"x"))
            await hearing.send(update)
            assert (await hearing.receive()).WhichOneof("update") == "error"

    run(test())
