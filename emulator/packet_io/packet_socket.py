"""A socket at which a program sends packets to the ports of one switch, and receives what leaves them.

PTF's platform ``nn`` speaks to it as it is, and so does what speaks to BMv2's ``--packet-in``
(``emulator.packet_io.messages``). ``PacketClient`` is the other end in Python.
"""

import asyncio
import contextlib
import logging
import os
import socket
import stat
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from emulator.packet_io.messages import (
    GREETING,
    NOT_SUPPORTED,
    PORT_UP,
    SUCCESS,
    Info,
    Kind,
    Message,
    MessageError,
    PacketAddress,
    framed,
    read_message,
)

_MOST_WAITING_BYTES = 16 << 20
"""A program that reads its packets more slowly than they come loses further ones, and answers."""
_LOG = logging.getLogger(__name__)


class PacketSocket:
    """The socket of one switch, for one program at a time.

    A program gets the packets of the ports that it has added. What it sends is handed to ``send``, and states of ports
    to ``set_port``.

    Args:
        switch: Name of the switch, for messages.
        address: Where to listen.
        macs: The MAC address behind every port of the switch, by its number; None where it has none.
        send: Sends a packet into a port; raises ValueError for one that the switch cannot take.
        set_port: Takes a port down, or brings it up.
        greets_within_s: How long a program may take for its first bytes.
    """

    def __init__(
        self,
        switch: str,
        address: PacketAddress,
        macs: Mapping[int, str | None],
        send: Callable[[int, bytes], Awaitable[None]],
        set_port: Callable[[int, bool], Awaitable[None]],
        greets_within_s: float = 10.0,
    ) -> None:
        self.switch = switch
        self.address = address
        self._macs = macs
        self._send = send
        self._set_port = set_port
        self._greets_within_s = greets_within_s
        self._ports: set[int] = set()
        self._writer: asyncio.StreamWriter | None = None
        self._server: asyncio.Server | None = None
        self._received: Counter[int] = Counter()
        self._sent: Counter[int] = Counter()
        self._lost = 0
        self._inode: int | None = None

    async def listen(self) -> None:
        """Begin to listen. Raises OSError where that is not possible; a file that nobody listens at is replaced.

        Only the owner of a file may connect.
        """
        address = self.address
        if address.path is None:
            self._server = await asyncio.start_server(self._serve, address.host, address.port)
            return
        path = Path(address.path)
        _remove_stale(path)
        listening = socket.socket(socket.AF_UNIX)
        try:
            os.fchmod(listening.fileno(), 0o600)  # Linux gives the file the mode that the socket has
            listening.bind(address.path)  # asyncio would take the file of another emulator away
        except OSError as error:
            listening.close()
            raise OSError(f"{address} is taken or cannot be bound: {error.strerror}") from error
        self._inode = path.stat().st_ino
        self._server = await asyncio.start_unix_server(self._serve, sock=listening)

    async def close(self) -> None:
        """Stop listening, and end the program's connection."""
        if self._server is not None:
            self._server.close()
        if self._writer is not None:
            self._writer.close()
        path = Path(self.address.path or "")
        if self._inode is not None and path.exists() and path.stat().st_ino == self._inode:
            path.unlink(missing_ok=True)

    def deliver(self, port: int, octets: bytes) -> None:
        """Hand a packet that has left a port to the program, if it has added the port."""
        self._sent[port] += 1
        if self._writer is None or port not in self._ports:
            return
        self._write(Message(Kind.PACKET_OUT, port, len(octets), octets))

    def __str__(self) -> str:
        return f"packets of {self.switch} at {self.address}"

    # ---- inside -----------------------------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._writer is not None:  # a Pair socket has one peer
            _LOG.warning("%s: another program is connected; a second one is refused", self)
            writer.close()
            return
        self._writer = writer
        try:
            writer.write(GREETING)
            await self._be_greeted(reader)
            while True:
                await self._react(await read_message(reader, is_tcp=self.address.is_tcp))
        except MessageError as error:
            _LOG.warning("%s: %s; the connection ends", self, error)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the program has ended
        finally:
            self._writer = None
            self._ports.clear()
            writer.close()

    async def _be_greeted(self, reader: asyncio.StreamReader) -> None:
        """Read the header of the other end, which keeps others out until then."""
        try:
            async with asyncio.timeout(self._greets_within_s):
                greeting = await reader.readexactly(len(GREETING))
        except TimeoutError:
            raise MessageError(f"nothing came in {self._greets_within_s:g} s") from None
        if greeting != GREETING:
            raise MessageError(f"expected a Pair socket of nanomsg, got {greeting.hex()}")

    async def _react(self, message: Message) -> None:
        port = message.port
        if port not in self._macs:
            ports = ", ".join(map(str, sorted(self._macs)))
            _LOG.warning("%s: the switch has no port %d with a host; it has %s", self, port, ports)
            if message.kind == Kind.INFO_REQUEST:
                self._answer(message, NOT_SUPPORTED, b"")
            return
        match message.kind:
            case Kind.PORT_ADD:
                self._ports.add(port)
            case Kind.PORT_REMOVE:
                self._ports.discard(port)
            case Kind.PORT_SET_STATUS:
                await self._set_port(port, message.number == PORT_UP)
            case Kind.PACKET_IN:
                self._received[port] += 1
                try:
                    await self._send(port, message.rest)
                except ValueError as error:
                    _LOG.warning("%s: a packet for port %d is lost: %s", self, port, error)
            case Kind.INFO_REQUEST if message.number == Info.MAC and self._macs[port] is not None:
                self._answer(message, SUCCESS, str(self._macs[port]).encode())
            case Kind.INFO_REQUEST if message.number == Info.COUNTS:
                counts = (self._received[port], self._sent[port])
                self._answer(message, SUCCESS, b"".join(count.to_bytes(4, "little") for count in counts))
            case Kind.INFO_REQUEST:
                self._answer(message, NOT_SUPPORTED, b"")
            case other:
                _LOG.warning("%s: a message of kind %s is for programs alone", self, other.name)

    def _answer(self, request: Message, status: int, rest: bytes) -> None:
        octets = status.to_bytes(4, "little") + rest
        self._write(Message(Kind.INFO_REPLY, request.port, request.number, octets))

    def _write(self, message: Message) -> None:
        if self._writer is not None:
            if self._writer.transport.get_write_buffer_size() > _MOST_WAITING_BYTES:
                self._lost += 1
                if self._lost == 1:
                    _LOG.warning("%s: packets are lost, because nobody reads them in time", self)
                return
            with contextlib.suppress(ConnectionError):
                self._writer.write(framed(message, is_tcp=self.address.is_tcp))


def _remove_stale(path: Path) -> None:
    """Remove the socket that an emulator has left which could not end properly; other files stay."""
    if not (path.exists() and stat.S_ISSOCK(path.stat().st_mode)):
        return
    with socket.socket(socket.AF_UNIX) as asking:
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
