"""A channel to a switch: messages, answers, refusals, bundles, roles, ports, echo; with a small switch of our own."""

import asyncio
import struct

import pytest

from controller.southbound.openflow.channel_errors import AwayError, RefusedError, StaleError
from controller.southbound.openflow.control_messages import Role
from tests.controller.southbound.openflow import fake_switch
from tests.controller.southbound.openflow.fake_switch import FakeSwitch, Received, flow_mod, message, port
from tests.controller.southbound.openflow.listening import connected, in_time
from tests.patience import until

VERSIONS = pytest.mark.parametrize("version", [4, 6])


@VERSIONS
def test_the_handshake_tells_version_datapath_and_ports(version: int) -> None:
    async def run() -> None:
        switch = FakeSwitch(0xABC, version, ports=(1, 7))
        switch.ports[1] = port(version, 7, is_up=False)
        async with connected(switch) as channel:
            assert (channel.version, channel.datapath_id) == (version, 0xABC)
            assert {number: each.is_up for number, each in channel.ports.items()} == {1: True, 7: False}
            assert channel.peer.startswith("127.0.0.1:")

    in_time(run)


@VERSIONS
def test_all_messages_of_a_write_arrive_in_their_order_before_it_returns(version: int) -> None:
    async def run() -> None:
        switch = FakeSwitch(version=version)
        async with connected(switch) as channel:
            texts = [f"flow {number}" for number in range(1_234)]
            await channel.write([flow_mod(version, text) for text in texts])
            assert switch.flows == texts
            sent = [each.xid for each in switch.received if each.kind == fake_switch.FLOW_MOD]
            assert len(set(sent)) == len(sent)
            assert all(each.version == version for each in switch.received if each.kind != fake_switch.HELLO)

    in_time(run)


def test_refusals_are_told_by_index_in_words_and_the_rest_is_written() -> None:
    async def run() -> None:
        switch = FakeSwitch()
        switch.refusals = {"flow 3": (5, 1), "flow 700": (4, 9), "flow 701": (99, 2)}
        async with connected(switch) as channel:
            with pytest.raises(RefusedError, match=r"3 of 900 messages refused, first of all number 3: ") as refused:
                await channel.write([flow_mod(6, f"flow {number}") for number in range(900)])
            assert {index: each.words for index, each in refused.value.refusals.items()} == {
                3: "flow mod failed: table full (OFPFMFC_TABLE_FULL)",
                700: "bad match: bad prereq (OFPBMC_BAD_PREREQ)",
                701: "error of type 99, code 2",
            }
            assert len(switch.flows) == 897

    in_time(run)


def test_writes_follow_one_another_and_each_has_its_own_refusals() -> None:
    async def run() -> None:
        switch = FakeSwitch()
        switch.refusals = {"b": (5, 1)}
        async with connected(switch) as channel:
            done = await asyncio.gather(
                channel.write([flow_mod(6, "a")] * 600),
                channel.write([flow_mod(6, "b")]),
                channel.write([flow_mod(6, "c")]),
                return_exceptions=True,
            )
            assert [type(each) for each in done] == [type(None), RefusedError, type(None)]
            assert switch.flows == ["a"] * 600 + ["c"]

    in_time(run)


def test_a_bundle_is_carried_out_whole_or_not_at_all() -> None:
    async def run() -> None:
        switch = FakeSwitch()
        switch.refusals = {"bad": (5, 1)}
        async with connected(switch) as channel:
            await channel.write([flow_mod(6, f"flow {number}") for number in range(700)], bundle=True)
            assert len(switch.flows) == 700
            with pytest.raises(RefusedError) as refused:
                await channel.write([flow_mod(6, text) for text in ("a", "bad", "b")], bundle=True)
            assert list(refused.value.refusals) == [1]
            assert [each.words for each in refused.value.others] == ["bundle failed: msg failed (OFPBFC_MSG_FAILED)"]
            assert len(switch.flows) == 700
            assert switch.bundles == {}

    in_time(run)


