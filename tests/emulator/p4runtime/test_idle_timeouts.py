"""Idle timeouts by P4Runtime: written and read back, told on the stream, also to finsy and in wall-clock time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import finsy as fy
import pytest
from finsy.p4client import P4Client
from finsy.proto import p4r, rpc_code, stratum

from emulator.p4runtime.errors import BatchError
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from emulator.wall_clock import WallClock
from tests.bmv2.small_programs import AGEING, EmulatedProgram
from tests.emulator.p4runtime.clients import advice, bid, run, set_pipeline, write

PIPELINE = AGEING.pipeline
TABLES = {table.name.removeprefix("ingress."): table for table in PIPELINE.schema.tables.values()}
FORWARD = PIPELINE.schema.actions_by_name["ingress.forward"]
MS_IN_NS, MS_IN_PS = 1_000_000, 1_000_000_000
COMMIT = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE


def entry(table: str, value: int = 1, timeout_ns: int = 0, **more: object) -> p4r.TableEntry:
    """An entry that forwards to port 2."""
    exact = p4r.FieldMatch(field_id=1, exact=p4r.FieldMatch.Exact(value=bytes([value])))
    action = p4r.Action(action_id=FORWARD.id, params=[p4r.Action.Param(param_id=1, value=b"\2")])
    message = p4r.TableEntry(table_id=TABLES[table].id, match=[exact], action=p4r.TableAction(action=action))
    message.idle_timeout_ns = timeout_ns
    for name, value_of in more.items():
        setattr(message, name, value_of)
    return message


def update(kind: p4r.Update.Type.ValueType, message: p4r.TableEntry) -> p4r.Update:
    """An update of an entry."""
    return p4r.Update(type=kind, entity=p4r.Entity(table_entry=message))


def read(emulated: EmulatedProgram, request: p4r.TableEntry) -> list[p4r.TableEntry]:
    """The entries that a request selects."""
    return [entity.table_entry for entity in emulated.read(p4r.Entity(table_entry=request))]


def test_a_timeout_is_read_as_it_was_written_however_short() -> None:
    emulated = EmulatedProgram(AGEING)
    emulated.write(
        [update(INSERT, entry("learned", number, timeout)) for number, timeout in ((1, 0), (2, 1), (3, 7**20))]
    )
    found = read(emulated, p4r.TableEntry(table_id=TABLES["learned"].id))
    assert [message.idle_timeout_ns for message in found] == [0, 1, 7**20]
    emulated.write([update(MODIFY, entry("learned", 2, 5 * MS_IN_NS)), update(MODIFY, entry("learned", 3))])
    found = read(emulated, p4r.TableEntry(table_id=TABLES["learned"].id))
    assert [message.idle_timeout_ns for message in found] == [0, 5 * MS_IN_NS, 0]


def test_the_time_since_the_last_hit_is_there_for_whoever_asks() -> None:
    emulated = EmulatedProgram(AGEING)
    emulated.write([update(INSERT, entry("learned")), update(INSERT, entry("routes"))])
    emulated.fabric.run(emulated.fabric.now_ps + 3 * MS_IN_PS)
    [plain] = read(emulated, p4r.TableEntry(table_id=TABLES["learned"].id))
    assert not plain.HasField("time_since_last_hit")
    request = p4r.TableEntry(table_id=TABLES["learned"].id)
    request.time_since_last_hit.SetInParent()
    [asked] = read(emulated, request)
    assert asked.time_since_last_hit.elapsed_ns == 3 * MS_IN_NS
    request.table_id = 0
    found = {message.table_id: message for message in read(emulated, request)}
    assert found[TABLES["learned"].id].time_since_last_hit.elapsed_ns == 3 * MS_IN_NS
    assert not found[TABLES["routes"].id].HasField("time_since_last_hit")


def aged(message: p4r.TableEntry) -> p4r.TableEntry:
    """The same with the field that is only read."""
    message.time_since_last_hit.SetInParent()
    return message


def default(**more: int) -> p4r.TableEntry:
    """A default entry."""
    return p4r.TableEntry(table_id=TABLES["learned"].id, is_default_action=True, **more)


WRONG = {
    "no ageing": (INSERT, entry("routes", timeout_ns=1), "has no idle timeout"),
    "no ageing, change": (MODIFY, entry("routes", timeout_ns=1), "has no idle timeout"),
    "negative": (INSERT, entry("learned", timeout_ns=-1), "cannot be -1 ns"),
    "written time": (INSERT, aged(entry("learned")), "is only read"),
    "default": (MODIFY, default(idle_timeout_ns=1), "default entry does not age"),
    "default time": (MODIFY, aged(default()), "default entry does not age"),
}


@pytest.mark.parametrize(("kind", "message", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_timeout_is_refused_by_name(
    kind: p4r.Update.Type.ValueType, message: p4r.TableEntry, words: str
) -> None:
    emulated = EmulatedProgram(AGEING)
    with pytest.raises(BatchError) as error:
        emulated.write([update(kind, message)])
    [result] = error.value.results
    assert result.canonical_code == rpc_code.INVALID_ARGUMENT
    assert words in result.message
    assert read(emulated, p4r.TableEntry()) == []


@dataclass(frozen=True)
class Served:
    """The program's switch behind a server, with virtual time."""

    emulated: EmulatedProgram
    service: P4RuntimeService
    address: str

    def run(self, time_ps: int) -> None:
        """Let time pass, and tell what has happened."""
        self.emulated.fabric.run(self.emulated.fabric.now_ps + time_ps)
        self.service.deliver(self.emulated.fabric.packets_in())


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    """Serve the switch, without a pipeline."""
    emulated = EmulatedProgram(AGEING)
    service = P4RuntimeService([emulated.control], PIPELINE, asyncio.Lock(), emulated.fabric.packet_out)
    async with serve(service) as port:
        yield Served(emulated, service, f"127.0.0.1:{port}")


