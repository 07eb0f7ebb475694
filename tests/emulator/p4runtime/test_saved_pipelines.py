"""Pipelines that are saved and committed later, and P4Infos under which a device keeps its state."""

import asyncio

import pytest
from finsy.grpcutil import GRPCStatusCode
from finsy.p4client import P4Client, P4ClientError
from finsy.proto import p4i, p4r

from emulator.entries import ActionCall, EntryKey, FieldMatch
from emulator.p4runtime import update_log
from emulator.p4runtime.pipeline import Pipeline, load_pipeline
from emulator.p4runtime.reconciliation import difference
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from tests.bmv2.session import Packet
from tests.bmv2.small_programs import AGEING, EmulatedProgram
from tests.emulator.p4runtime.clients import advice, bid, primary, run, serving, set_pipeline, write
from tests.emulator.p4runtime.messages import INSERT, flow_key, set_level, table_entry

Set = p4r.SetForwardingPipelineConfigRequest
GET = p4r.GetForwardingPipelineConfigRequest(device_id=1)
KEY = EntryKey((FieldMatch(33, 0xFFFFFFFF), FieldMatch(80, 0xFFF)))


def insert(source: int, level: int) -> p4r.Update:
    """Insert a flow."""
    return p4r.Update(type=INSERT, entity=table_entry(f"{flow_key(source)} {set_level(level)}"))


def with_cookie(pipeline: Pipeline, cookie: int) -> p4r.ForwardingPipelineConfig:
    """The pipeline with a cookie."""
    message = p4r.ForwardingPipelineConfig()
    message.CopyFrom(pipeline.message)
    message.cookie.cookie = cookie
    return message


async def levels(client: P4Client) -> list[int]:
    """The levels of all flows, as a controller reads them."""
    request = p4r.ReadRequest(device_id=1, entities=[p4r.Entity(table_entry=p4r.TableEntry())])
    found = [entity.table_entry async for r in client.request_iter(request) for entity in r.entities]
    return [entry.action.action.params[0].value[0] for entry in found if len(entry.match) == 2]


async def refused(client: P4Client, request: Set, code: GRPCStatusCode, named: str) -> None:
    """The request is refused with a status and words."""
    with pytest.raises(P4ClientError, match=named) as error:
        await client.request(request)
    assert error.value.code is code


