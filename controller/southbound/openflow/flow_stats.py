"""The flow entries that a switch holds, read back with their counters.

Sections 7.3.5.2 of OpenFlow 1.3.5 (flow statistics) and 7.3.5.2 of 1.5.1 (flow descriptions).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from controller.southbound.openflow.actions import decode_instructions
from controller.southbound.openflow.entries import FlowEntry, FlowKey, Table
from controller.southbound.openflow.fields import decode_match, extensible_fields, match_of, split_match
from controller.southbound.openflow.messages import (
    ALL_TABLES,
    ANY_GROUP,
    ANY_PORT,
    MalformedError,
    MultipartType,
    Version,
    multipart_bodies,
    multipart_request,
    sized_parts,
    unpack_start,
)

_REQUEST = struct.Struct("!B3xII4xQQ")
"""Table; port, group; cookie and its mask."""

_FIXED_1_3 = struct.Struct("!HBxIIHHHH4xQQQ")
"""Length, table; duration in s and ns, priority, idle and hard timeout, flags; cookie, packets, bytes."""
_FIXED_1_5 = struct.Struct("!H2xBxHHHHHQ")
"""Length, table, priority, idle and hard timeout, flags, importance, cookie."""
_STATISTICS = struct.Struct("!2xH")
"""The length of what version 1.5 says of an entry's counters."""

_PACKETS, _BYTES = b"\x80\x02\x08\x08", b"\x80\x02\x0a\x08"
_COUNTS_NOT = 0x18
"""Flags: packets or bytes of an entry are not counted."""
_UNKNOWN = 0xFFFF_FFFF_FFFF_FFFF
_TABLES = frozenset(Table)


@dataclass(frozen=True, slots=True)
class HeldFlow:
    """A flow entry in a switch: its cookie and counters, None where the switch does not count.

    ``entry`` is None where our words do not tell all of it, as with entries of others, or those that end by themselves.
    ``table``, ``priority`` and ``match``, the fields as they were on the wire, name it all the same.
    """

    entry: FlowEntry | None
    cookie: int
    num_packets: int | None
    num_bytes: int | None
    table: int
    priority: int
    match: bytes


def flows_request(cookie: int, mask: int, version: int) -> bytes:
    """Ask for the entries of all tables that have this cookie under the mask; a mask of 0 asks for all."""
    fixed = _REQUEST.pack(ALL_TABLES, ANY_PORT, ANY_GROUP, cookie, mask)
    return multipart_request(version, MultipartType.FLOW_STATISTICS, fixed + match_of(b""))


def decode_flow_stats(replies: Sequence[bytes], version: int) -> list[HeldFlow]:
    """Return the entries of all parts of a reply; each part can also be decoded on its own.

    Raises:
        MalformedError: The replies are truncated or corrupt.
    """
    parts = _parts_1_3 if version == Version.OPENFLOW_1_3 else _parts_1_5
    return [
        _held_flow(*parts(octets))
        for body in multipart_bodies(replies, MultipartType.FLOW_STATISTICS, version)
        for octets in sized_parts(body, "a flow entry")
    ]


class _Fixed(NamedTuple):
    """What a flow entry has at fixed places, and its counters."""

    table: int
    priority: int
    is_lasting: bool
    """It has no timeouts, and its packets and bytes are counted."""
    cookie: int
    num_packets: int | None
    num_bytes: int | None


def _held_flow(fixed: _Fixed, fields: bytes, instructions: bytes) -> HeldFlow:
    table, priority, is_lasting, cookie, num_packets, num_bytes = fixed
    match, done = decode_match(fields), decode_instructions(instructions)
    entry = None
    if is_lasting and match is not None and done is not None and table in _TABLES:
        entry = FlowEntry(FlowKey(Table(table), priority, match), *done)
    return HeldFlow(entry, cookie, num_packets, num_bytes, table, priority, fields)


def _parts_1_3(octets: bytes) -> tuple[_Fixed, bytes, bytes]:
    """Return the fixed part of an entry, its match fields and its instructions."""
    values = unpack_start(_FIXED_1_3, octets, "a flow entry")
    _, table, _, _, priority, idle_s, hard_s, flags, cookie, num_packets, num_bytes = values
    fields, end = split_match(octets, _FIXED_1_3.size)
    is_lasting = not (idle_s or hard_s or flags & _COUNTS_NOT)
    fixed = _Fixed(table, priority, is_lasting, cookie, _count(num_packets), _count(num_bytes))
    return fixed, fields, octets[end:]


def _parts_1_5(octets: bytes) -> tuple[_Fixed, bytes, bytes]:
    values = unpack_start(_FIXED_1_5, octets, "a flow entry")
    _, table, priority, idle_s, hard_s, flags, _, cookie = values
    fields, start = split_match(octets, _FIXED_1_5.size)
    (length,) = unpack_start(_STATISTICS, octets[start:], "the statistics of a flow entry")
    end = start + length + -length % 8
    if length < _STATISTICS.size or end > len(octets):
        raise MalformedError(f"the statistics of a flow entry say they have {length} of {len(octets) - start} bytes")
    statistics = octets[start + _STATISTICS.size : start + length]
    counts = {header: value for header, value, _ in extensible_fields(statistics, "a flow statistic")}
    is_lasting = not (idle_s or hard_s or flags & _COUNTS_NOT)
    num_packets, num_bytes = counts.get(_PACKETS, _UNKNOWN), counts.get(_BYTES, _UNKNOWN)
    fixed = _Fixed(table, priority, is_lasting, cookie, _count(num_packets), _count(num_bytes))
    return fixed, fields, octets[end:]


def _count(number: int) -> int | None:
    return None if number == _UNKNOWN else number
