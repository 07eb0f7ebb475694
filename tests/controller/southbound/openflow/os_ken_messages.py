"""The messages of OpenFlow as os-ken builds and reads them: a second implementation.

os-ken is not typed; what it gives are bytes and plain values.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from controller.southbound.openflow.entries import (
    Action,
    FlowEntry,
    Forward,
    Group,
    GroupType,
    Match,
    SetDscp,
    SetQueue,
    ToController,
    ToGroup,
)
from controller.southbound.openflow.flow_encoder import FlowCommand
from topologies.addressing import TCP_PROTOCOL, Prefix

_protocol = pytest.importorskip("os_ken.ofproto.ofproto_protocol", reason="os-ken is not installed")
_parser = pytest.importorskip("os_ken.ofproto.ofproto_parser", reason="os-ken is not installed")


class OsKen:
    """os-ken for one version."""

    def __init__(self, version: int) -> None:
        self.version = version
        self._speaker = _protocol.ProtocolDesc(version)
        self.numbers: Any = self._speaker.ofproto
        self.parts: Any = self._speaker.ofproto_parser

    def octets(self, name: str, *arguments: object, **fields: object) -> bytes:
        """Return the bytes of a message of this class."""
        message = getattr(self.parts, name)(self._speaker, *arguments, **fields)
        message.set_xid(0)
        message.serialize()
        return bytes(message.buf)

    def read(self, message: bytes) -> Any:
        """Return a message as os-ken reads it."""
        version, kind, length, xid = struct.unpack_from("!BBHI", message)
        return _parser.msg(self._speaker, version, kind, length, xid, message)

    def flow_mod(self, entry: FlowEntry, command: FlowCommand, cookie: int) -> bytes:
        """Return the flow mod of an entry."""
        table, priority, match = entry.key
        instructions = [] if command is FlowCommand.DELETE else self.instructions(entry)
        return self.octets(
            "OFPFlowMod",
            cookie=cookie,
            table_id=table,
            command=command,
            priority=priority,
            out_port=self.numbers.OFPP_ANY,
            out_group=self.numbers.OFPG_ANY,
            match=self.parts.OFPMatch(**match_fields(match)),
            instructions=instructions,
        )

    def instructions(self, entry: FlowEntry) -> list[Any]:
        """Return the instructions of an entry."""
        found = []
        if entry.actions:
            kind = self.numbers.OFPIT_APPLY_ACTIONS
            found.append(self.parts.OFPInstructionActions(kind, self.actions(entry.actions)))
        if entry.goto is not None:
            found.append(self.parts.OFPInstructionGotoTable(entry.goto))
        return found

    def actions(self, actions: Sequence[Action]) -> list[Any]:
        """Return actions."""
        return [part for action in actions for part in self._parts_of(action)]

    def _parts_of(self, action: Action) -> list[Any]:
        parts = self.parts
        match action:
            case SetDscp(dscp):
                return [parts.OFPActionSetField(ip_dscp=dscp)]
            case SetQueue(queue):
                return [parts.OFPActionSetQueue(queue)]
            case ToGroup(group_id):
                return [parts.OFPActionGroup(group_id)]
            case ToController(most_bytes):
                return [parts.OFPActionOutput(self.numbers.OFPP_CONTROLLER, most_bytes)]
            case Forward(port, source_mac, destination_mac):
                return [
                    parts.OFPActionDecNwTtl(),
                    parts.OFPActionSetField(eth_src=str(source_mac)),
                    parts.OFPActionSetField(eth_dst=str(destination_mac)),
                    parts.OFPActionOutput(port, 0),
                ]

    def group_mod(self, group: Group, command: int) -> bytes:
        """Return the group mod of a group; where it deletes, of its id alone."""
        kinds = {"select": "OFPGT_SELECT", "indirect": "OFPGT_INDIRECT", "fast failover": "OFPGT_FF"}
        kind = getattr(self.numbers, kinds[group.kind])
        buckets = [self._bucket(group.kind, number, forward) for number, forward in enumerate(group.buckets)]
        if self.version == 4:
            return self.octets("OFPGroupMod", command, kind, group.group_id, buckets)
        properties = [self._hash(group.hash_basis)] if group.kind is GroupType.SELECT else []
        every = self.numbers.OFPG_BUCKET_ALL
        return self.octets("OFPGroupMod", command, kind, group.group_id, every, buckets, properties)

    def _bucket(self, kind: GroupType, number: int, forward: Forward) -> Any:
        weight = 1 if kind is GroupType.SELECT else 0
        port = self.numbers.OFPP_ANY if kind is GroupType.INDIRECT else forward.port
        actions = self.actions([forward])
        if self.version == 4:
            return self.parts.OFPBucket(weight, port, self.numbers.OFPG_ANY, actions)
        properties = []
        if kind is GroupType.SELECT:
            properties.append(self.parts.OFPGroupBucketPropWeight(type_=self.numbers.OFPGBPT_WEIGHT, weight=weight))
        if kind is not GroupType.INDIRECT:
            properties.append(self.parts.OFPGroupBucketPropWatch(type_=self.numbers.OFPGBPT_WATCH_PORT, watch=port))
        return self.parts.OFPBucket(bucket_id=number, actions=actions, properties=properties)

    def _hash(self, basis: int) -> Any:
        words = struct.unpack("!7I", bytes(4) + b"dp_hash".ljust(16, b"\0") + struct.pack("!Q", basis))
        return self.parts.OFPGroupPropExperimenter(
            type_=self.numbers.OFPGPT_EXPERIMENTER, experimenter=0x154D, exp_type=1, data=words
        )

    def flow_reply(
        self,
        match: Mapping[str, object],
        instructions: Sequence[Any],
        *,
        table: int = 0,
        priority: int = 0,
        cookie: int = 0,
        counts: tuple[int, int] = (0, 0),
        timeouts_s: tuple[int, int] = (0, 0),
        flags: int = 0,
    ) -> bytes:
        """Return the part of a reply about flow entries that has one; the reply is checked by reading it."""
        fields = _serialized(self.parts.OFPMatch(**match).serialize)
        done = b"".join(_serialized(instruction.serialize) for instruction in instructions)
        if self.version == 4:
            fixed = struct.pack("!BxIIHHHH4xQQQ", table, 7, 8, priority, *timeouts_s, flags, cookie, *counts)
            entry = fixed + fields + done
        else:
            statistics = self.parts.OFPStats(
                duration=(7, 8), idle_time=(1, 2), flow_count=1, packet_count=counts[0], byte_count=counts[1]
            )
            fixed = struct.pack("!2xBxHHHHHQ", table, priority, *timeouts_s, flags, 0, cookie)
            entry = fixed + fields + _serialized(statistics.serialize) + done
        return self.reply(
            self.numbers.OFPMP_FLOW if self.version == 4 else 1, struct.pack("!H", len(entry) + 2) + entry
        )

    def reply(self, kind: int, body: bytes) -> bytes:
        """Return a multipart reply."""
        return struct.pack("!BBHIHH4x", self.version, 19, 16 + len(body), 0, kind, 0) + body


def match_fields(match: Match) -> dict[str, object]:
    """Return a match as os-ken's words."""
    transport = "tcp" if match.protocol == TCP_PROTOCOL else "udp"
    fields = {
        "eth_type": match.ether_type,
        "ip_dscp": match.dscp,
        "ipv4_src": _shown(match.source),
        "ipv4_dst": _shown(match.destination),
        "ip_proto": match.protocol,
        f"{transport}_src": match.source_port,
        f"{transport}_dst": match.destination_port,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _shown(prefix: Prefix | None) -> object:
    if prefix is None or prefix.length == 32:
        return prefix and str(prefix.address)
    return str(prefix.address), ".".join(str(octet) for octet in prefix.mask.to_bytes(4, "big"))


def _serialized(serialize: Callable[[bytearray, int], object]) -> bytes:
    """Return what an object writes into a buffer."""
    octets = bytearray()
    serialize(octets, 0)
    return bytes(octets)