def test_a_saved_pipeline_takes_writes_and_packets_meet_the_old_one_until_the_commit(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client:
            switch = served.switches[1]
            await client.request(set_pipeline(Set.VERIFY_AND_COMMIT, with_cookie(pipeline, 1)))
            await client.request(write(insert(33, 1)))
            await client.request(set_pipeline(Set.VERIFY_AND_SAVE, with_cookie(pipeline, 2)))
            assert await levels(client) == []
            await client.request(write(insert(33, 2), insert(34, 3)))
            with pytest.raises(P4ClientError):
                await client.request(write(insert(33, 4)))
            assert await levels(client) == [2, 3]
            assert [*switch.entries("Ingress.flow")] == [(KEY, ActionCall("Ingress.set_level", (1,)))]
            assert (await client.request(GET)).config.cookie.cookie == 1
            assert switch.commits == 1
            await client.request(set_pipeline(Set.COMMIT, None))
            assert (await client.request(GET)).config.cookie.cookie == 2
            assert await levels(client) == [2, 3]
            assert len([*switch.entries("Ingress.flow")]) == 2
            assert switch.commits == 2
            await refused(client, set_pipeline(Set.COMMIT, None), GRPCStatusCode.NOT_FOUND, "no saved pipeline")

    run(test())


def test_packets_meet_what_was_written_once_it_is_committed() -> None:
    emulated = EmulatedProgram(AGEING)
    tables = {table.name: table for table in AGEING.pipeline.schema.tables.values()}
    forward = AGEING.pipeline.schema.actions_by_name["ingress.forward"]

    def entry(table: str, port: int, timeout_ns: int = 0) -> p4r.Update:
        exact = p4r.FieldMatch(field_id=1, exact=p4r.FieldMatch.Exact(value=b"\7"))
        action = p4r.Action(action_id=forward.id, params=[p4r.Action.Param(param_id=1, value=bytes([port]))])
        message = p4r.TableEntry(table_id=tables[table].id, match=[exact], action=p4r.TableAction(action=action))
        message.idle_timeout_ns = timeout_ns
        return p4r.Update(type=INSERT, entity=p4r.Entity(table_entry=message))

    def port() -> int:
        [sent] = emulated.send(Packet(1, b"\7\7"))
        return sent.port

    async def test() -> None:
        service = P4RuntimeService([emulated.control], AGEING.pipeline, asyncio.Lock())
        async with serve(service) as number, P4Client(f"127.0.0.1:{number}") as client:
            await bid(client, 5)
            assert await advice(client) == ("OK", 5)
            await client.request(set_pipeline(Set.VERIFY_AND_COMMIT, AGEING.pipeline.message))
            await client.request(write(entry("ingress.routes", 2)))
            assert port() == 2
            await client.request(set_pipeline(Set.VERIFY_AND_SAVE, AGEING.pipeline.message))
            await client.request(write(entry("ingress.routes", 3), entry("ingress.learned", 1, 2_000_000)))
            emulated.fabric.run(emulated.fabric.now_ps + 5_000_000_000)
            assert port() == 2
            service.deliver(())
            await client.request(set_pipeline(Set.COMMIT, None))
            committed_ns = emulated.fabric.now_ps // 1000
            assert port() == 3
            emulated.fabric.run(emulated.fabric.now_ps + 5_000_000_000)
            service.deliver(())
            # The packet was the last hit.
            told = (await client.receive()).idle_timeout_notification
            assert committed_ns + 2_000_000 <= told.timestamp < committed_ns + 4_000_000
            assert [message.table_id for message in told.table_entry] == [tables["ingress.learned"].id]

    run(test())


def test_the_first_pipeline_may_be_saved_before_it_is_committed(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client:
            await client.request(set_pipeline(Set.VERIFY_AND_SAVE, pipeline.message))
            await client.request(write(insert(33, 2)))
            await refused(client, GET, GRPCStatusCode.FAILED_PRECONDITION, "No forwarding pipeline config set")
            config = set_pipeline(Set.COMMIT, pipeline.message)
            await refused(client, config, GRPCStatusCode.INVALID_ARGUMENT, "COMMIT takes no pipeline")
            await client.request(set_pipeline(Set.COMMIT, None))
            assert await levels(client) == [2]

    run(test())


@pytest.mark.parametrize("action", [Set.VERIFY_AND_SAVE, Set.VERIFY_AND_COMMIT, Set.RECONCILE_AND_COMMIT])
def test_another_pipeline_takes_the_place_of_the_saved_one(pipeline: Pipeline, action: Set.Action.ValueType) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client:
            await client.request(set_pipeline(Set.VERIFY_AND_SAVE, pipeline.message))
            await client.request(write(insert(33, 2)))
            await client.request(set_pipeline(action, pipeline.message))
            assert await levels(client) == []
            if action == Set.VERIFY_AND_SAVE:
                await client.request(set_pipeline(Set.COMMIT, None))
                assert await levels(client) == []
            else:
                await refused(client, set_pipeline(Set.COMMIT, None), GRPCStatusCode.NOT_FOUND, "no saved pipeline")

    run(test())


@pytest.mark.parametrize(("limit", "most"), [("MAX_UPDATES", 2), ("MAX_BYTES", 2 * insert(33, 1).ByteSize())])
def test_a_saved_pipeline_takes_so_much_and_no_more(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(update_log, limit, most)

    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client:
            await client.request(set_pipeline(Set.VERIFY_AND_SAVE, pipeline.message))
            await client.request(write(insert(33, 1), insert(34, 2)))
            with pytest.raises(P4ClientError, match="at most before it is committed"):
                await client.request(write(insert(35, 3)))
            await client.request(set_pipeline(Set.COMMIT, None))
            assert await levels(client) == [1, 2]
            await client.request(write(insert(35, 3)))

    run(test())


def test_a_switch_that_goes_down_loses_what_was_saved(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served:
            async with primary(served) as client:
                await client.request(set_pipeline(Set.VERIFY_AND_SAVE, pipeline.message))
                served.switches[1].power.turn_off()
            served.switches[1].power.turn_on()
            async with primary(served, 6) as client:
                request = set_pipeline(Set.COMMIT, None, 6)
                await refused(client, request, GRPCStatusCode.NOT_FOUND, "no saved pipeline")

    run(test())


def with_other_ids(message: p4r.ForwardingPipelineConfig) -> p4r.ForwardingPipelineConfig:
    """The same pipeline in which the tables have other ids, and a version."""
    changed = p4r.ForwardingPipelineConfig()
    changed.CopyFrom(message)
    changed.p4info.pkg_info.version = "2"
    for table in changed.p4info.tables:
        before, table.preamble.id = table.preamble.id, table.preamble.id + 1000
        for direct in (*changed.p4info.direct_counters, *changed.p4info.direct_meters):
            if direct.direct_table_id == before:
                direct.direct_table_id = table.preamble.id
        for profile in changed.p4info.action_profiles:
            profile.table_ids[:] = [table.preamble.id if number == before else number for number in profile.table_ids]
    return changed


def test_state_is_kept_under_a_p4info_with_other_ids(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client:
            await client.request(set_pipeline(Set.VERIFY_AND_COMMIT, pipeline.message))
            await client.request(write(insert(33, 5)))
            config = with_other_ids(pipeline.message)
            await client.request(set_pipeline(Set.RECONCILE_AND_COMMIT, config))
            assert await levels(client) == [5]
            assert served.switches[1].commits == 1
            assert (await client.request(GET)).config == config
            with pytest.raises(P4ClientError):  # the old id
                await client.request(write(insert(34, 6)))
            update = insert(34, 6)
            update.entity.table_entry.table_id += 1000
            await client.request(write(update))
            assert await levels(client) == [5, 6]

    run(test())


def test_what_cannot_be_kept_is_named(pipeline: Pipeline) -> None:
    def changed(name: str) -> p4r.ForwardingPipelineConfig:
        message = p4r.ForwardingPipelineConfig()
        message.CopyFrom(pipeline.message)
        if name == "table Ingress.flow":
            table = next(table for table in message.p4info.tables if table.preamble.name == "Ingress.flow")
            table.action_refs[0].scope = p4i.ActionRef.TABLE_ONLY
        else:
            message.p4info.action_profiles[0].max_group_size = 3
        return message

    assert difference(pipeline.schema, load_pipeline(pipeline.message).schema) is None
    for name in ("table Ingress.flow", "action profile Ingress.ecmp"):
        assert difference(pipeline.schema, load_pipeline(changed(name)).schema) == name
