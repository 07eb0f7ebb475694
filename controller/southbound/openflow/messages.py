"""The frame of every OpenFlow message, and the parts of a multipart reply.

The structures are those of the OpenFlow Switch Specification, versions 1.3.5 and 1.5.1, section 7. Messages are built
with transaction id 0; the channel that sends them gives each its own.
"""

import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any

from controller.errors import DaemonError


class MalformedError(DaemonError):
    """Bytes of a switch are truncated or corrupt; the message tells what they should have been."""


class Version(IntEnum):
    """The versions of OpenFlow that we speak, as they stand in headers."""

    OPENFLOW_1_3 = 4
    OPENFLOW_1_5 = 6


class MessageType(IntEnum):
    """The messages that entries, ports and frames of packets need, the same in both versions."""

    PACKET_IN = 10
    PORT_STATUS = 12
    PACKET_OUT = 13
    FLOW_MOD = 14
    GROUP_MOD = 15
    MULTIPART_REQUEST = 18
    MULTIPART_REPLY = 19


class MultipartType(IntEnum):
    """What a multipart message is about; version 1.5 calls FLOW_STATISTICS the flow descriptions."""

    FLOW_STATISTICS = 1
    PORT_STATISTICS = 4
    GROUP_STATISTICS = 6
    GROUP_DESCRIPTIONS = 7
    PORT_DESCRIPTIONS = 13


HEADER = struct.Struct("!BBHI")
"""Version, type, length in bytes, transaction id."""
_TYPE_AND_LENGTH = struct.Struct("!HH")
_MULTIPART = struct.Struct("!BBHIHH4x")
"""The header, the multipart type, flags."""

LONGEST_MESSAGE_BYTES = 0xFFFF
ANY_PORT = ANY_GROUP = 0xFFFF_FFFF
ALL_TABLES = 0xFF
ALL_GROUPS = 0xFFFF_FFFC
CONTROLLER_PORT = 0xFFFF_FFFD
LAST_PORT = 0xFFFF_FF00
"""Greater port numbers are reserved."""
NO_BUFFER = 0xFFFF_FFFF


def message(version: int, kind: MessageType, body: bytes) -> bytes:
    """Return a message with this body. Raises ValueError where it is longer than messages can be."""
    length = HEADER.size + len(body)
    if length > LONGEST_MESSAGE_BYTES:
        raise ValueError(f"a message of {length:,} bytes is longer than OpenFlow can say")
    return HEADER.pack(version, kind, length, 0) + body


def multipart_request(version: int, kind: MultipartType, body: bytes = b"") -> bytes:
    """Return a request for a multipart reply."""
    return _MULTIPART.pack(version, MessageType.MULTIPART_REQUEST, _MULTIPART.size + len(body), 0, kind, 0) + body


def body_of(message: bytes, kind: MessageType, version: int) -> bytes:
    """Return what is behind the header of a message.

    Raises:
        MalformedError: It is of another type or version, or has another length than it says.
    """
    if len(message) < HEADER.size:
        raise MalformedError(f"a message of {len(message)} bytes has no header")
    found_version, found_kind, length, _ = HEADER.unpack_from(message)
    if (found_version, found_kind) != (version, kind):
        raise MalformedError(
            f"expected message type {kind} of version {version}, found type {found_kind} of version {found_version}"
        )
    if length != len(message):
        raise MalformedError(f"a message says it has {length} bytes and has {len(message)}")
    return message[HEADER.size :]


def multipart_bodies(replies: Sequence[bytes], kind: MultipartType, version: int) -> Iterator[bytes]:
    """Yield the bodies of the messages that a multipart reply consists of.

    Raises:
        MalformedError: One is none of this type and version, or has another length than it says.
    """
    for reply in replies:
        body = body_of(reply, MessageType.MULTIPART_REPLY, version)
        if len(body) < 8:
            raise MalformedError(f"a multipart reply has {len(body)} bytes behind its header and needs 8")
        found = int.from_bytes(body[:2], "big")
        if found != kind:
            raise MalformedError(f"expected multipart type {kind}, found {found}")
        yield body[8:]


def unpack(structure: struct.Struct, octets: bytes, what: str) -> tuple[Any, ...]:
    """Return the values of a structure. Raises MalformedError, which says ``what``, where the length is another."""
    if len(octets) != structure.size:
        raise MalformedError(f"{what} has {len(octets)} bytes instead of {structure.size}")
    return structure.unpack(octets)


def sized_parts(octets: bytes, what: str, length_at: int = 0) -> Iterator[bytes]:
    """Yield parts that each have their length in two bytes, ``length_at`` bytes behind their beginning.

    Raises:
        MalformedError: A part, which ``what`` names, is truncated.
    """
    position = 0
    while position < len(octets):
        at = position + length_at
        length = int.from_bytes(octets[at : at + 2], "big")
        end = position + length
        if length < length_at + 2 or end > len(octets):
            raise MalformedError(f"{what} says it has {length} bytes of {len(octets) - position}")
        yield octets[position:end]
        position = end


def equal_parts(octets: bytes, structure: struct.Struct, what: str) -> Iterator[tuple[Any, ...]]:
    """Yield the values of structures one behind the other.

    Raises:
        MalformedError: The last one, which ``what`` names, is truncated.
    """
    if len(octets) % structure.size:
        raise MalformedError(f"{what} is truncated: {len(octets)} bytes are no multiple of {structure.size}")
    return structure.iter_unpack(octets)


def unpack_start(structure: struct.Struct, octets: bytes, what: str) -> tuple[Any, ...]:
    """Return the values of a structure that something begins with.

    Raises:
        MalformedError: It is shorter; the message says ``what`` it is.
    """
    if len(octets) < structure.size:
        raise MalformedError(f"{what} has {len(octets)} bytes and needs at least {structure.size}")
    return structure.unpack_from(octets)


def typed_parts(octets: bytes, what: str) -> Iterator[tuple[int, bytes]]:
    """Yield the type and the bytes of each action, instruction or property; they are padded to multiples of 8 bytes.

    Raises:
        MalformedError: One, which ``what`` names, is truncated.
    """
    position = 0
    while position < len(octets):
        left = len(octets) - position
        kind, length = _TYPE_AND_LENGTH.unpack_from(octets, position) if left >= _TYPE_AND_LENGTH.size else (0, 0)
        if length < _TYPE_AND_LENGTH.size or length + -length % 8 > left:
            raise MalformedError(f"{what} of type {kind} says it has {length} bytes of {left}")
        yield kind, octets[position : position + length]
        position += length + -length % 8
