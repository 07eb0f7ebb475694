"""Switches that misbehave once they are connected: named, counted, bounded, and no harm to others."""

import asyncio
import struct
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.errors import DaemonError
from controller.southbound.openflow.channel_errors import AwayError, Misbehaviour
from controller.southbound.openflow.handshake import MOST_PORTS
from tests.controller.southbound.openflow import fake_switch
from tests.controller.southbound.openflow.fake_switch import FakeSwitch, flow_mod, message, port
from tests.controller.southbound.openflow.listening import PATIENT, connected, in_time, num_refused, unharmed
from tests.patience import until


def _status(reason: int, number: int) -> bytes:
    return message(6, fake_switch.PORT_STATUS, 0, struct.pack("!B7x", reason) + port(6, number))


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        (_status(0, 0), Misbehaviour.PORTS),
        (b"".join(_status(0, number) for number in range(1, MOST_PORTS + 2)), Misbehaviour.PORTS),
        (_status(9, 1), Misbehaviour.GARBAGE),
        (message(6, fake_switch.PORT_STATUS, 0, bytes(9)), Misbehaviour.GARBAGE),
        (message(6, fake_switch.ROLE_STATUS, 0, bytes(3)), Misbehaviour.GARBAGE),
        (message(6, fake_switch.ROLE_STATUS, 0, b"\xff" * 16), Misbehaviour.GARBAGE),
        (message(6, fake_switch.ERROR, 0), Misbehaviour.GARBAGE),
        (struct.pack("!BBHI", 6, 10, 2, 0), Misbehaviour.GARBAGE),
        (struct.pack("!BBHI", 1, 10, 8, 0), Misbehaviour.GARBAGE),
    ],
)
def test_a_switch_that_breaks_the_rules_later_is_cut_off(octets: bytes, reason: Misbehaviour) -> None:
    async def run() -> None:
        before = num_refused(reason)
        async with unharmed() as at:
            switch = FakeSwitch(2)
            channel = await at.connect(switch)
            reasons: list[str] = []
            channel.on_closed = reasons.append
            switch.send(octets)
            await switch.has_ended.wait()
            assert reasons == [channel.closed_because]
            assert num_refused(reason) == before + 1

    in_time(run)


def _multipart(switch: FakeSwitch, more: bytes) -> Callable[[fake_switch.Received], bytes]:
    return lambda each: switch.reply(each, each.body[:2] + more + bytes(4 + 1_000)) * 100


def test_an_answer_that_does_not_end_is_cut_off() -> None:
    async def run() -> None:
        before = num_refused(Misbehaviour.ENDLESS)
        async with unharmed(replace(PATIENT, answer_bytes=50_000)) as at:
            switch = FakeSwitch(2)
            channel = await at.connect(switch)
            switch.answers[fake_switch.MULTIPART_REQUEST] = _multipart(switch, b"\0\1")
            with pytest.raises(AwayError, match="answers have more than 50,000 bytes"):
                await channel.request(message(6, fake_switch.MULTIPART_REQUEST, 0, struct.pack("!HH4x", 1, 0)))
            assert num_refused(Misbehaviour.ENDLESS) == before + 1

    in_time(run)


def test_answers_to_several_requests_are_bounded_together() -> None:
    async def run() -> None:
        before = num_refused(Misbehaviour.ENDLESS)
        async with unharmed(replace(PATIENT, answer_bytes=150_000)) as at:
            switch = FakeSwitch(2)
            channel = await at.connect(switch)
            asked = message(6, fake_switch.MULTIPART_REQUEST, 0, struct.pack("!HH4x", 1, 0))
            switch.answers[fake_switch.MULTIPART_REQUEST] = _multipart(switch, b"\0\1")
            first = asyncio.create_task(channel.request(asked))  # about 111,200 bytes, and no end
            await until(lambda: any(len(each.parts) == 100 for each in channel._exchanges._answers.values()))
            assert num_refused(Misbehaviour.ENDLESS) == before
            for asking in (first, asyncio.create_task(channel.request(asked))):
                with pytest.raises(AwayError, match="answers have more than 150,000 bytes"):
                    await asking
            assert num_refused(Misbehaviour.ENDLESS) == before + 1

    in_time(run)


def test_an_answer_of_another_type_is_cut_off() -> None:
    async def run() -> None:
        async with unharmed() as at:
            switch = FakeSwitch(2)
            channel = await at.connect(switch)
            switch.answers[fake_switch.BARRIER_REQUEST] = lambda each: message(6, fake_switch.ECHO_REPLY, each.xid)
            with pytest.raises(AwayError, match="an answer of type 3 where 21 is expected"):
                await channel.write([flow_mod(6, "a")])

    in_time(run)


