"""Groups as the group mods that write and delete them, and as switches describe them.

Version 1.3 cannot say by which hash a SELECT group chooses. Version 1.5 can, by the property that Open vSwitch takes:
its method ``dp_hash`` and the basis of the hash. The structures are those of sections 7.3.4.2 of OpenFlow 1.3.5,
7.3.4.3 of 1.5.1, and of Open vSwitch's ``ntr_group_prop_selection_method``.

A bucket of an INDIRECT group watches no port: there is no other. Those of SELECT groups all have the same weight.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

from controller.southbound.openflow.actions import decode_actions, encode_actions
from controller.southbound.openflow.entries import Forward, Group, GroupType
from controller.southbound.openflow.messages import (
    ALL_GROUPS,
    ANY_GROUP,
    ANY_PORT,
    MalformedError,
    MessageType,
    MultipartType,
    Version,
    message,
    multipart_bodies,
    multipart_request,
    sized_parts,
    typed_parts,
    unpack,
    unpack_start,
)


class GroupCommand(IntEnum):
    """What a group mod does with the group of its id."""

    ADD = 0
    """Write it; refused where there is one."""
    MODIFY = 1
    """Put it in the place of the one there; refused where there is none."""
    DELETE = 2
    """Delete it, and the flow entries that lead to it."""


@dataclass(frozen=True, slots=True)
class HeldGroup:
    """A group in a switch; ``group`` is None where our words do not tell all of it."""

    group_id: int
    group: Group | None


_TYPES = {GroupType.SELECT: 1, GroupType.INDIRECT: 2, GroupType.FAST_FAILOVER: 3}
_KINDS = {number: kind for kind, number in _TYPES.items()}
_WEIGHT = 1
_ALL_BUCKETS = 0xFFFF_FFFF

_GROUP_MOD_1_3 = struct.Struct("!HBxI")
"""Command, type, group."""
_GROUP_MOD_1_5 = struct.Struct("!HBxIH2xI")
"""The same; the length of all buckets, and the bucket that a command is about."""
_DESCRIPTION_1_3 = struct.Struct("!HBxI")
"""Length, type, group."""
_DESCRIPTION_1_5 = struct.Struct("!HBxIH6x")
"""The same; the length of all buckets."""
_BUCKET_1_3 = struct.Struct("!HHII4x")
"""Length, weight, port and group that are watched."""
_BUCKET_1_5 = struct.Struct("!HHI")
"""Length, length of the actions, bucket."""
_WEIGHT_PROPERTY = struct.Struct("!HHH2x")
_WATCH_PROPERTY = struct.Struct("!HHI")
_HASH_PROPERTY = struct.Struct("!HHII4x16sQ")
"""Type, length, experimenter, its type; the method's name and parameter."""
_GROUP = struct.Struct("!I4x")

_WEIGHT_TYPE, _WATCH_PORT_TYPE, _WATCH_GROUP_TYPE = range(3)
_HASH_START = (0xFFFF, _HASH_PROPERTY.size, 0x0000_154D, 1, b"dp_hash".ljust(16, b"\0"))
_MOST_BASIS = 0xFFFF_FFFF
"""The bits above name another hash function."""


def encode_group_mod(group: Group, command: GroupCommand, version: int) -> bytes:
    """Return the message that does ``command``; version 1.3 leaves out the hash basis.

    Raises:
        ValueError: OpenFlow cannot say the group: too many buckets, or not one in an INDIRECT group.
    """
    if command is GroupCommand.DELETE:
        return delete_group(group.group_id, version)
    if group.kind is GroupType.INDIRECT and len(group.buckets) != 1:
        raise ValueError(f"an INDIRECT group has one bucket: {group}")
    if not 0 <= group.hash_basis <= _MOST_BASIS:
        raise ValueError(f"a hash basis has 32 bits: {group}")
    kind = _TYPES[group.kind]
    try:
        if version == Version.OPENFLOW_1_3:
            buckets = b"".join(_encode_bucket_1_3(group.kind, bucket) for bucket in group.buckets)
            return message(version, MessageType.GROUP_MOD, _GROUP_MOD_1_3.pack(command, kind, group.group_id) + buckets)
        buckets = b"".join(_encode_bucket_1_5(group.kind, *bucket) for bucket in enumerate(group.buckets))
        properties = b""
        if group.kind is GroupType.SELECT:
            properties = _HASH_PROPERTY.pack(*_HASH_START, group.hash_basis)
        fixed = _GROUP_MOD_1_5.pack(command, kind, group.group_id, len(buckets), _ALL_BUCKETS)
        return message(version, MessageType.GROUP_MOD, fixed + buckets + properties)
    except struct.error:
        raise ValueError(f"a number does not fit into its field: {group}") from None


def delete_group(group_id: int, version: int) -> bytes:
    """Return the message that deletes a group and the flow entries that lead to it; it may be absent."""
    if version == Version.OPENFLOW_1_3:
        body = _GROUP_MOD_1_3.pack(GroupCommand.DELETE, 0, group_id)
    else:
        body = _GROUP_MOD_1_5.pack(GroupCommand.DELETE, 0, group_id, 0, _ALL_BUCKETS)
    return message(version, MessageType.GROUP_MOD, body)


def as_described(group: Group, version: int) -> Group:
    """Return what a switch that was given this group describes: version 1.3 has no hash basis."""
    has_basis = version == Version.OPENFLOW_1_5 and group.kind is GroupType.SELECT
    return group if has_basis else replace(group, hash_basis=0)


