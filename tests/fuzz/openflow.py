"""What a switch may send over OpenFlow: whole connections as samples, and all readers of their messages."""

import struct

from controller.southbound.openflow.actions import encode_instructions
from controller.southbound.openflow.channel_errors import MisbehaviourError
from controller.southbound.openflow.control_messages import ControlType, datapath_of, negotiated_version, role_of
from controller.southbound.openflow.entries import (
    FlowEntry,
    FlowKey,
    Forward,
    Group,
    GroupType,
    Match,
    SetDscp,
    SetQueue,
    Table,
    ToController,
    ToGroup,
)
from controller.southbound.openflow.entry_words import entry_words, kind_words
from controller.southbound.openflow.error_words import refusal_of
from controller.southbound.openflow.exchanges import Exchanges
from controller.southbound.openflow.fields import encode_match
from controller.southbound.openflow.flow_encoder import delete_held
from controller.southbound.openflow.flow_stats import decode_flow_stats
from controller.southbound.openflow.framing import Framer
from controller.southbound.openflow.group_messages import GroupCommand, decode_group_descriptions, encode_group_mod
from controller.southbound.openflow.group_statistics import decode_group_statistics
from controller.southbound.openflow.measuring_entries import port_counters
from controller.southbound.openflow.messages import MalformedError, MessageType, MultipartType, Version
from controller.southbound.openflow.packet_messages import decode_packet_in
from controller.southbound.openflow.port_messages import (
    decode_port_descriptions,
    decode_port_statistics,
    decode_port_status,
)
from controller.southbound.openflow.states import SwitchEntry, key_of, place_of
from topologies.addressing import Address, MacAddress, Prefix

_READ_BYTES = 64 * 1024
_HEADER = struct.Struct("!BBHI")
_MOST_BYTES = 1 << 20
_TYPE_AT = slice(8, 10)
"""Where a multipart reply has its type."""


def read(octets: bytes) -> str | None:
    """Take what a switch has sent; return what is wrong with a reader, None where nothing is."""
    try:
        return take(octets)
    except (MisbehaviourError, MalformedError):
        return None


def take(octets: bytes) -> str | None:
    """The same. Raises MisbehaviourError and MalformedError where the switch is refused."""
    framer, exchanges = Framer(), Exchanges(_MOST_BYTES)
    version: Version | None = None
    for start in range(0, len(octets), _READ_BYTES):
        framer.feed(octets[start : start + _READ_BYTES])
        while messages := framer.take(1):
            (message,) = messages
            if version is None:
                version = _greeted(message)
                framer.expect(version)
            elif (complaint := _taken(message, version, exchanges)) is not None:
                return complaint
    return None


def _greeted(message: bytes) -> Version:
    if message[1] == ControlType.ERROR:
        refusal_of(message)
    return negotiated_version(message)


def _taken(message: bytes, version: Version, exchanges: Exchanges) -> str | None:
    match message[1]:
        case ControlType.FEATURES_REPLY:
            datapath_of(message)
        case ControlType.ROLE_STATUS | ControlType.ROLE_REPLY:
            role_of(message)
        case MessageType.PORT_STATUS:
            decode_port_status(message, version)
        case MessageType.PACKET_IN:
            decode_packet_in(message, version)
        case MessageType.MULTIPART_REPLY:
            return _answered(message, version)
        case _:
            exchanges.take(message)
    return None


def _answered(message: bytes, version: Version) -> str | None:
    """Read a part of an answer, and do with it what a controller does."""
    entries: list[SwitchEntry] = []
    match int.from_bytes(message[_TYPE_AT], "big"):
        case MultipartType.FLOW_STATISTICS:
            held = decode_flow_stats([message], version)
            port_counters(5, held, (), {})
            for each in held:
                place_of(each)
                delete_held(each, version)
                entries.append(each if each.entry is None else each.entry)
        case MultipartType.GROUP_DESCRIPTIONS:
            entries = [each.group for each in decode_group_descriptions([message], version) if each.group is not None]
        case MultipartType.GROUP_STATISTICS:
            decode_group_statistics([message], version)
        case MultipartType.PORT_DESCRIPTIONS:
            decode_port_descriptions([message], version)
        case MultipartType.PORT_STATISTICS:
            decode_port_statistics([message], version)
    for entry in entries:
        hash(key_of(entry))
        if not (words := f"{kind_words(entry)} {entry_words(entry)}").isprintable():
            return f"words that are not printable\n{words!r}"
    return None


def streams() -> tuple[bytes, ...]:
    """What honest switches send, of each version: one message of every kind."""
    return tuple(_hello(version) + b"".join(_messages(version)) for version in Version)


def _hello(version: Version) -> bytes:
    return _message(version, ControlType.HELLO, struct.pack("!HHI", 1, 8, 1 << version))


