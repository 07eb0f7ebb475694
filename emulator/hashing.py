"""Hashes and checksums that compiled programs compute."""

import zlib

import numpy as np
from numpy.typing import NDArray

from emulator.jit import compiled


def _crc32_table() -> NDArray[np.uint64]:
    """Remainder of every byte under the reflected polynomial of IEEE 802.3."""
    table = np.zeros(256, dtype=np.uint64)
    for byte in range(256):
        remainder = byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0xEDB8_8320 if remainder & 1 else 0)
        table[byte] = remainder
    return table


CRC32_TABLE = _crc32_table()
assert (int(CRC32_TABLE[0xFF ^ 0x61]) ^ 0x00FF_FFFF) ^ 0xFFFF_FFFF == zlib.crc32(b"a")


@compiled
def crc32_update(remainder: np.uint64, value: np.uint64, num_bytes: int) -> np.uint64:
    """CRC-32 remainder after ``num_bytes`` more bytes, the low ones of ``value``, most significant first."""
    for position in range(num_bytes - 1, -1, -1):
        byte = (value >> np.uint64(8 * position)) & np.uint64(0xFF)
        remainder = (remainder >> np.uint64(8)) ^ CRC32_TABLE[(remainder ^ byte) & np.uint64(0xFF)]
    return remainder


@compiled
def csum16_add(state: np.uint64, value: np.uint64, bits: np.uint64) -> np.uint64:
    """Append bits to a sum of 16-bit words; a state is the sum, and in its low eight bits where in a word it stands."""
    end = (state & np.uint64(15)) + bits
    shift = (np.uint64(16) - end % np.uint64(16)) % np.uint64(16)
    total = state >> np.uint64(8)
    if shift > np.uint64(0):
        total += value >> (np.uint64(64) - shift)
    value = value << shift
    for position in range(4):
        total += (value >> np.uint64(16 * position)) & np.uint64(0xFFFF)
    return total << np.uint64(8) | end % np.uint64(16)


@compiled
def csum16_finish(total: np.uint64) -> np.uint64:
    """The Internet checksum (RFC 1071) of 16-bit words that add up to ``total``."""
    total = (total & np.uint64(0xFFFF)) + (total >> np.uint64(16))
    total = (total & np.uint64(0xFFFF)) + (total >> np.uint64(16))
    return total ^ np.uint64(0xFFFF)
