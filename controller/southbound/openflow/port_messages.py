"""Ports of a switch as it describes them, and what went through them.

The structures are those of sections 7.2.1, 7.3.5.6, 7.3.5.7 and 7.4.3 of OpenFlow 1.3.5, and of the same structures in
1.5.1, where properties follow that we do not need.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from controller.southbound.openflow.messages import (
    ANY_PORT,
    LAST_PORT,
    MalformedError,
    MessageType,
    MultipartType,
    Version,
    body_of,
    equal_parts,
    multipart_bodies,
    multipart_request,
    sized_parts,
    unpack_start,
)
from topologies.addressing import MacAddress


@dataclass(frozen=True, slots=True)
class PortDescription:
    """A port; it is up where the switch has it enabled and its cable has a signal."""

    number: int
    name: str
    mac: MacAddress
    is_up: bool


class PortChange(IntEnum):
    """Why a switch tells the state of a port."""

    ADDED = 0
    DELETED = 1
    MODIFIED = 2


@dataclass(frozen=True, slots=True)
class PortStatistics:
    """What a port has received and sent since it is there; None where the switch does not count it."""

    number: int
    received_packets: int | None
    sent_packets: int | None
    received_bytes: int | None
    sent_bytes: int | None
    received_dropped: int | None
    sent_dropped: int | None
    received_errors: int | None
    sent_errors: int | None


_PORT_1_3 = struct.Struct("!I4x6s2x16sII24x")
"""Number, MAC, name, configuration, state."""
_PORT_1_5 = struct.Struct("!I4x6s2x16sII")
"""The same; the length is behind the number."""
_LENGTH_AT = 4
_PORT_STATUS = struct.Struct("!B7x")
_STATISTICS_1_3 = struct.Struct("!I4x8Q40x")
"""Number; packets, bytes, dropped and errors, each received and sent."""
_STATISTICS_1_5 = struct.Struct("!4xI8x8Q")
"""The same; the length is at the beginning."""
_REQUEST = struct.Struct("!I4x")

_IS_DISABLED = 1 << 0
"""A bit of the configuration."""
_HAS_NO_SIGNAL = 1 << 0
"""A bit of the state."""
_UNKNOWN = 0xFFFF_FFFF_FFFF_FFFF


def port_descriptions_request(version: int) -> bytes:
    """Ask for the description of every port."""
    body = b"" if version == Version.OPENFLOW_1_3 else _REQUEST.pack(ANY_PORT)
    return multipart_request(version, MultipartType.PORT_DESCRIPTIONS, body)


def decode_port_descriptions(replies: Sequence[bytes], version: int) -> list[PortDescription]:
    """Return the ports that can have a cable: those with reserved numbers, as a bridge's own, are left out.

    Raises:
        MalformedError: The replies are truncated or corrupt.
    """
    bodies = multipart_bodies(replies, MultipartType.PORT_DESCRIPTIONS, version)
    ports = [port for body in bodies for port in _ports(body, version)]
    return [port for port in ports if port.number <= LAST_PORT]


def decode_port_status(message: bytes, version: int) -> tuple[PortChange, PortDescription]:
    """Return what has become of a port; its number may be a reserved one.

    Raises:
        MalformedError: The message is truncated or corrupt.
    """
    body = body_of(message, MessageType.PORT_STATUS, version)
    (reason,) = unpack_start(_PORT_STATUS, body, "a port status")
    ports = list(_ports(body[_PORT_STATUS.size :], version))
    if reason not in set(PortChange) or len(ports) != 1:
        raise MalformedError(f"a port status has reason {reason} and tells of {len(ports)} ports")
    return PortChange(reason), ports[0]


def port_statistics_request(version: int) -> bytes:
    """Ask for the statistics of every port."""
    return multipart_request(version, MultipartType.PORT_STATISTICS, _REQUEST.pack(ANY_PORT))


def decode_port_statistics(replies: Sequence[bytes], version: int) -> list[PortStatistics]:
    """Return the statistics of ports with numbers that are not reserved.

    Raises:
        MalformedError: The replies are truncated or corrupt.
    """
    found = [
        PortStatistics(number, *(None if count == _UNKNOWN else count for count in counts))
        for body in multipart_bodies(replies, MultipartType.PORT_STATISTICS, version)
        for number, *counts in _statistics(body, version)
    ]
    return [port for port in found if port.number <= LAST_PORT]


def _ports(octets: bytes, version: int) -> Iterator[PortDescription]:
    parts: Iterable[tuple[Any, ...]]
    if version == Version.OPENFLOW_1_3:
        parts = equal_parts(octets, _PORT_1_3, "a port")
    else:
        parts = (unpack_start(_PORT_1_5, part, "a port") for part in sized_parts(octets, "a port", _LENGTH_AT))
    for number, mac, name, configuration, state in parts:
        is_up = not (configuration & _IS_DISABLED or state & _HAS_NO_SIGNAL)
        shown = name.partition(b"\0")[0].decode(errors="backslashreplace")
        yield PortDescription(number, shown, MacAddress.from_bytes(mac, "big"), is_up)


def _statistics(octets: bytes, version: int) -> Iterable[tuple[int, ...]]:
    what = "the statistics of a port"
    if version == Version.OPENFLOW_1_3:
        return equal_parts(octets, _STATISTICS_1_3, what)
    return (unpack_start(_STATISTICS_1_5, part, what) for part in sized_parts(octets, what))
