"""Frames that a switch hands to the controller, and those that it is to send.

The structures are those of sections 7.3.7 and 7.4.1 of OpenFlow 1.3.5, and 7.3.6 and 7.4.1 of 1.5.1.
"""

import struct
from dataclasses import dataclass

from controller.southbound.openflow.actions import encode_output
from controller.southbound.openflow.fields import IN_PORT, extensible_fields, match_of, split_match
from controller.southbound.openflow.messages import (
    CONTROLLER_PORT,
    NO_BUFFER,
    MalformedError,
    MessageType,
    Version,
    body_of,
    message,
    unpack_start,
)

_PACKET_OUT_1_3 = struct.Struct("!IIH6x")
"""Buffer, port by which the frame came in, length of the actions."""
_PACKET_OUT_1_5 = struct.Struct("!IH2x")
"""Buffer, length of the actions; a match has the port by which the frame came in."""
_FROM_CONTROLLER = match_of(IN_PORT + CONTROLLER_PORT.to_bytes(4, "big"))
_PACKET_IN = struct.Struct("!IHBBQ")
"""Buffer, length of the whole frame, reason, table, cookie."""
_PADDING_BYTES = 2


@dataclass(frozen=True, slots=True)
class PacketIn:
    """A frame, or its first bytes, that came in by a port, and the cookie of the entry that handed it over."""

    port: int
    cookie: int
    octets: bytes


def encode_packet_out(port: int, octets: bytes, version: int) -> bytes:
    """Return the message that sends a frame out of a port.

    Raises:
        ValueError: The port is a reserved one, or the frame is longer than a message can be.
    """
    output = encode_output(port)
    if version == Version.OPENFLOW_1_3:
        start = _PACKET_OUT_1_3.pack(NO_BUFFER, CONTROLLER_PORT, len(output))
    else:
        start = _PACKET_OUT_1_5.pack(NO_BUFFER, len(output)) + _FROM_CONTROLLER
    return message(version, MessageType.PACKET_OUT, start + output + octets)


def decode_packet_in(message: bytes, version: int) -> PacketIn:
    """Return the frame of a message.

    Raises:
        MalformedError: The message is truncated or corrupt, or does not tell the port.
    """
    body = body_of(message, MessageType.PACKET_IN, version)
    *_, cookie = unpack_start(_PACKET_IN, body, "a packet-in")
    fields, end = split_match(body, _PACKET_IN.size)
    for header, port, _ in extensible_fields(fields, "a match field"):
        if header == IN_PORT:
            return PacketIn(port, cookie, body[end + _PADDING_BYTES :])
    raise MalformedError("a packet-in does not tell the port")
