"""Messages by which programs exchange packets with a switch, as BMv2's ``--packet-in`` and PTF's platform ``nn`` do.

Both ends are *Pair* sockets of the Scalability Protocols (nanomsg, NNG), over a Unix socket (``ipc://FILE``) or TCP
(``tcp://HOST:PORT``): each end sends a header of eight bytes, and then messages with their lengths. A message has three
little-endian integers, of which the first is its kind and the second a port.
"""

import asyncio
import re
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

_PAIR: Final = 0x10
GREETING: Final = struct.pack(">BBBBHH", 0, ord("S"), ord("P"), 0, _PAIR, 0)
"""The header that each end sends first."""

MOST_BYTES: Final = 1 << 17
"""The longest message that is taken."""

_HEADER: Final = struct.Struct("<iii")
_LENGTH: Final = struct.Struct(">Q")
_IN_ONE_PIECE: Final = b"\x01"
_HOST_PORT: Final = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:/\[\]]+)):(?P<port>\d{1,5})", re.ASCII)


class Kind(IntEnum):
    """What a message says. A program sends all but PACKET_OUT and INFO_REPLY; IN and OUT are the switch's words."""

    PORT_ADD = 0
    PORT_REMOVE = 1
    PORT_SET_STATUS = 2
    PACKET_IN = 3
    PACKET_OUT = 4
    INFO_REQUEST = 5
    INFO_REPLY = 6


class Info(IntEnum):
    """What a program asks of a port: its MAC address as text, or the packets that it has received and sent."""

    MAC = 0
    COUNTS = 1


PORT_UP, PORT_DOWN = 0, 1
SUCCESS, NOT_SUPPORTED = 0, 1


class MessageError(ValueError):
    """Bytes that are no message; the text says why."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message: its kind, a port, its third number (a status, what is asked, or a packet's length), and the rest."""

    kind: Kind
    port: int
    number: int = 0
    rest: bytes = b""

    def encoded(self) -> bytes:
        """Return its bytes."""
        return _HEADER.pack(self.kind, self.port, self.number) + self.rest

    @classmethod
    def decoded(cls, octets: bytes) -> "Message":
        """Return the message of some bytes. Raises MessageError."""
        if len(octets) < _HEADER.size:
            raise MessageError(f"a message of {len(octets)} bytes is shorter than {_HEADER.size}")
        kind, port, number = _HEADER.unpack_from(octets)
        rest = octets[_HEADER.size :]
        if kind not in set(Kind):
            raise MessageError(f"there is no message of kind {kind}")
        if kind in (Kind.PACKET_IN, Kind.PACKET_OUT) and number != len(rest):
            raise MessageError(f"a packet of {number} bytes comes with {len(rest)}")
        return cls(Kind(kind), port, number, rest)


def framed(message: Message, *, is_tcp: bool) -> bytes:
    """Return a message as it is sent over TCP, or over a Unix socket."""
    octets = message.encoded()
    return (b"" if is_tcp else _IN_ONE_PIECE) + _LENGTH.pack(len(octets)) + octets


async def read_message(reader: asyncio.StreamReader, *, is_tcp: bool) -> Message:
    """Return the next message.

    Raises:
        MessageError: The bytes are no message; no further one can be read.
        asyncio.IncompleteReadError: The other end has closed.
    """
    if not is_tcp and (piece := await reader.readexactly(1)) != _IN_ONE_PIECE:
        raise MessageError(f"a message begins with {piece.hex()}, not {_IN_ONE_PIECE.hex()}")
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if length > MOST_BYTES:
        raise MessageError(f"a message of {length:,} bytes is longer than {MOST_BYTES:,}")
    return Message.decoded(await reader.readexactly(length))


@dataclass(frozen=True, slots=True)
class PacketAddress:
    """Where a packet socket is: a file, or a host (an IPv6 address without brackets) and a TCP port."""

    path: str | None = None
    host: str = ""
    port: int = 0

    @property
    def is_tcp(self) -> bool:
        """Whether it is reached by TCP."""
        return self.path is None

    @property
    def host_port(self) -> str:
        """The host, an IPv6 address in brackets, and the port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "PacketAddress":
        """Return an address of its text. Raises ValueError."""
        scheme, separator, rest = text.partition("://")
        if separator and scheme == "ipc" and rest:
            return cls(path=rest)
        found = _HOST_PORT.fullmatch(rest)
        if separator and scheme == "tcp" and found and int(found["port"]) < 1 << 16:
            return cls(host=found["ipv6"] or found["host"], port=int(found["port"]))
        raise ValueError(f"expected ipc://FILE or tcp://HOST:PORT, got {text!r}")

    def __str__(self) -> str:
        return f"tcp://{self.host_port}" if self.path is None else f"ipc://{self.path}"
