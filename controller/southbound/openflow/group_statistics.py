"""What the buckets of groups have sent.

Sections 7.3.5.9 of OpenFlow 1.3.5 (group statistics) and 7.3.5.10 of 1.5.1, which are the same.
"""

import struct
from collections.abc import Sequence

from controller.southbound.openflow.messages import (
    ALL_GROUPS,
    MultipartType,
    equal_parts,
    multipart_bodies,
    multipart_request,
    sized_parts,
    unpack_start,
)

_REQUEST = struct.Struct("!I4x")
_FIXED = struct.Struct("!H2xII4xQQII")
"""Length; group, references to it; packets, bytes; duration in s and ns."""
_BUCKET = struct.Struct("!QQ")
"""Packets, bytes."""
_UNKNOWN = 0xFFFF_FFFF_FFFF_FFFF


def group_statistics_request(version: int) -> bytes:
    """Ask for the statistics of all groups."""
    return multipart_request(version, MultipartType.GROUP_STATISTICS, _REQUEST.pack(ALL_GROUPS))


def decode_group_statistics(replies: Sequence[bytes], version: int) -> dict[int, tuple[int | None, ...]]:
    """Return the bytes that the buckets of each group have sent, in order; None where they are not counted.

    Raises:
        MalformedError: The replies are truncated or corrupt.
    """
    found: dict[int, tuple[int | None, ...]] = {}
    for body in multipart_bodies(replies, MultipartType.GROUP_STATISTICS, version):
        for octets in sized_parts(body, "the statistics of a group"):
            _, group_id, *_ = unpack_start(_FIXED, octets, "the statistics of a group")
            buckets = equal_parts(octets[_FIXED.size :], _BUCKET, "the statistics of a bucket")
            found[group_id] = tuple(None if count == _UNKNOWN else count for _, count in buckets)
    return found
