"""Header bytes of the packets that hosts send."""

import struct

from topologies.addressing import TCP_PROTOCOL, UDP_PROTOCOL, FiveTuple

_GATEWAY_MAC = 0x06_FF_FF_FF_FF_FF
"""Locally administered MAC by which hosts address their first switch; switches ignore it."""

_TTL = 64

UDP_HEADER_BYTES = 42


def template(five_tuple: FiveTuple, source_mac: int) -> bytes:
    """Return the Ethernet, IPv4 and UDP or TCP headers of a flow, with lengths and checksum 0.

    Raises ValueError for another protocol.
    """
    ethernet = _GATEWAY_MAC.to_bytes(6, "big") + source_mac.to_bytes(6, "big") + b"\x08\x00"
    ipv4 = struct.pack(
        "!BBHHHBBHII",
        0x45,
        0,
        0,
        0,
        0,
        _TTL,
        five_tuple.protocol,
        0,
        five_tuple.source_address,
        five_tuple.destination_address,
    )
    ports = struct.pack("!HH", five_tuple.source_port, five_tuple.destination_port)
    match five_tuple.protocol:
        case protocol if protocol == UDP_PROTOCOL:
            return ethernet + ipv4 + ports + bytes(4)
        case protocol if protocol == TCP_PROTOCOL:
            return ethernet + ipv4 + ports + struct.pack("!IIBBHHH", 0, 0, 5 << 4, 0x10, 0xFFFF, 0, 0)
    raise ValueError(f"hosts speak UDP and TCP, not protocol {five_tuple.protocol}")