def test_a_bundle_that_a_switch_does_not_take_in_is_discarded() -> None:
    async def run() -> None:
        switch = FakeSwitch()
        switch.answers[fake_switch.BUNDLE_ADD] = lambda each: switch.error(each, 17, 8)
        async with connected(switch) as channel:
            with pytest.raises(RefusedError, match="msg bad len") as refused:
                await channel.write([flow_mod(6, "a"), flow_mod(6, "b")], bundle=True)
            assert list(refused.value.refusals) == [0, 1]
            await channel.write([flow_mod(6, "c")])
            assert switch.bundles == {}
            assert switch.flows == ["c"]

    in_time(run)


@pytest.mark.parametrize(("version", "error"), [(6, (1, 1)), (6, (17, 6)), (4, (1, 3))])
def test_a_switch_without_bundles_gets_messages_one_by_one(version: int, error: tuple[int, int]) -> None:
    async def run() -> None:
        switch = FakeSwitch(version=version)
        kind = fake_switch.EXPERIMENTER if version == 4 else fake_switch.BUNDLE_CONTROL
        switch.answers[kind] = lambda each: switch.error(each, *error)
        async with connected(switch) as channel:
            for text in ("a", "b"):
                await channel.write([flow_mod(version, text)], bundle=True)
            assert switch.flows == ["a", "b"]
            assert [each.kind for each in switch.received].count(kind) == 1

    in_time(run)


def test_a_switch_of_another_master_refuses_writes_as_stale() -> None:
    async def run() -> None:
        switch = FakeSwitch()
        switch.refusals = {"a": (1, 10)}
        async with connected(switch) as channel:
            with pytest.raises(StaleError, match="another controller is the master"):
                await channel.write([flow_mod(6, "a")])

    in_time(run)


@VERSIONS
def test_an_older_generation_cannot_claim_a_switch(version: int) -> None:
    async def run() -> None:
        switch = FakeSwitch(version=version)
        async with connected(switch) as channel:
            await channel.claim(5)
            await channel.claim(5)
            switch.generation_id = 6
            with pytest.raises(StaleError, match="claimed the switch later"):
                await channel.claim(5)
            await channel.claim(7)

    in_time(run)


def test_all_parts_of_an_answer_are_returned_whatever_comes_between() -> None:
    async def run() -> None:
        switch = FakeSwitch()
        async with connected(switch) as channel:
            held: list[Received] = []

            def hold(each: Received) -> bytes:
                held.append(each)
                return b""

            switch.answers[fake_switch.MULTIPART_REQUEST] = hold
            request = message(6, fake_switch.MULTIPART_REQUEST, 0, struct.pack("!HH4x", 1, 0))
            first, second = (asyncio.create_task(channel.request(request)) for _ in range(2))
            await until(lambda: len(held) == 2)
            one, other = (switch.parts(each, [b"x", b"y"]) for each in held)
            half = len(one) // 2
            switch.send(one[:half] + other[:half] + message(6, fake_switch.ECHO_REQUEST, 1) + other[half:] + one[half:])
            for replies in (await first, await second):
                assert [each[-1:] for each in replies] == [b"x", b"y"]
            await until(lambda: any(each.kind == fake_switch.ECHO_REPLY for each in switch.received))

    in_time(run)


def test_a_request_that_is_refused_says_so() -> None:
    async def run() -> None:
        switch = FakeSwitch()
        async with connected(switch) as channel:
            switch.answers[fake_switch.MULTIPART_REQUEST] = lambda each: switch.error(each, 1, 2)
            with pytest.raises(RefusedError, match=r"^bad request: bad multipart \(OFPBRC_BAD_MULTIPART\)$"):
                await channel.request(message(6, fake_switch.MULTIPART_REQUEST, 0, struct.pack("!HH4x", 1, 0)))
            assert channel.is_open

    in_time(run)


