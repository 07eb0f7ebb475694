"""Digests for controllers: enabled by entries, told in lists, acknowledged."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from finsy.p4client import P4Client
from finsy.proto import p4d, p4r, rpc_code, stratum

from emulator.observations import PacketIn
from emulator.p4runtime.errors import RequestError
from emulator.p4runtime.pipeline import compiled_pipeline
from tests.bmv2.small_programs import DIGESTS
from tests.emulator.p4runtime.clients import Served, advice, bid, primary, run, serving, set_pipeline, write

COMMIT = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
PIPELINE = DIGESTS.pipeline
LEARNED, PAIR = (digest.id for digest in PIPELINE.schema.digests.values())
LEARNED_LIST, PAIR_LIST = 1, 2
LONG_NS, SHORT_NS = 3_600 * 10**9, 20 * 10**6


def entry(kind: p4r.Update.Type.ValueType, digest_id: int, **config: int) -> p4r.Update:
    """An update of a digest entry."""
    made = p4r.DigestEntry(digest_id=digest_id, config=p4r.DigestEntry.Config(**config))
    return p4r.Update(type=kind, entity=p4r.Entity(digest_entry=made))


def pair(source: int) -> bytes:
    """The values of the digest that is a tuple."""
    return source.to_bytes(6, "big") + b"\2"


@asynccontextmanager
async def listening(**config: int) -> AsyncIterator[tuple[Served, P4Client]]:
    """A primary that has enabled the tuple."""
    async with serving(PIPELINE) as served, primary(served) as client:
        await client.request(set_pipeline(COMMIT, PIPELINE.message))
        await client.request(write(entry(p4r.Update.INSERT, PAIR, **config)))
        yield served, client


def tell(served: Served, *sources: int, time_ps: int = 0) -> None:
    """Let the switch tell tuples."""
    served.service.deliver([PacketIn("switch1", time_ps, pair(source), PAIR_LIST) for source in sources])


def sources_of(message: p4r.DigestList) -> list[int]:
    """The first value of each tuple of a list."""
    return [int.from_bytes(data.tuple.members[0].bitstring, "big") for data in message.data]


async def silent(client: P4Client) -> None:
    """Nothing has been sent before the answer to a bid."""
    await bid(client, 5)
    assert await advice(client) == ("OK", 5)


def test_values_have_the_types_of_the_p4info() -> None:
    async def test() -> None:
        async with serving(PIPELINE) as served, primary(served) as client:
            await client.request(set_pipeline(COMMIT, PIPELINE.message))
            octets = bytes.fromhex("001122334455 0003 0155") + bytes(8) + b"\x07"
            served.service.deliver([PacketIn("switch1", 5_000, octets, LEARNED_LIST)])
            await silent(client)  # nobody has enabled it
            await client.request(write(entry(p4r.Update.INSERT, LEARNED)))
            served.service.deliver([PacketIn("switch1", 7_000, octets, LEARNED_LIST)])
            message = (await client.receive()).digest
            assert (message.digest_id, message.list_id, message.timestamp) == (LEARNED, 1, 7)
            source, place, wide = message.data[0].struct.members
            assert source.bitstring == bytes.fromhex("1122334455")
            assert [member.bitstring for member in place.struct.members] == [b"\3", b"\1\x55"]
            assert wide == p4d.P4Data(bitstring=b"\7")

    run(test())


def test_a_list_is_told_when_it_is_full_or_old() -> None:
    async def test() -> None:
        async with listening(max_list_size=3, max_timeout_ns=LONG_NS) as (served, client):
            tell(served, 1, 2, 1)
            await silent(client)
            tell(served, 3, 4)
            assert sources_of((await client.receive()).digest) == [1, 2, 3]
            # A change of the entry tells what waits.
            await client.request(write(entry(p4r.Update.MODIFY, PAIR, max_timeout_ns=SHORT_NS)))
            assert sources_of((await client.receive()).digest) == [4]
            tell(served, 5, 6)
            message = (await client.receive()).digest
            assert (sources_of(message), message.list_id) == ([5, 6], 3)

    run(test())


def test_what_waits_for_an_acknowledgement_is_not_told_again() -> None:
    async def test() -> None:
        async with listening(ack_timeout_ns=LONG_NS) as (served, client):
            tell(served, 1, 2, 1)
            first, second = (await client.receive()).digest, (await client.receive()).digest
            assert (sources_of(first), sources_of(second)) == ([1], [2])
            acknowledgement = p4r.DigestListAck(digest_id=PAIR, list_id=first.list_id)
            await client.send(p4r.StreamMessageRequest(digest_ack=acknowledgement))
            await silent(client)
            tell(served, 2, 1)
            assert sources_of((await client.receive()).digest) == [1]

    run(test())


def test_values_are_told_again_after_the_time_for_acknowledgements() -> None:
    async def test() -> None:
        async with listening(ack_timeout_ns=SHORT_NS) as (served, client):
            tell(served, 1)
            assert sources_of((await client.receive()).digest) == [1]
            while True:
                await asyncio.sleep(SHORT_NS / 1e9)
                tell(served, 1)
                message = await client.receive()
                assert sources_of(message.digest) == [1]
                break

    run(test())


@pytest.mark.parametrize(
    ("digest_id", "list_id", "code"),
    [(PAIR, 1, rpc_code.NOT_FOUND), (LEARNED, 1, rpc_code.NOT_FOUND), (7, 1, rpc_code.NOT_FOUND)],
)
def test_an_acknowledgement_of_nothing_is_answered(digest_id: int, list_id: int, code: rpc_code.Code.ValueType) -> None:
    async def test() -> None:
        async with listening() as (_, client):
            acknowledgement = p4r.DigestListAck(digest_id=digest_id, list_id=list_id)
            await client.send(p4r.StreamMessageRequest(digest_ack=acknowledgement))
            error = (await client.receive()).error
            assert error.canonical_code == code
            assert error.digest_list_ack.digest_list_ack == acknowledgement

    run(test())


def test_entries_are_read_changed_and_removed() -> None:
    async def test() -> None:
        async with listening(max_list_size=2, max_timeout_ns=LONG_NS) as (served, client):

            async def entries() -> list[p4r.DigestEntry]:
                request = p4r.ReadRequest(device_id=1, entities=[p4r.Entity(digest_entry=p4r.DigestEntry())])
                return [e.digest_entry async for response in client.request_iter(request) for e in response.entities]

            assert [(e.digest_id, e.config.max_list_size) for e in await entries()] == [(PAIR, 2)]
            tell(served, 1)
            await client.request(write(entry(p4r.Update.DELETE, PAIR)))
            assert await entries() == []
            tell(served, 1, 2)
            await silent(client)
            # A new pipeline disables all.
            await client.request(write(entry(p4r.Update.INSERT, PAIR)))
            await client.request(set_pipeline(COMMIT, PIPELINE.message))
            assert await entries() == []

    run(test())


def test_a_role_is_told_of_its_own_digests_alone() -> None:
    async def test() -> None:
        async with (
            listening() as (served, client),
            P4Client(served.address) as ours,
            P4Client(served.address) as others,
        ):
            for other, name, digest_id in ((ours, "ours", PAIR), (others, "others", LEARNED)):
                role = p4r.Role(name=name)
                role.config.Pack(stratum.P4RoleConfig(shared_p4_ids=[digest_id], receives_packet_ins=True))
                await bid(other, 1, role=role)
                assert await advice(other) == ("OK", 1)
            tell(served, 1)
            assert sources_of((await client.receive()).digest) == sources_of((await ours.receive()).digest) == [1]
            await bid(others, 1, role=role)
            assert await advice(others) == ("OK", 1)

    run(test())


def test_wrong_entries_are_refused_by_name() -> None:
    async def test() -> None:
        async with listening() as (_, client):
            for update in (
                entry(p4r.Update.INSERT, PAIR),
                entry(p4r.Update.MODIFY, LEARNED),
                entry(p4r.Update.DELETE, LEARNED),
                entry(p4r.Update.INSERT, 7),
                entry(p4r.Update.MODIFY, PAIR, max_list_size=-1),
            ):
                with pytest.raises(Exception, match="digest"):
                    await client.request(write(update))

    run(test())


def test_a_digest_of_other_values_is_refused_by_name() -> None:
    text = DIGESTS.json.read_text()
    changed = text.replace('"learned_t"', '"learnt_t"')
    assert changed != text
    compiled_pipeline(DIGESTS.p4info.read_text(), text.encode())
    with pytest.raises(RequestError, match="digest learned_t: values"):
        compiled_pipeline(
            DIGESTS.p4info.read_text(),
            text.replace('"name" : "learned_t"', '"name" : "tuple_9"', 1)
            .replace('"name" : "tuple_0"', '"name" : "learned_t"', 1)
            .encode(),
        )