def _messages(version: Version) -> list[bytes]:
    features = struct.pack("!QIBB2xII", 1, 0, 8, 0, 0, 0)
    return [
        _message(version, ControlType.FEATURES_REPLY, features),
        _multipart(version, MultipartType.PORT_DESCRIPTIONS, _port(version, 1) + _port(version, 2)),
        _multipart(version, MultipartType.FLOW_STATISTICS, b"".join(_held(entry, version) for entry in _FLOWS)),
        _multipart(
            version, MultipartType.GROUP_DESCRIPTIONS, b"".join(_described(group, version) for group in _GROUPS)
        ),
        _multipart(version, MultipartType.GROUP_STATISTICS, struct.pack("!H2xII4xQQIIQQ", 56, 1, 1, 2, 3, 4, 5, 6, 7)),
        _multipart(version, MultipartType.PORT_STATISTICS, _port_statistics(version)),
        _message(version, MessageType.PORT_STATUS, bytes((2,)) + bytes(7) + _port(version, 1)),
        _message(
            version,
            MessageType.PACKET_IN,
            struct.pack("!IHBBQ", 0xFFFF_FFFF, 60, 1, 0, 0) + b"\0\1\0\x0c\x80\0\0\4\0\0\0\1" + bytes(6) + bytes(60),
        ),
        _message(version, ControlType.ERROR, struct.pack("!HH", 5, 1) + bytes(64)),
        _message(version, ControlType.ROLE_REPLY, struct.pack("!I4xQ", 2, 7)),
        _message(version, ControlType.ROLE_STATUS, struct.pack("!I4xQ", 3, 7)),
        _message(version, ControlType.BARRIER_REPLY),
    ]


_FORWARD = Forward(1, MacAddress(2), MacAddress(4))
_NET = Prefix(Address.parse("10.0.0.0"), 24)
_HOST = Prefix(Address.parse("10.0.0.1"), 32)
_FLOWS = (
    FlowEntry(FlowKey(Table.ADMISSION, 1, Match(0x0806)), (ToController(0xFFFF),)),
    FlowEntry(FlowKey(Table.LEVEL, 1, Match(0x0800, 40)), (SetQueue(5),), Table.RULES),
    FlowEntry(FlowKey(Table.RULES, 200, Match(0x0800, None, _HOST, _HOST, 17, 1, 2)), (SetDscp(40), ToGroup(1))),
    FlowEntry(FlowKey(Table.ROUTING, 64, Match(0x0800, 40, destination=_HOST)), (ToGroup(1),)),
    FlowEntry(FlowKey(Table.ROUTING, 25, Match(0x0800, destination=_NET)), (_FORWARD,)),
)
_GROUPS = (
    Group(1, GroupType.INDIRECT, (_FORWARD,)),
    Group(1 << 30, GroupType.SELECT, (_FORWARD, Forward(2, MacAddress(2), MacAddress(4))), 7),
    Group(2 << 30, GroupType.FAST_FAILOVER, (_FORWARD, _FORWARD)),
)


def _message(version: Version, kind: int, body: bytes = b"") -> bytes:
    return _HEADER.pack(version, kind, _HEADER.size + len(body), 7) + body


def _multipart(version: Version, kind: MultipartType, body: bytes) -> bytes:
    return _message(version, MessageType.MULTIPART_REPLY, struct.pack("!HH4x", kind, 0) + body)


def _port(version: Version, number: int) -> bytes:
    mac, name = bytes(5) + bytes((number,)), f"p{number}".encode().ljust(16, b"\0")
    if version == Version.OPENFLOW_1_3:
        return struct.pack("!I4x6s2x16sII24x", number, mac, name, 0, 0)
    return struct.pack("!IH2x6s2x16sII", number, 40, mac, name, 0, 0)


def _port_statistics(version: Version) -> bytes:
    if version == Version.OPENFLOW_1_3:
        return struct.pack("!I4x8Q40x", 1, *range(8))
    return struct.pack("!H2xI8x8Q", 80, 1, *range(8))


def _held(entry: FlowEntry, version: Version) -> bytes:
    """An entry as a switch describes it."""
    table, priority, match = entry.key
    fields, instructions = encode_match(match), encode_instructions(entry.actions, entry.goto)
    if version == Version.OPENFLOW_1_3:
        length = 48 + len(fields) + len(instructions)
        return struct.pack("!HBxIIHHHH4xQQQ", length, table, 1, 2, priority, 0, 0, 0, 3, 4, 5) + fields + instructions
    counters = struct.pack("!2xH4sQ4sQ4x", 28, b"\x80\x02\x08\x08", 4, b"\x80\x02\x0a\x08", 5)
    length = 24 + len(fields) + len(counters) + len(instructions)
    fixed = struct.pack("!H2xBxHHHHHQ", length, table, priority, 0, 0, 0, 0, 3)
    return fixed + fields + counters + instructions


def _described(group: Group, version: Version) -> bytes:
    """A group as a switch describes it: with the buckets and properties of the message that has written it."""
    written = encode_group_mod(group, GroupCommand.ADD, version)
    start = 16 if version == Version.OPENFLOW_1_3 else 24
    fixed = written[10:16] + (b"" if version == Version.OPENFLOW_1_3 else written[16:18] + bytes(6))
    return struct.pack("!H", 2 + len(fixed) + len(written) - start) + fixed + written[start:]
