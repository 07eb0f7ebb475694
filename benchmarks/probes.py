"""INT-MD 2.1 probes as bytes: Ethernet, IPv4 with the INT bit of the DSCP, UDP, shim, header, an empty stack."""

import struct

from topologies.addressing import FiveTuple

INT_BIT = 1
SHIM_AND_HEADER_BYTES = 16
# Node id, level-1 ports, hop latency, queue, ingress and egress time (two words each), utilisation.
INSTRUCTIONS = 0b1111_1101_0000_0000
HOP_WORDS = 9


def probe(five_tuple: FiveTuple, level: int, hops: int = 8) -> bytes:
    """A probe of a flow that samples the queues of a level."""
    udp_bytes = 8 + SHIM_AND_HEADER_BYTES
    ipv4 = struct.pack(
        "!BBHHHBBHII",
        0x45,
        (level << 3 | INT_BIT) << 2,
        20 + udp_bytes,
        0,
        0,
        64,
        five_tuple.protocol,
        0,
        five_tuple.source_address,
        five_tuple.destination_address,
    )
    total = sum(struct.unpack("!10H", ipv4))
    total = (total & 0xFFFF) + (total >> 16)
    ipv4 = ipv4[:10] + struct.pack("!H", ~total & 0xFFFF) + ipv4[12:]
    udp = struct.pack("!HHHH", five_tuple.source_port, five_tuple.destination_port, udp_bytes, 0)
    shim = struct.pack("!BBH", 1 << 4, 3, 0)
    header = struct.pack("!IHHHH", 2 << 28 | 1 << 27 | HOP_WORDS << 8 | hops, INSTRUCTIONS, 0, 0, 0)
    return bytes(12) + b"\x08\x00" + ipv4 + udp + shim + header
