"""Peers that are no switches of ours, or misbehave in the handshake: named, counted, bounded, no harm to others."""

import asyncio
import logging
import re
import struct
from dataclasses import replace

import pytest

from controller.southbound.openflow.channel_errors import Misbehaviour
from tests.controller.southbound.openflow import fake_switch
from tests.controller.southbound.openflow.fake_switch import FakeSwitch, flow_mod, hello, message, port
from tests.controller.southbound.openflow.listening import PATIENT, Listening, connected, in_time, num_refused, unharmed
from tests.patience import until


async def _greet(address: str, octets: bytes) -> bytes:
    """Send bytes as a peer's first, and return all that comes until the connection ends."""
    host, _, where = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(where))
    writer.write(octets)
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.transport.abort()


@pytest.mark.parametrize(
    ("octets", "problem"),
    [
        (b"GET / HTTP/1.1\r\nHost: controller\r\n\r\n", "no OpenFlow hello: 47 45 54 20 2f 20 48 54"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", "a TLS handshake where plain text is expected"),
        (bytes(8), "no OpenFlow hello: 00 00 00 00 00 00 00 00"),
        (b"\xff" * 64, "no OpenFlow hello"),
        (struct.pack("!BBHI", 6, 0, 7, 0), "no OpenFlow hello"),
        (struct.pack("!BBHI", 6, 0, 0xFFFF, 0), "no OpenFlow hello"),
        (message(6, fake_switch.FEATURES_REPLY, 0, bytes(24)), "no OpenFlow hello"),
        (message(6, fake_switch.HELLO, 0, struct.pack("!HH", 1, 200)), "a hello with an element of 200 bytes"),
        (message(6, fake_switch.ERROR, 0, b"\0"), "an error message of 9 bytes"),
        (hello(6, 6) + message(6, fake_switch.HELLO, 0)[:2] + bytes(6), "a message that says it has 0 bytes"),
        (hello(6, 6) + message(4, fake_switch.ECHO_REQUEST, 0), "a message of version 4 where 6 was agreed"),
        (hello(6, 6) + message(6, fake_switch.FEATURES_REPLY, 5, b"short"), "a features reply of 13 bytes"),
        (
            hello(6, 6) + message(6, fake_switch.ERROR, 5, struct.pack("!HH", 1, 5)),
            "refuses the handshake: bad request",
        ),
    ],
)
def test_garbage_is_named_and_refused(octets: bytes, problem: str, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        before = num_refused(Misbehaviour.GARBAGE)
        async with unharmed() as at:
            await _greet(at.address, octets)
            await until(lambda: num_refused(Misbehaviour.GARBAGE) == before + 1)

    with caplog.at_level(logging.WARNING):
        in_time(run)
    (line,) = caplog.messages
    assert re.match(rf"OpenFlow connection from 127\.0\.0\.1:\d+ refused: {re.escape(problem)}", line)


@pytest.mark.parametrize(
    ("greeting", "offered"),
    [
        (hello(1), "1.0"),
        (hello(3), "1.2"),
        (hello(5), "1.4"),
        (hello(5, 1, 2, 3, 5), "1.0, 1.1, 1.2, 1.4"),
        (message(6, fake_switch.HELLO, 0, struct.pack("!HH4x", 1, 8)), "no version"),
        (message(9, fake_switch.HELLO, 0, struct.pack("!HHII", 1, 12, 0, 1 << 8)), "version 40"),
    ],
)
def test_a_peer_without_our_versions_is_told_so(
    greeting: bytes, offered: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        before = num_refused(Misbehaviour.VERSION)
        async with unharmed() as at:
            answer = await _greet(at.address, greeting)
            assert answer[:8].startswith(b"\x06\x00")
            error = answer[16:]
            assert error[:2] == bytes((greeting[0], fake_switch.ERROR))
            assert error[8:12] == bytes(4)
            assert error[12:].decode() == f"speaks OpenFlow {offered}; 1.3 or 1.5 is needed"
            await until(lambda: num_refused(Misbehaviour.VERSION) == before + 1)

    in_time(run)
    assert f"refused: speaks OpenFlow {offered}; 1.3 or 1.5 is needed" in caplog.text


@pytest.mark.parametrize(
    ("greeting", "version"), [(hello(4), 4), (hello(6), 6), (hello(9), 6), (hello(5, 4, 5), 4), (hello(6, 4, 6), 6)]
)
def test_the_highest_version_of_both_is_spoken(greeting: bytes, version: int) -> None:
    async def run() -> None:
        switch = FakeSwitch(version=version)
        switch.hello = greeting
        async with connected(switch) as channel:
            assert channel.version == version

    in_time(run)


@pytest.mark.parametrize("octets", [b"", b"\x06", hello(6, 6), hello(6, 6) + b"\x06\x06\xff"])
def test_a_peer_that_does_not_go_on_is_given_up(octets: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        before = num_refused(Misbehaviour.SLOW)
        async with unharmed(replace(PATIENT, handshake_s=0.5)) as at:
            await _greet(at.address, octets)
            await until(lambda: num_refused(Misbehaviour.SLOW) == before + 1)

    in_time(run)
    assert "refused: no whole handshake within 0.5 s" in caplog.text


def test_a_peer_that_sends_byte_by_byte_has_no_longer() -> None:
    async def run() -> None:
        before = num_refused(Misbehaviour.SLOW)
        async with unharmed(replace(PATIENT, handshake_s=0.5)) as at:
            host, _, where = at.address.rpartition(":")
            _, writer = await asyncio.open_connection(host, int(where))
            for octet in hello(6, 6) + message(6, fake_switch.PACKET_IN, 0, bytes(10_000)):
                writer.write(bytes((octet,)))
                await asyncio.sleep(0.01)
                if num_refused(Misbehaviour.SLOW) == before + 1:
                    break
            writer.transport.abort()
            await until(lambda: num_refused(Misbehaviour.SLOW) == before + 1)

    in_time(run)


def test_a_peer_that_sends_other_messages_for_ever_is_given_up() -> None:
    async def run() -> None:
        before = num_refused(Misbehaviour.ENDLESS)
        async with unharmed() as at:
            await _greet(at.address, hello(6, 6) + message(6, fake_switch.ECHO_REQUEST, 1) * 2_000)
            await until(lambda: num_refused(Misbehaviour.ENDLESS) == before + 1)

    in_time(run)


def test_a_connection_whose_switch_has_gone_is_let_go() -> None:
    async def run() -> None:
        before = num_refused(Misbehaviour.HUNG_UP)
        async with unharmed() as at:
            host, _, where = at.address.rpartition(":")
            _, writer = await asyncio.open_connection(host, int(where))
            writer.write(hello(6, 6))
            writer.close()
            await until(lambda: num_refused(Misbehaviour.HUNG_UP) == before + 1)

    in_time(run)


async def _is_refused(switch: FakeSwitch, address: str, reason: Misbehaviour) -> None:
    before = num_refused(reason)
    await switch.connect(address)
    await switch.has_ended.wait()
    await until(lambda: num_refused(reason) == before + 1)


def test_an_unknown_datapath_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with unharmed() as at:
            await _is_refused(FakeSwitch(0x99), at.address, Misbehaviour.UNKNOWN)

    in_time(run)
    assert "refused: 0x99: no switch has this datapath id" in caplog.text


def test_an_auxiliary_connection_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with unharmed() as at:
            switch = FakeSwitch(2)
            switch.auxiliary_id = 3
            await _is_refused(switch, at.address, Misbehaviour.AUXILIARY)

    in_time(run)
    assert "refused: 0x2: an auxiliary connection (number 3) is not served" in caplog.text


def test_a_second_switch_of_a_datapath_is_refused_while_the_first_answers(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with unharmed() as at:
            await _is_refused(FakeSwitch(1), at.address, Misbehaviour.DUPLICATE)
            assert at.channels[0].is_open

    in_time(run)
    assert "refused: 0x1: a switch of this datapath id is connected from 127.0.0.1:" in caplog.text


def test_a_switch_that_connects_anew_replaces_its_dead_connection() -> None:
    async def run() -> None:
        async with unharmed(replace(PATIENT, quiet_s=0.5)) as at:
            dead = FakeSwitch(2)
            old = await at.connect(dead)
            reasons: list[str] = []
            old.on_closed = reasons.append
            del dead.answers[fake_switch.ECHO_REQUEST]
            alive = FakeSwitch(2)
            new = await at.connect(alive)
            assert reasons == ["the switch has connected anew"]
            await new.write([flow_mod(6, "a")])
            assert alive.flows == ["a"]
            alive.close()

    in_time(run)


def test_switches_that_are_no_longer_expected_are_let_go() -> None:
    async def run() -> None:
        async with unharmed() as at:
            switch = FakeSwitch(2)
            channel = await at.connect(switch)
            at.listener.follow([1])
            assert channel.closed_because == "the fabric has the switch no longer"
            await switch.has_ended.wait()
            await _is_refused(FakeSwitch(2), at.address, Misbehaviour.UNKNOWN)

    in_time(run)


@pytest.mark.parametrize(
    ("ports", "problem"),
    [
        ([port(6, 1), port(6, 2), port(6, 1)], "0x2: describes port 1 twice"),
        ([port(6, 0)], "0x2: has a port 0, which cannot be"),
        ([port(6, 1)[:-1]], "0x2: its port descriptions: "),
        ([b"\0\0\0\1\0\0" + bytes(34)], "0x2: its port descriptions: "),
    ],
)
def test_a_switch_that_lies_about_its_ports_is_refused(
    ports: list[bytes], problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with unharmed() as at:
            switch = FakeSwitch(2)
            switch.ports = ports
            await _is_refused(switch, at.address, Misbehaviour.PORTS)

    in_time(run)
    assert f"refused: {problem}" in caplog.text


def test_a_switch_with_more_ports_than_can_be_is_refused() -> None:
    async def run() -> None:
        async with unharmed() as at:
            switch = FakeSwitch(2)
            parts = [b"".join(port(6, first + each) for each in range(1_000)) for first in range(1, 5_000, 1_000)]
            switch.answers[fake_switch.MULTIPART_REQUEST] = lambda each: switch.parts(each, parts)
            await _is_refused(switch, at.address, Misbehaviour.PORTS)

    in_time(run)


def test_a_long_description_of_ports_is_cut_off_before_all_of_it_has_come() -> None:
    async def run() -> None:
        async with unharmed() as at:
            switch = FakeSwitch(2)
            part = port(6, 1) * 1_600
            switch.answers[fake_switch.MULTIPART_REQUEST] = lambda each: switch.parts(each, [part] * 17 + [b"", b""])[
                :-16
            ]
            await _is_refused(switch, at.address, Misbehaviour.ENDLESS)

    in_time(run)


async def _is_taken(switch: FakeSwitch, at: Listening) -> bool:
    """Connect a switch; return whether it is connected, rather than refused."""
    num_before = len(at.channels)
    await switch.connect(at.address)
    await until(lambda: len(at.channels) > num_before or switch.has_ended.is_set())
    return len(at.channels) > num_before


def test_one_address_cannot_have_too_many_handshakes() -> None:
    async def run() -> None:
        before = num_refused(Misbehaviour.TOO_MANY)
        async with unharmed() as at:
            host, _, where = at.address.rpartition(":")
            writers = [(await asyncio.open_connection(host, int(where)))[1] for _ in range(262)]
            await until(lambda: num_refused(Misbehaviour.TOO_MANY) == before + 6)
            for writer in writers:
                writer.transport.abort()
            switch = FakeSwitch(2)
            while not await _is_taken(switch, at):  # as long as those that have gone still count
                switch = FakeSwitch(2)
            switch.close()

    in_time(run)