@VERSIONS
def test_ports_follow_what_the_switch_tells(version: int) -> None:
    async def run() -> None:
        switch = FakeSwitch(version=version)
        async with connected(switch) as channel:
            changes: list[dict[int, bool]] = []
            channel.on_ports = lambda: changes.append({number: each.is_up for number, each in channel.ports.items()})

            def tell(reason: int, number: int, *, is_up: bool) -> None:
                body = struct.pack("!B7x", reason) + port(version, number, is_up=is_up)
                switch.send(message(version, fake_switch.PORT_STATUS, 0, body))

            tell(2, 1, is_up=False)
            await until(lambda: changes == [{1: False, 2: True}])
            tell(2, 1, is_up=False)  # nothing new
            tell(2, 0xFFFF_FFFE, is_up=False)  # the switch's own
            tell(0, 3, is_up=True)
            await until(lambda: changes[1:] == [{1: False, 2: True, 3: True}])
            tell(1, 2, is_up=True)
            await until(lambda: changes[2:] == [{1: False, 3: True}])

    in_time(run)


def test_packets_and_roles_are_handed_over() -> None:
    async def run() -> None:
        switch = FakeSwitch()
        async with connected(switch) as channel:
            packets: list[bytes] = []
            roles: list[Role] = []
            channel.on_packet_in, channel.on_role = packets.append, roles.append
            packet = message(6, fake_switch.PACKET_IN, 0, b"frame")
            switch.send(packet + message(6, fake_switch.ROLE_STATUS, 0, struct.pack("!IB3xQ", 3, 0, 9)))
            await until(lambda: packets == [packet] and roles == [Role.SLAVE])

    in_time(run)


def test_messages_are_sent_without_waiting() -> None:
    async def run() -> None:
        switch = FakeSwitch()
        async with connected(switch) as channel:
            channel.send([flow_mod(6, "a"), flow_mod(6, "b")])
            await until(lambda: switch.flows == ["a", "b"])
            channel.close("enough")
            channel.send([flow_mod(6, "c")])

    in_time(run)


def test_what_waits_ends_with_the_connection() -> None:
    async def run() -> None:
        switch = FakeSwitch()
        async with connected(switch) as channel:
            reasons: list[str] = []
            channel.on_closed = reasons.append
            del switch.answers[fake_switch.BARRIER_REQUEST], switch.answers[fake_switch.ROLE_REQUEST]
            writing = asyncio.create_task(channel.write([flow_mod(6, "a")]))
            bundling = asyncio.create_task(channel.write([flow_mod(6, "b")], bundle=True))
            claiming = asyncio.create_task(channel.request(message(6, fake_switch.ROLE_REQUEST, 0, bytes(16))))
            await until(lambda: any(each.kind == fake_switch.ROLE_REQUEST for each in switch.received))
            switch.close()
            for task in (writing, bundling, claiming):
                with pytest.raises(AwayError, match=r"closed the connection|reset"):
                    await task
            assert not channel.is_open
            assert reasons == [channel.closed_because]
            with pytest.raises(AwayError):
                await channel.write([flow_mod(6, "c")])

    in_time(run)


@pytest.mark.parametrize("bundle", [False, True])
def test_a_write_that_is_cancelled_leaves_the_channel_in_use(bundle: bool) -> None:
    async def run() -> None:
        switch = FakeSwitch()
        async with connected(switch) as channel:
            barrier = switch.answers.pop(fake_switch.BARRIER_REQUEST)
            writing = asyncio.create_task(channel.write([flow_mod(6, "a")], bundle=bundle))
            await until(lambda: any(each.kind == fake_switch.BARRIER_REQUEST for each in switch.received))
            writing.cancel()
            await asyncio.wait([writing])
            switch.answers[fake_switch.BARRIER_REQUEST] = barrier
            await channel.write([flow_mod(6, "b")])
            assert switch.flows == (["b"] if bundle else ["a", "b"])
            assert switch.bundles == {}

    in_time(run)


def test_nothing_is_handed_over_once_the_channel_is_closed() -> None:
    async def run() -> None:
        switch = FakeSwitch()
        async with connected(switch) as channel:
            packets: list[bytes] = []

            def close(message: bytes) -> None:
                packets.append(message)
                channel.close("enough")

            channel.on_packet_in = close
            switch.send(message(6, fake_switch.PACKET_IN, 0) * 3)
            await switch.has_ended.wait()
            assert len(packets) == 1

    in_time(run)