def group_descriptions_request(version: int) -> bytes:
    """Ask for all groups."""
    body = b"" if version == Version.OPENFLOW_1_3 else _GROUP.pack(ALL_GROUPS)
    return multipart_request(version, MultipartType.GROUP_DESCRIPTIONS, body)


def decode_group_descriptions(replies: Sequence[bytes], version: int) -> list[HeldGroup]:
    """Return the groups of all parts of a reply.

    Raises:
        MalformedError: The replies are truncated or corrupt.
    """
    decode = _decode_group_1_3 if version == Version.OPENFLOW_1_3 else _decode_group_1_5
    return [
        decode(octets)
        for body in multipart_bodies(replies, MultipartType.GROUP_DESCRIPTIONS, version)
        for octets in sized_parts(body, "a group")
    ]


def _encode_bucket_1_3(kind: GroupType, bucket: Forward) -> bytes:
    actions = encode_actions((bucket,))
    weight, watched = _weight_and_port(kind, bucket)
    return _BUCKET_1_3.pack(_BUCKET_1_3.size + len(actions), weight, watched, ANY_GROUP) + actions


def _encode_bucket_1_5(kind: GroupType, index: int, bucket: Forward) -> bytes:
    actions = encode_actions((bucket,))
    weight, watched = _weight_and_port(kind, bucket)
    properties = b""
    if weight:
        properties = _WEIGHT_PROPERTY.pack(_WEIGHT_TYPE, _WEIGHT_PROPERTY.size, weight)
    if watched != ANY_PORT:
        properties += _WATCH_PROPERTY.pack(_WATCH_PORT_TYPE, _WATCH_PROPERTY.size, watched)
    length = _BUCKET_1_5.size + len(actions) + len(properties)
    return _BUCKET_1_5.pack(length, len(actions), index) + actions + properties


def _weight_and_port(kind: GroupType, bucket: Forward) -> tuple[int, int]:
    """Return the weight of a bucket and the port that it watches."""
    weight = _WEIGHT if kind is GroupType.SELECT else 0
    return weight, ANY_PORT if kind is GroupType.INDIRECT else bucket.port


class _Bucket(NamedTuple):
    """A bucket as a switch describes it."""

    actions: bytes
    weight: int
    port: int
    """That it watches."""
    is_plain: bool
    """It has nothing else."""


def _decode_group_1_3(octets: bytes) -> HeldGroup:
    _, kind, group_id = unpack_start(_DESCRIPTION_1_3, octets, "a group")
    buckets = []
    for part in sized_parts(octets[_DESCRIPTION_1_3.size :], "a bucket"):
        _, weight, port, watched_group = unpack_start(_BUCKET_1_3, part, "a bucket")
        buckets.append(_Bucket(part[_BUCKET_1_3.size :], weight, port, watched_group == ANY_GROUP))
    return HeldGroup(group_id, _group(group_id, kind, buckets, 0))


def _decode_group_1_5(octets: bytes) -> HeldGroup:
    _, kind, group_id, buckets_length = unpack_start(_DESCRIPTION_1_5, octets, "a group")
    end = _DESCRIPTION_1_5.size + buckets_length
    if end > len(octets):
        raise MalformedError(f"a group of {len(octets)} bytes says its buckets have {buckets_length}")
    buckets = [_decode_bucket_1_5(part) for part in sized_parts(octets[_DESCRIPTION_1_5.size : end], "a bucket")]
    properties = list(typed_parts(octets[end:], "a property of a group"))
    basis = 0 if kind != _TYPES[GroupType.SELECT] and not properties else None
    if kind == _TYPES[GroupType.SELECT] and len(properties) == 1:
        basis = _hash_basis(properties[0][1])
    return HeldGroup(group_id, None if basis is None else _group(group_id, kind, buckets, basis))


def _decode_bucket_1_5(octets: bytes) -> _Bucket:
    _, actions_length, _ = unpack_start(_BUCKET_1_5, octets, "a bucket")
    end = _BUCKET_1_5.size + actions_length
    if end > len(octets):
        raise MalformedError(f"a bucket of {len(octets)} bytes says its actions have {actions_length}")
    weight, port, is_plain = 0, ANY_PORT, True
    for kind, part in typed_parts(octets[end:], "a property of a bucket"):
        if kind == _WEIGHT_TYPE:
            weight = unpack(_WEIGHT_PROPERTY, part, "the weight of a bucket")[2]
        elif kind == _WATCH_PORT_TYPE:
            port = unpack(_WATCH_PROPERTY, part, "what a bucket watches")[2]
        else:
            is_plain = kind == _WATCH_GROUP_TYPE and unpack(_WATCH_PROPERTY, part, "a group watch")[2] == ANY_GROUP
    return _Bucket(octets[_BUCKET_1_5.size : end], weight, port, is_plain)


def _hash_basis(part: bytes) -> int | None:
    """Return the basis that a property gives the hash of a SELECT group; None where it says something else."""
    if len(part) != _HASH_PROPERTY.size:
        return None
    *start, basis = _HASH_PROPERTY.unpack(part)
    return basis if tuple(start) == _HASH_START and basis <= _MOST_BASIS else None


def _group(group_id: int, kind: int, buckets: Sequence[_Bucket], hash_basis: int) -> Group | None:
    """Return the group of a description; None where our words do not tell all of it."""
    if kind not in _KINDS:
        return None
    forwards = []
    for bucket in buckets:
        match decode_actions(bucket.actions):
            case (Forward() as forward,) if bucket.is_plain:
                if _weight_and_port(_KINDS[kind], forward) != (bucket.weight, bucket.port):
                    return None
                forwards.append(forward)
            case _:
                return None
    return Group(group_id, _KINDS[kind], tuple(forwards), hash_basis)