@pytest.mark.parametrize("answers_echo", [True, False])
def test_a_silent_switch_is_given_up_and_a_quiet_one_is_not(answers_echo: bool) -> None:
    async def run() -> None:
        before = num_refused(Misbehaviour.SILENT)
        limits = replace(PATIENT, quiet_s=0.05, silent_s=0.05 + (60.0 if answers_echo else 0.2))
        switch = FakeSwitch()
        async with connected(switch, limits) as channel:
            if answers_echo:
                await until(lambda: [each.kind for each in switch.received].count(fake_switch.ECHO_REQUEST) > 3)
                assert channel.is_open
            else:
                del switch.answers[fake_switch.ECHO_REQUEST]
                await switch.has_ended.wait()
                assert channel.closed_because == "has said nothing for 0.25 s"
        assert num_refused(Misbehaviour.SILENT) == before + (not answers_echo)

    in_time(run)


@pytest.mark.parametrize("kind", [fake_switch.BARRIER_REQUEST, fake_switch.ROLE_REQUEST])
def test_a_switch_that_answers_echo_alone_is_given_up(kind: int) -> None:
    async def run() -> None:
        switch = FakeSwitch(version=4)
        async with connected(switch, replace(PATIENT, answer_s=0.3)) as channel:
            del switch.answers[kind]
            with pytest.raises(AwayError, match=r"^does not give an? .*answer within 0\.3 s$"):
                await (channel.claim(1) if kind == fake_switch.ROLE_REQUEST else channel.write([flow_mod(4, "a")]))
            assert not channel.is_open

    in_time(run)


def test_a_switch_that_does_not_read_is_given_up() -> None:
    async def run() -> None:
        before = num_refused(Misbehaviour.UNREAD)
        async with unharmed(replace(PATIENT, unread_bytes=100_000)) as at:
            switch = FakeSwitch(2)
            await at.connect(switch)
            switch.read_no_more()
            echo = message(6, fake_switch.ECHO_REQUEST, 1, bytes(60_000))
            while num_refused(Misbehaviour.UNREAD) == before:
                switch.send(echo)
                await asyncio.sleep(0)
            await until(lambda: not at.channels[-1].is_open)
            switch.close()

    in_time(run)


def test_a_switch_that_sends_without_end_is_read_slowly() -> None:
    async def run() -> None:
        async with unharmed(replace(PATIENT, messages_per_s=2_000.0)) as at:
            switch = FakeSwitch(2)
            channel = await at.connect(switch)
            num_packets = 0

            def count(_message: bytes) -> None:
                nonlocal num_packets
                num_packets += 1

            channel.on_packet_in = count
            loop = asyncio.get_running_loop()
            began_s = loop.time()
            switch.send(message(6, fake_switch.PACKET_IN, 0) * 4_000)
            await until(lambda: num_packets == 4_000)
            assert loop.time() - began_s > 0.4  # the first 2,000 and what was allowed meanwhile come at once
            switch.close()

    in_time(run)


_TYPES = st.integers(0, 40) | st.integers(0, 255)
_ANY_MESSAGES = st.lists(
    st.builds(
        lambda kind, xid, body: message(6, kind, xid, body), _TYPES, st.integers(0, 0x110), st.binary(max_size=90)
    ),
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(_ANY_MESSAGES, st.binary(max_size=20))
def test_whatever_a_switch_sends_it_stays_connected_or_is_cut_off_for_a_reason(
    messages: list[bytes], rest: bytes
) -> None:
    async def run() -> None:
        async with unharmed() as at:
            switch = FakeSwitch(2)
            channel = await at.connect(switch)
            reasons: list[str] = []
            channel.on_closed = reasons.append
            switch.answers.clear()
            asked = asyncio.gather(
                *(channel.request(message(6, kind, 0, bytes(8))) for kind in (18, 20, 24)),
                channel.claim(1),
                return_exceptions=True,
            )
            echo = message(6, fake_switch.ECHO_REQUEST, 0xE1)
            switch.send(b"".join(messages) + echo + rest)
            await until(lambda: switch.has_ended.is_set() or any(each.xid == 0xE1 for each in switch.received))
            switch.close()
            assert all(isinstance(each, (list, DaemonError, type(None))) for each in await asked)
            await until(lambda: not channel.is_open)
            assert reasons == [channel.closed_because]

    in_time(run)
