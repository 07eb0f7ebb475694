"""Checksums of IPv4, UDP and TCP."""

import struct


def internet_checksum(octets: bytes) -> int:
    """One's complement of the one's complement sum of 16-bit words (RFC 1071); 0 where ``octets`` hold their own."""
    padded = octets + bytes(len(octets) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def pseudo_header(addresses: bytes, protocol: int, length_bytes: int) -> bytes:
    """What a UDP or TCP checksum covers before L4: both IPv4 addresses, the protocol, the length of L4 and payload."""
    return addresses + struct.pack("!HH", protocol, length_bytes)
