"""The fabric's ECMP hash, the same function that the P4 program computes.

CRC-32 of the 5-tuple times an odd value of the switch's own, modulo 2^32, upper 16 bits; the selector takes it modulo
the number of live members. The multiplication is what makes successive switches choose independently: CRC is linear, so
a seed inside it would only flip the same bits of every flow's hash.
"""

import random
import zlib
from collections.abc import Sequence
from enum import StrEnum

from topologies.addressing import FiveTuple

HASH_BITS = 16


class FabricHash(StrEnum):
    """Whether the switches' hash is known to be the one of this module."""

    KNOWN = "known"
    UNKNOWN = "unknown"


def flow_hash(five_tuple: FiveTuple, multiplier: int) -> int:
    """16-bit hash of a flow at a switch with this multiplier."""
    return hash_of_crc(flow_crc(five_tuple), multiplier)


def flow_crc(five_tuple: FiveTuple) -> int:
    """CRC-32 of a flow's 5-tuple, as it stands in its packets' headers: all that hashes depend on."""
    octets = (
        five_tuple.source_address.to_bytes(4, "big")
        + five_tuple.destination_address.to_bytes(4, "big")
        + five_tuple.protocol.to_bytes(1, "big")
        + five_tuple.source_port.to_bytes(2, "big")
        + five_tuple.destination_port.to_bytes(2, "big")
    )
    return zlib.crc32(octets)


def hash_of_crc(crc: int, multiplier: int) -> int:
    """16-bit hash at a switch with this multiplier, of a flow whose 5-tuple has this CRC-32."""
    return (crc * multiplier & 0xFFFF_FFFF) >> 32 - HASH_BITS


def hash_multipliers(switches: Sequence[str], seed: int) -> dict[str, int]:
    """A random odd 32-bit value per switch, the same for the same names and seed on every machine."""
    return {switch: random.Random(f"{seed}/{switch}").getrandbits(32) | 1 for switch in switches}
