"""Packet sockets, by the client of ours and by raw bytes."""

import asyncio
import os
import socket
import stat
import struct
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.packet_io.client import PacketClient, Received
from emulator.packet_io.messages import GREETING, Kind, Message, MessageError, PacketAddress
from emulator.packet_io.packet_socket import PacketSocket
from tests.patience import PATIENCE_S
from tests.ports import free_port


class Told:
    """What a socket has handed on."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, bytes]] = []
        self.ports: list[tuple[int, bool]] = []

    async def send(self, port: int, octets: bytes) -> None:
        if not octets:
            raise ValueError("it is empty")
        self.sent.append((port, octets))

    async def set_port(self, port: int, up: bool) -> None:
        self.ports.append((port, up))

    def socket(self, address: str, greets_within_s: float = PATIENCE_S) -> PacketSocket:
        macs = {1: "08:00:00:00:01:11", 2: None}
        return PacketSocket("s1", PacketAddress.parse(address), macs, self.send, self.set_port, greets_within_s)


def _run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await scenario()

    asyncio.run(bounded())


async def _until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("kind", ["ipc", "127.0.0.1", "[::1]"])
def test_packets_pass_both_ways(tmp_path: Path, kind: str) -> None:
    address = f"ipc://{tmp_path / 's1.ipc'}" if kind == "ipc" else f"tcp://{kind}:{free_port()}"

    async def scenario() -> None:
        told = Told()
        served = told.socket(address)
        await served.listen()
        client = await asyncio.to_thread(PacketClient, address, (1,))
        with client:
            await asyncio.to_thread(client.send, 1, b"hello")
            await asyncio.to_thread(client.send, 2, bytes(9000))
            await asyncio.to_thread(client.set_port, 2, up=False)
            await _until(lambda: told.ports)
            assert told.sent == [(1, b"hello"), (2, bytes(9000))]
            assert told.ports == [(2, False)]
            served.deliver(2, b"not added")
            served.deliver(1, b"answer")
            assert await asyncio.to_thread(client.receive, PATIENCE_S) == Received(1, b"answer")
            assert await asyncio.to_thread(client.receive, 0.01) is None
        await served.close()

    _run(scenario)


def test_a_second_program_is_refused_and_one_may_come_again(tmp_path: Path) -> None:
    address = f"ipc://{tmp_path / 's1.ipc'}"

    async def scenario() -> None:
        served = Told().socket(address)
        await served.listen()
        first = await asyncio.to_thread(PacketClient, address, (1,))
        with pytest.raises(ConnectionError):
            await asyncio.to_thread(PacketClient, address, (1,))
        first.close()
        for _ in range(3):
            while True:
                try:
                    (await asyncio.to_thread(PacketClient, address, (1,))).close()
                    break
                except ConnectionError:  # it has not noticed yet that the last one has left
                    await asyncio.sleep(0.01)
        await served.close()
        assert not (tmp_path / "s1.ipc").exists()

    _run(scenario)


def test_the_file_of_a_live_emulator_is_left_and_that_of_a_dead_one_replaced(tmp_path: Path) -> None:
    address = f"ipc://{tmp_path / 's1.ipc'}"

    async def scenario() -> None:
        first, second = Told().socket(address), Told().socket(address)
        await first.listen()
        with pytest.raises(OSError, match="is taken"):
            await second.listen()
        await second.close()
        assert (tmp_path / "s1.ipc").exists()
        await first.close()
        left = socket.socket(socket.AF_UNIX)
        left.bind(str(tmp_path / "s1.ipc"))
        left.close()
        await second.listen()
        await second.close()

    _run(scenario)


def test_what_is_asked_of_ports_is_answered(tmp_path: Path) -> None:
    async def scenario() -> None:
        told = Told()
        served = told.socket(f"ipc://{tmp_path / 's1.ipc'}")
        await served.listen()
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s1.ipc"))
        writer.write(GREETING)
        assert await reader.readexactly(8) == GREETING

        async def asked(port: int, what: int) -> bytes:
            body = struct.pack("<iii", Kind.INFO_REQUEST, port, what)
            writer.write(b"\x01" + struct.pack(">Q", len(body)) + body)
            (length,) = struct.unpack(">xQ", await reader.readexactly(9))
            answer = await reader.readexactly(length)
            assert struct.unpack_from("<iii", answer) == (Kind.INFO_REPLY, port, what)
            return answer[12:]

        assert await asked(1, 0) == struct.pack("<i", 0) + b"08:00:00:00:01:11"
        assert await asked(2, 0) == struct.pack("<i", 1)
        assert await asked(7, 0) == struct.pack("<i", 1)
        served.deliver(1, b"x")
        assert await asked(1, 1) == struct.pack("<iii", 0, 0, 1)
        assert await asked(1, 9) == struct.pack("<i", 1)
        writer.close()
        await served.close()

    _run(scenario)


@pytest.mark.parametrize(
    "octets",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        GREETING[:4] + b"\x00\x50\x00\x00",
        GREETING + b"\x02" + bytes(8),
        GREETING + b"\x01" + b"\xff" * 8,
        GREETING + b"\x01" + struct.pack(">Q", 3) + b"abc",
        GREETING + b"\x01" + struct.pack(">Qiii", 12, 99, 1, 0),
        GREETING + b"\x01" + struct.pack(">Q", 14) + struct.pack("<iii", 3, 1, 5) + b"xx",
        b"",
    ],
)
def test_bytes_that_are_no_messages_end_that_connection_alone(tmp_path: Path, octets: bytes) -> None:
    address = f"ipc://{tmp_path / 's1.ipc'}"

    async def scenario() -> None:
        told = Told()
        served = told.socket(address)
        await served.listen()
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s1.ipc"))
        writer.write(octets)
        if octets:
            await reader.read()  # it closes
        writer.close()
        await asyncio.sleep(0.02)
        with await asyncio.to_thread(PacketClient, address, (1,)) as client:
            await asyncio.to_thread(client.send, 1, b"still here")
            await _until(lambda: told.sent)
        await served.close()

    _run(scenario)


def test_who_says_nothing_keeps_nobody_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        served = Told().socket(f"ipc://{tmp_path / 's1.ipc'}", greets_within_s=0.05)
        await served.listen()
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s1.ipc"))
        assert await reader.read() == GREETING  # then it closes
        (await asyncio.to_thread(PacketClient, f"ipc://{tmp_path / 's1.ipc'}", (1,))).close()
        writer.close()
        await served.close()

    _run(scenario)
    assert "nothing came in 0.05 s; the connection ends" in caplog.text


def test_only_the_owner_of_the_file_may_connect(tmp_path: Path) -> None:
    async def scenario() -> None:
        served = Told().socket(f"ipc://{tmp_path / 's1.ipc'}")
        await served.listen()
        assert stat.S_IMODE((tmp_path / "s1.ipc").stat().st_mode) == 0o600
        await served.close()

    _run(scenario)


def test_a_packet_that_the_switch_cannot_take_and_an_unknown_port_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address = f"ipc://{tmp_path / 's1.ipc'}"

    async def scenario() -> None:
        told = Told()
        served = told.socket(address)
        await served.listen()
        with await asyncio.to_thread(PacketClient, address, (1, 9)) as client:
            await asyncio.to_thread(client.send, 1, b"")
            await asyncio.to_thread(client.send, 1, b"fine")
            await _until(lambda: told.sent)
        await served.close()

    _run(scenario)
    assert "has no port 9 with a host; it has 1, 2" in caplog.text
    assert "a packet for port 1 is lost: it is empty" in caplog.text


@given(st.sampled_from(Kind), st.integers(-(2**31), 2**31 - 1), st.binary(max_size=50))
def test_a_message_survives_its_bytes(kind: Kind, port: int, rest: bytes) -> None:
    message = Message(kind, port, len(rest), rest)
    assert Message.decoded(message.encoded()) == message


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_refused(octets: bytes) -> None:
    with suppress(MessageError):
        assert Message.decoded(octets).encoded() == octets


@pytest.mark.parametrize(
    "text", ["", "ipc://", "tcp://host", "tcp://:1", "tcp://host:x", "tcp://h:99999", "udp://a:1", "tcp://::1:5"]
)
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected ipc://FILE or tcp://HOST:PORT"):
        PacketAddress.parse(text)


def test_addresses_are_shown_as_they_are_given() -> None:
    for text in ("ipc:///tmp/s1.ipc", "tcp://127.0.0.1:10001", "tcp://[::1]:10001"):
        assert str(PacketAddress.parse(text)) == text
    assert os.fspath(PacketAddress.parse("ipc://s1.ipc").path or "") == "s1.ipc"