def test_the_primary_is_told_of_idle_entries() -> None:
    async def test() -> None:
        async with served() as lab, P4Client(lab.address) as client:
            await bid(client, 5)
            assert await advice(client) == ("OK", 5)
            await client.request(set_pipeline(COMMIT, PIPELINE.message))
            start_ns = lab.emulated.fabric.now_ps // 1000
            first = entry("learned", 1, 2 * MS_IN_NS, metadata=b"mine", controller_metadata=7)
            second = entry("learned", 2, 2 * MS_IN_NS)
            third = entry("learned", 3, 3 * MS_IN_NS)
            await client.request(write(*(update(INSERT, message) for message in (first, second, third))))
            lab.run(3 * MS_IN_PS)
            for message in (first, second, third):
                message.ClearField("action")
            together = (await client.receive()).idle_timeout_notification
            assert together.timestamp == start_ns + 2 * MS_IN_NS
            assert [*together.table_entry] == [first, second]
            alone = (await client.receive()).idle_timeout_notification
            assert alone.timestamp == start_ns + 3 * MS_IN_NS
            assert [*alone.table_entry] == [third]
            # Nobody is told of an entry that has left meanwhile.
            lab.emulated.fabric.run(lab.emulated.fabric.now_ps + MS_IN_PS)
            await client.request(write(*(update(DELETE, message) for message in (first, second, third))))
            lab.run(10 * MS_IN_PS)
            await bid(client, 5)
            assert await advice(client) == ("OK", 5)

    run(test())


def test_a_role_is_told_of_its_own_tables_alone() -> None:
    async def test() -> None:
        async with served() as lab, P4Client(lab.address) as client, P4Client(lab.address) as other:
            await bid(client, 5)
            assert await advice(client) == ("OK", 5)
            await client.request(set_pipeline(COMMIT, PIPELINE.message))
            role = p4r.Role(name="routes")
            role.config.Pack(stratum.P4RoleConfig(shared_p4_ids=[TABLES["routes"].id]))
            await bid(other, 1, role=role)
            assert await advice(other) == ("OK", 1)
            await client.request(write(update(INSERT, entry("learned", 1, MS_IN_NS))))
            lab.run(MS_IN_PS)
            assert (await client.receive()).HasField("idle_timeout_notification")
            await bid(other, 1, role=role)
            assert await advice(other) == ("OK", 1)

    run(test())


def test_finsy_hears_of_idle_entries_in_wall_clock_time_and_removes_them() -> None:
    async def test() -> None:
        emulated = EmulatedProgram(AGEING)
        exclusive = asyncio.Lock()
        service = P4RuntimeService([emulated.control], PIPELINE, exclusive, emulated.fabric.packet_out)
        clock = WallClock(emulated.fabric, exclusive, service.deliver)
        options = fy.SwitchOptions(p4info=AGEING.p4info, p4blob=AGEING.json, device_id=1)
        async with serve(service) as port:
            passing = asyncio.create_task(clock.run(10**18))
            async with fy.Switch("ageing", f"127.0.0.1:{port}", options) as switch:
                match = fy.P4TableMatch(source=9)
                made = fy.P4TableEntry(
                    "learned",
                    match=match,
                    action=fy.P4TableAction("forward", port=2),
                    idle_timeout_ns=20 * MS_IN_NS,
                )
                heard = switch.read_idle_timeouts()
                told = asyncio.ensure_future(anext(aiter(heard)))
                await asyncio.sleep(0)
                await switch.insert([made])
                [idle] = await told
                assert (idle.table_id, idle.match, idle.idle_timeout_ns) == ("learned", match, 20 * MS_IN_NS)
                await switch.delete([idle])
            passing.cancel()
            await asyncio.gather(passing, return_exceptions=True)
        assert [*emulated.control.entries("ingress.learned")] == []

    run(test())
