"""The ECMP hash of the fabric, the same function as in the P4 program of each target.

Both begin with the CRC-32 of the 5-tuple, and each switch has an odd number of its own. CRC is linear: a seed inside it
would flip the same bits of every flow's hash, and successive switches would choose alike.

On BMv2 the hash is the CRC times the number, modulo 2^32, of which the upper 16 bits count. The selector takes it
modulo the number of live members.

Tofino cannot multiply by a variable, and has no selector here. Its hash looks up each octet of the CRC, XORed with the
number, in a constant table of random 16-bit values, and XORs the four values (tabulation hashing: Zobrist 1970;
Pătraşcu and Thorup, "The power of simple tabulation hashing", JACM 2012). The low bits of the hash choose a slot of the
group, and the slot has a member.
"""

import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Protocol

from topologies.addressing import FiveTuple

HASH_BITS = 16

MAX_SLOTS = 1 << 10
"""Slots of one group on Tofino."""

_SLOTS_PER_MEMBER = 64
"""Where members do not divide the slots, each has this many slots or more, so that their shares differ little."""


def _random_16_bits(seed: str) -> int:
    return int.from_bytes(sha256(seed.encode()).digest()[:2], "big")


_BOXES = tuple(tuple(_random_16_bits(f"trainyard ecmp {place} {octet}") for octet in range(256)) for place in range(4))
"""By octet of the CRC, the most significant first, the 16-bit values of the octets."""


class FabricHash(StrEnum):
    """Whether the switches are known to use this module's hash."""

    KNOWN = "known"
    UNKNOWN = "unknown"


def flow_hash(five_tuple: FiveTuple, multiplier: int) -> int:
    """Return the 16-bit hash of a flow at a switch with this multiplier."""
    return MultipliedHash(multiplier).hash_of_crc(flow_crc(five_tuple))


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


class SwitchHash(Protocol):
    """How one switch chooses among several links."""

    def hash_of_crc(self, crc: int) -> int:
        """Return the 16-bit hash of a 5-tuple with this CRC-32."""

    def choice(self, crc: int, num_choices: int) -> int:
        """Return which of its choices, counted from 0, a flow gets whose 5-tuple has this CRC-32."""


@dataclass(frozen=True, slots=True)
class MultipliedHash:
    """The hash of BMv2 and the emulator; see SwitchHash."""

    multiplier: int

    def hash_of_crc(self, crc: int) -> int:
        """See SwitchHash."""
        return (crc * self.multiplier & 0xFFFF_FFFF) >> 32 - HASH_BITS

    def choice(self, crc: int, num_choices: int) -> int:
        """See SwitchHash."""
        return self.hash_of_crc(crc) % num_choices


@dataclass(frozen=True, slots=True)
class TabulatedHash:
    """The hash of Tofino; see SwitchHash."""

    salt: int

    def hash_of_crc(self, crc: int) -> int:
        """See SwitchHash."""
        salted = crc ^ self.salt
        first, second, third, fourth = _BOXES
        return first[salted >> 24] ^ second[salted >> 16 & 0xFF] ^ third[salted >> 8 & 0xFF] ^ fourth[salted & 0xFF]

    def choice(self, crc: int, num_choices: int) -> int:
        """See SwitchHash."""
        return (self.hash_of_crc(crc) & num_slots(num_choices) - 1) % num_choices


def num_slots(num_members: int) -> int:
    """Return how many slots a group has on Tofino, a power of two: slot ``s`` has member ``s % num_members``.

    So many members share the slots evenly if they are a power of two, else to a 64th of a share, as far as slots go.
    """
    power = 1 << (num_members - 1).bit_length()
    return power if power == num_members else min(MAX_SLOTS, _SLOTS_PER_MEMBER * power)


def hash_multipliers(switches: Sequence[str], seed: int) -> dict[str, int]:
    """Return a random odd 32-bit number per switch, its multiplier or its salt.

    Equal names and seeds give equal numbers on every machine.
    """
    return {switch: random.Random(f"{seed}/{switch}").getrandbits(32) | 1 for switch in switches}
