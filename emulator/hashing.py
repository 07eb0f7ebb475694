"""Hashes and checksums used by compiled programs."""

import zlib

import numpy as np
from numpy.typing import NDArray

from emulator.jit import inlined


def _crc_table(polynomial: int) -> NDArray[np.uint64]:
    """Return the remainders of all bytes under a reflected polynomial: that of IEEE 802.3, or CRC-16/ARC's."""
    table = np.zeros(256, dtype=np.uint64)
    for byte in range(256):
        remainder = byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (polynomial if remainder & 1 else 0)
        table[byte] = remainder
    return table


CRC32_TABLE = _crc_table(0xEDB8_8320)
# Tables for four bytes at once: the remainder of a byte that one, two or three others follow.
CRC32_TABLE_1 = CRC32_TABLE >> np.uint64(8) ^ CRC32_TABLE[CRC32_TABLE & np.uint64(0xFF)]
CRC32_TABLE_2 = CRC32_TABLE_1 >> np.uint64(8) ^ CRC32_TABLE[CRC32_TABLE_1 & np.uint64(0xFF)]
CRC32_TABLE_3 = CRC32_TABLE_2 >> np.uint64(8) ^ CRC32_TABLE[CRC32_TABLE_2 & np.uint64(0xFF)]
CRC16_TABLE = _crc_table(0xA001)
assert (int(CRC32_TABLE[0xFF ^ 0x61]) ^ 0x00FF_FFFF) ^ 0xFFFF_FFFF == zlib.crc32(b"a")


@inlined
def crc32_update(remainder: np.uint64, value: np.uint64, num_bytes: int) -> np.uint64:
    """Return the CRC-32 remainder after the low ``num_bytes`` bytes of ``value``, most significant first."""
    low = np.uint64(0xFF)
    while num_bytes >= 4:
        num_bytes -= 4
        four = value >> np.uint64(8 * num_bytes)
        first, second = remainder ^ (four >> np.uint64(24)), remainder >> np.uint64(8) ^ (four >> np.uint64(16))
        third, fourth = remainder >> np.uint64(16) ^ (four >> np.uint64(8)), remainder >> np.uint64(24) ^ four
        remainder = (
            CRC32_TABLE_3[first & low]
            ^ CRC32_TABLE_2[second & low]
            ^ CRC32_TABLE_1[third & low]
            ^ CRC32_TABLE[fourth & low]
        )
    while num_bytes > 0:
        num_bytes -= 1
        byte = value >> np.uint64(8 * num_bytes)
        remainder = (remainder >> np.uint64(8)) ^ CRC32_TABLE[(remainder ^ byte) & low]
    return remainder


@inlined
def crc16_update(remainder: np.uint64, value: np.uint64, num_bytes: int) -> np.uint64:
    """Return the CRC-16/ARC remainder after more bytes; the initial remainder is 0."""
    for position in range(num_bytes - 1, -1, -1):
        byte = (value >> np.uint64(8 * position)) & np.uint64(0xFF)
        remainder = (remainder >> np.uint64(8)) ^ CRC16_TABLE[(remainder ^ byte) & np.uint64(0xFF)]
    return remainder


@inlined
def xor16_add(state: np.uint64, value: np.uint64, bits: np.uint64) -> np.uint64:
    """Append bits to an exclusive-or of 16-bit words; the state has the form of ``csum16_add``."""
    if bits == np.uint64(0):
        return state
    end = (state & np.uint64(15)) + bits
    shift = (np.uint64(16) - end % np.uint64(16)) % np.uint64(16)
    total = state >> np.uint64(8)
    if shift > np.uint64(0):
        total ^= value >> (np.uint64(64) - shift)
    value = value << shift
    for position in range(4):
        total ^= (value >> np.uint64(16 * position)) & np.uint64(0xFFFF)
    return total << np.uint64(8) | end % np.uint64(16)


@inlined
def identity_add(state: tuple[np.uint64, np.uint64], value: np.uint64, bits: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Append bits to a number that keeps its first 64 bits; the state is the number and its length in bits."""
    room = np.uint64(64) - state[1]
    if bits == np.uint64(0) or room == np.uint64(0):
        return state
    if bits > room:
        value, bits = value >> (bits - room), room
    before = state[0] << bits if bits < np.uint64(64) else np.uint64(0)
    return before | value, state[1] + bits


@inlined
def identity_finish(state: tuple[np.uint64, np.uint64]) -> np.uint64:
    """Return the number, padded with zeros to whole bytes."""
    return state[0] << ((np.uint64(8) - state[1] % np.uint64(8)) % np.uint64(8))


@inlined
def csum16_add(state: np.uint64, value: np.uint64, bits: np.uint64) -> np.uint64:
    """Append bits to a sum of 16-bit words; the low eight bits of the state hold the position within a word."""
    if bits == np.uint64(0):
        return state
    end = (state & np.uint64(15)) + bits
    shift = (np.uint64(16) - end % np.uint64(16)) % np.uint64(16)
    total = state >> np.uint64(8)
    if shift > np.uint64(0):
        total += value >> (np.uint64(64) - shift)
    value = value << shift
    for position in range(4):
        total += (value >> np.uint64(16 * position)) & np.uint64(0xFFFF)
    return total << np.uint64(8) | end % np.uint64(16)


@inlined
def csum16_bytes(state: np.uint64, octets: NDArray[np.uint8], first: np.uint64, end: np.uint64) -> np.uint64:
    """Append bytes to a sum of 16-bit words."""
    while first < end:
        state = csum16_add(state, np.uint64(octets[first]), np.uint64(8))
        first += np.uint64(1)
    return state


@inlined
def csum16_finish(total: np.uint64) -> np.uint64:
    """Return the Internet checksum (RFC 1071) of 16-bit words whose sum is ``total``."""
    total = (total & np.uint64(0xFFFF)) + (total >> np.uint64(16))
    total = (total & np.uint64(0xFFFF)) + (total >> np.uint64(16))
    return total ^ np.uint64(0xFFFF)
