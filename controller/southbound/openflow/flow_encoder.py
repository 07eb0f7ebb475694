"""Flow entries as the flow mods that write and delete them.

A flow mod is as section 7.3.4.1 of OpenFlow 1.3.5 has it; what version 1.5 adds, an importance, is 0 here.
"""

import struct
from enum import IntEnum
from hashlib import sha256
from zlib import crc32

from controller.southbound.openflow.actions import encode_instructions
from controller.southbound.openflow.entries import FlowEntry
from controller.southbound.openflow.fields import encode_match, match_of
from controller.southbound.openflow.flow_stats import HeldFlow
from controller.southbound.openflow.messages import ALL_TABLES, ANY_GROUP, ANY_PORT, NO_BUFFER, MessageType, message


class FlowCommand(IntEnum):
    """What a flow mod does with the entry of exactly its key."""

    ADD = 0
    """Write it, in the place of one with the same key, whose counters go on."""
    MODIFY = 2
    """Give it other actions; its cookie and counters stay. Where there is none, nothing happens."""
    DELETE = 4
    """Delete it, whatever its actions and cookie."""


OWNER_MASK = 0xFFFF_FFFF_0000_0000
"""The bits of a cookie that tell whose an entry is; the others are a hash of what it does."""

_OURS = 0x5472
"""The first bits of the cookie of every Trainyard."""
_DELETE_ALL_MATCHING = 3
_WHOLE_COOKIE = 0xFFFF_FFFF_FFFF_FFFF

_FLOW_MOD = struct.Struct("!QQBBHHHIIIHH")
"""Cookie, its mask; table, command, idle and hard timeout, priority; buffer, port, group; flags, importance."""


def owner_cookie(owner: str) -> int:
    """Return the bits of a cookie that name an owner, as the identity of a fabric."""
    digest = sha256(owner.encode()).digest()
    return _OURS << 48 | int.from_bytes(digest[:2], "big") << 32


def encode_own(entry: FlowEntry, owner: int, version: int) -> bytes:
    """Return the message that writes an entry of the owner with these bits.

    Its cookie is the same in every process and version.

    Raises:
        ValueError: OpenFlow cannot say the entry.
    """
    table, priority, _ = entry.key
    body = _body(entry)
    cookie = owner | crc32(body, table << 16 | priority)
    return _flow_mod(version, (cookie, 0), table, FlowCommand.ADD, priority, body)


def encode_flow_mod(entry: FlowEntry, command: FlowCommand, cookie: int, version: int) -> bytes:
    """Return the message that does ``command``.

    Raises:
        ValueError: OpenFlow cannot say the entry, as ports without a protocol.
    """
    table, priority, match = entry.key
    body = encode_match(match) if command is FlowCommand.DELETE else _body(entry)
    return _flow_mod(version, (cookie, 0), table, command, priority, body)


def delete_by_cookie(cookie: int, mask: int, version: int) -> bytes:
    """Return the message that deletes the entries of all tables that have this cookie under the mask."""
    return _flow_mod(version, (cookie, mask), ALL_TABLES, _DELETE_ALL_MATCHING, 0, match_of(b""))


def delete_held(held: HeldFlow, version: int) -> bytes:
    """Return the message that deletes this entry, in our words or not, as long as it has the same cookie."""
    cookie = held.cookie, _WHOLE_COOKIE
    return _flow_mod(version, cookie, held.table, FlowCommand.DELETE, held.priority, match_of(held.match))


def _body(entry: FlowEntry) -> bytes:
    """The match and the instructions of an entry."""
    return encode_match(entry.key.match) + encode_instructions(entry.actions, entry.goto)


def _flow_mod(version: int, cookie: tuple[int, int], table: int, command: int, priority: int, body: bytes) -> bytes:
    """Return a message for the entries that have this cookie under its mask; ``body`` is match and instructions."""
    fixed = _FLOW_MOD.pack(*cookie, table, command, 0, 0, priority, NO_BUFFER, ANY_PORT, ANY_GROUP, 0, 0)
    return message(version, MessageType.FLOW_MOD, fixed + body)
