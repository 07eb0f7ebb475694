"""Packets as bytes."""

from tests.p4src.packets import internet_checksum
from topologies.addressing import FiveTuple

ETHERNET = bytes.fromhex("06ffffffffff020000000001")
IPV4_TYPE = b"\x08\x00"


def ipv4_packet(
    five_tuple: FiveTuple,
    *,
    time_to_live: int = 64,
    dscp: int = 0,
    ecn: int = 0,
    identification: int = 0,
    fragment: int = 0,
    options: bytes = b"",
    checksum_error: int = 0,
    payload: bytes = b"",
) -> bytes:
    """An Ethernet frame: IPv4 with a right checksum (unless ``checksum_error`` is added to it), ports, payload.

    ``fragment`` is the 16 bits of flags and offset.
    """
    ports = five_tuple.source_port.to_bytes(2, "big") + five_tuple.destination_port.to_bytes(2, "big")
    header_bytes = 20 + len(options)
    before_checksum = (
        bytes([0x40 | header_bytes // 4, dscp << 2 | ecn])
        + (header_bytes + len(ports) + len(payload)).to_bytes(2, "big")
        + identification.to_bytes(2, "big")
        + fragment.to_bytes(2, "big")
        + bytes([time_to_live, five_tuple.protocol])
    )
    addresses = five_tuple.source_address.to_bytes(4, "big") + five_tuple.destination_address.to_bytes(4, "big")
    checksum = internet_checksum(before_checksum + addresses + options) + checksum_error & 0xFFFF
    return ETHERNET + IPV4_TYPE + before_checksum + checksum.to_bytes(2, "big") + addresses + options + ports + payload
