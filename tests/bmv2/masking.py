"""What a hop writes into a probe that no two switches agree on: times, waiting packets, a port's utilisation.

These are masked. The L4 checksum covers them and stays comparable: it is made what it would be, were they zero.
"""

import struct

from tests.p4src.packets import Instruction, Protocol

Mask = tuple[tuple[int, int], ...]
"""Offsets and lengths, in bytes."""

_IPV4_PROTOCOL, _L4 = 14 + 9, 14 + 20
_L4_BYTES = {Protocol.UDP: 8, Protocol.TCP: 20}
_CHECKSUM = {Protocol.UDP: _L4 + 6, Protocol.TCP: _L4 + 16}
_INSTRUCTIONS, _STACK = 8, 16  # behind the L4 header
_ONES = 0xFFFF

# Bytes of each instruction's answer, and those of them that differ, in the order of the stack.
_ANSWERS = {
    Instruction.NODE_ID: (4, range(0)),
    Instruction.LEVEL1_PORTS: (4, range(0)),
    Instruction.HOP_LATENCY: (4, range(4)),
    Instruction.QUEUE: (4, range(1, 4)),
    Instruction.INGRESS_TIME: (8, range(8)),
    Instruction.EGRESS_TIME: (8, range(8)),
    Instruction.LEVEL2_PORTS: (8, range(0)),
    Instruction.UTILISATION: (4, range(4)),
}


def mask_of(received: bytes, sent: bytes) -> Mask:
    """Where the packet that a switch made of a received one depends on time and load: only where it has grown."""
    if len(sent) <= len(received) or sent[12:14] != b"\x08\0":
        return ()
    at = _L4 + _L4_BYTES[Protocol(sent[_IPV4_PROTOCOL])]
    [instructions] = struct.unpack_from("!H", sent, at + _INSTRUCTIONS)
    at += _STACK
    mask = []
    for instruction, (length, differing) in _ANSWERS.items():
        if instructions & instruction:
            if differing:
                mask.append((at + differing.start, len(differing)))
            at += length
    return tuple(mask)


def masked(octets: bytes, mask: Mask) -> bytes:
    """The packet with zeros in the masked places and an L4 checksum to match; as it is where nothing is masked."""
    if not mask:
        return octets
    result, removed = bytearray(octets), bytearray(len(octets) + len(octets) % 2)
    for start, length in mask:
        removed[start : start + length] = octets[start : start + length]
        result[start : start + length] = bytes(len(octets[start : start + length]))
    at = _CHECKSUM[Protocol(octets[_IPV4_PROTOCOL])]
    [checksum] = struct.unpack_from("!H", octets, at)
    if checksum or octets[_IPV4_PROTOCOL] != Protocol.UDP:
        difference = (_ONES - checksum) - sum(struct.unpack(f"!{len(removed) // 2}H", removed))
        struct.pack_into("!H", result, at, _ONES - difference % _ONES)
    return bytes(result)
