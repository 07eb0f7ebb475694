"""Sends packets to the ports of a switch and receives what leaves them, in a program of its own.

with PacketClient("ipc:///tmp/s1.ipc", ports=(1, 2)) as switch:
    switch.send(1, bytes(Ether() / IP(dst="10.0.2.2")))
    print(switch.receive())
"""

import socket
import struct
import time
from collections.abc import Collection
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from emulator.packet_io.messages import GREETING, PORT_DOWN, PORT_UP, Kind, Message, PacketAddress, framed


@dataclass(frozen=True, slots=True)
class Received:
    """A packet that has left a port."""

    port: int
    octets: bytes


class PacketClient:
    """One program's end of a packet socket; a switch has one at a time.

    Args:
        address: ``ipc://FILE`` or ``tcp://HOST:PORT``, as ``trainyard emulator --packets`` was given it.
        ports: The ports whose packets are received; packets may be sent to any.
        timeout_s: How long to wait for the switch.

    Raises:
        OSError: Nobody listens there.
        ValueError: The address is none.
    """

    def __init__(self, address: str, ports: Collection[int], timeout_s: float = 10.0) -> None:
        where = PacketAddress.parse(address)
        self._is_tcp = where.is_tcp
        if where.path is None:
            self._socket = socket.create_connection((where.host, where.port), timeout_s)
        else:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.settimeout(timeout_s)
            self._socket.connect(where.path)
        self._read = b""
        self._socket.sendall(GREETING)
        if self._take(len(GREETING), time.monotonic() + timeout_s) != GREETING:
            raise ConnectionError(f"{address} is no packet socket, or has another program")
        for port in ports:
            self._write(Message(Kind.PORT_ADD, port))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def fileno(self) -> int:
        """Return the file to wait for packets at, with ``select``."""
        return self._socket.fileno()

    def send(self, port: int, octets: bytes) -> None:
        """Send a packet into a port."""
        self._write(Message(Kind.PACKET_IN, port, len(octets), octets))

    def set_port(self, port: int, *, up: bool) -> None:
        """Take a port of the switch down, or bring it up."""
        self._write(Message(Kind.PORT_SET_STATUS, port, PORT_UP if up else PORT_DOWN))

    def receive(self, timeout_s: float = 2.0) -> Received | None:
        """Return the next packet, or None if none comes in time. Raises ConnectionError where the switch has ended."""
        until_s = time.monotonic() + timeout_s
        while True:
            prefix = 0 if self._is_tcp else 1
            start = self._take(prefix + 8, until_s, keep=True)
            if start is None:
                return None
            (length,) = struct.unpack(">Q", start[prefix:])
            framed_message = self._take(prefix + 8 + length, until_s)
            if framed_message is None:
                return None
            message = Message.decoded(framed_message[prefix + 8 :])
            if message.kind == Kind.PACKET_OUT:
                return Received(message.port, message.rest)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _write(self, message: Message) -> None:
        self._socket.sendall(framed(message, is_tcp=self._is_tcp))

    def _take(self, length: int, until_s: float, *, keep: bool = False) -> bytes | None:
        """Return the next bytes, and forget them unless told to ``keep`` them; None where they do not come in time."""
        while len(self._read) < length:
            self._socket.settimeout(max(until_s - time.monotonic(), 1e-6))
            try:
                octets = self._socket.recv(1 << 16)
            except (TimeoutError, BlockingIOError):
                return None
            finally:
                self._socket.settimeout(None)
            if not octets:
                raise ConnectionError("the switch has ended the connection: it stops, or has another program")
            self._read += octets
        taken = self._read[:length]
        if not keep:
            self._read = self._read[length:]
        return taken
