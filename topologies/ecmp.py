"""The ECMP hash of the fabric, the same function as in the P4 program.

It is the CRC-32 of the 5-tuple times an odd value of the switch, modulo 2^32, of which the upper 16 bits count. The
selector takes it modulo the number of live members. The multiplication makes the choices of successive switches
independent: CRC is linear, so a seed inside it would flip the same bits of every flow's hash.
"""

import random
import zlib
from collections.abc import Sequence
from enum import StrEnum

from topologies.addressing import FiveTuple

HASH_BITS = 16


class FabricHash(StrEnum):
    """Whether the switches are known to use this module's hash."""

    KNOWN = "known"
    UNKNOWN = "unknown"


def flow_hash(five_tuple: FiveTuple, multiplier: int) -> int:
    """Return the 16-bit hash of a flow at a switch with this multiplier."""
    return hash_of_crc(flow_crc(five_tuple), multiplier)


def flow_crc(five_tuple: FiveTuple) -> int:
    """Return the CRC-32 of a 5-tuple as it stands in headers; hashes depend on nothing else."""
    octets = (
        five_tuple.source_address.to_bytes(4, "big")
        + five_tuple.destination_address.to_bytes(4, "big")
        + five_tuple.protocol.to_bytes(1, "big")
        + five_tuple.source_port.to_bytes(2, "big")
        + five_tuple.destination_port.to_bytes(2, "big")
    )
    return zlib.crc32(octets)


def hash_of_crc(crc: int, multiplier: int) -> int:
    """Return the 16-bit hash at a switch with this multiplier for a 5-tuple with this CRC-32."""
    return (crc * multiplier & 0xFFFF_FFFF) >> 32 - HASH_BITS


def hash_multipliers(switches: Sequence[str], seed: int) -> dict[str, int]:
    """Return a random odd 32-bit value per switch; equal names and seeds give equal values on every machine."""
    return {switch: random.Random(f"{seed}/{switch}").getrandbits(32) | 1 for switch in switches}
