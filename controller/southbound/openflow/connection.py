"""The bytes of one connection with a peer that speaks OpenFlow: whole messages in, a bounded number of bytes out."""

import asyncio
import socket
import ssl
from asyncio import StreamReader, StreamWriter

from controller.southbound.openflow.certificates import names_of
from controller.southbound.openflow.channel_errors import AwayError, Misbehaviour, MisbehaviourError
from controller.southbound.openflow.framing import Framer
from controller.southbound.openflow.limits import ChannelLimits
from topologies.printable import printable

READ_BYTES = 64 * 1024
"""So much is read at once, and as much may wait."""

_NO_TLS = "WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"
"""What OpenSSL says of bytes that begin no handshake."""


class Connection:
    """A connection to ``peer``, its address in words; its certificate is for ``certificate_names``."""

    def __init__(self, reader: StreamReader, writer: StreamWriter, peer: str, limits: ChannelLimits) -> None:
        self.peer = peer
        self.certificate_names = names_of(writer)
        self._reader = reader
        self._writer = writer
        self._limits = limits
        self._framer = Framer()
        _send_at_once(writer)

    def expect(self, version: int) -> None:
        """Take messages of this version alone from now on."""
        self._framer.expect(version)

    async def receive(self, most: int = 1 << 16) -> list[bytes]:
        """Wait for messages, and return up to so many that are there.

        Raises:
            AwayError: The connection has ended.
            MisbehaviourError: What comes is no message.
        """
        while not (messages := self._framer.take(most)):
            try:
                octets = await self._reader.read(READ_BYTES)
            except OSError as error:
                raise AwayError(words_of(error)) from error
            if not octets:
                raise AwayError("the switch has closed the connection")
            self._framer.feed(octets)
        return messages

    @property
    def num_unread(self) -> int:
        """The bytes that wait to be sent."""
        return self._writer.transport.get_write_buffer_size()

    def send(self, octets: bytes | bytearray) -> None:
        """Send bytes, soon.

        Raises:
            MisbehaviourError: Too many wait already, as the peer does not read.
        """
        if self.num_unread > self._limits.unread_bytes:
            raise MisbehaviourError(Misbehaviour.UNREAD, f"does not read: {self.num_unread:,} bytes wait for it")
        self._writer.write(octets)

    async def drain(self) -> None:
        """Wait until more can be sent.

        Raises:
            AwayError: The connection has ended.
        """
        try:
            await self._writer.drain()
        except OSError as error:
            raise AwayError(words_of(error)) from error

    def close(self) -> None:
        """End the connection once what was sent has gone, within a second."""
        transport = self._writer.transport
        if not transport.is_closing():
            transport.close()
            asyncio.get_running_loop().call_later(1.0, transport.abort)


def _send_at_once(writer: StreamWriter) -> None:
    """Have TCP send small messages at once.

    It would hold a barrier back until the peer acknowledges what is before it, which takes 40 ms. asyncio sees to that
    only for sockets that were made with a protocol number, which accepted ones may lack.
    """
    connected = writer.get_extra_info("socket")
    if connected is not None and connected.family in (socket.AF_INET, socket.AF_INET6):
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def words_of(error: OSError) -> str:
    """What has ended a connection, or kept it from being made, in one line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return printable(f"its certificate is refused: {error.verify_message}")
    if isinstance(error, ssl.SSLError):
        if error.reason in _NO_TLS:
            return "plain text where TLS is expected"
        return printable(f"TLS: {(error.reason or str(error)).replace('_', ' ').lower()}")
    return printable(error.strerror or str(error) or type(error).__name__)
