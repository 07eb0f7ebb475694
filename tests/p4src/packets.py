"""Packets built from scratch, every length and checksum computed anew: what the pipeline's output is compared with."""

import struct
from dataclasses import dataclass
from enum import IntEnum

ETHERNET_BYTES = 14
INVALID = 0xFFFF_FFFF
"""A word of INT that tells nothing."""


class Protocol(IntEnum):
    """What follows IPv4."""

    ICMP = 1
    TCP = 6
    UDP = 17


class Instruction(IntEnum):
    """Bits of the INT 2.1 instruction bitmap that the pipeline knows."""

    NODE_ID = 1 << 15
    LEVEL1_PORTS = 1 << 14
    HOP_LATENCY = 1 << 13
    QUEUE = 1 << 12
    INGRESS_TIME = 1 << 11
    EGRESS_TIME = 1 << 10
    LEVEL2_PORTS = 1 << 9
    UTILISATION = 1 << 8


def internet_checksum(data: bytes) -> int:
    """One's complement of the one's complement sum of 16-bit words (RFC 1071)."""
    padded = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total >> 16) + (total & 0xFFFF)
    return ~total & 0xFFFF


def words(*values: int) -> bytes:
    """32-bit words in network order."""
    return struct.pack(f"!{len(values)}I", *values)


def ethernet(
    payload: bytes, ether_type: int = 0x0800, destination: int = 0x02_00_00_00_00_01, source: int = 2
) -> bytes:
    """An Ethernet frame without its checksum."""
    return destination.to_bytes(6, "big") + source.to_bytes(6, "big") + ether_type.to_bytes(2, "big") + payload


@dataclass(frozen=True, slots=True, kw_only=True)
class IntMd:
    """Shim, INT-MD 2.1 header and stack; ``length`` overrides the shim's, in words."""

    instructions: int
    hop_words: int
    remaining_hop_count: int = 8
    stack: bytes = b""
    hop_count_exceeded: bool = False
    mtu_exceeded: bool = False
    domain_id: int = 0
    type: int = 1
    next_protocol_type: int = 0
    version: int = 2
    length: int | None = None

    def octets(self) -> bytes:
        """The bytes behind the L4 header. The discard bit is set."""
        length = 3 + len(self.stack) // 4 if self.length is None else self.length
        shim = struct.pack("!BBH", self.type << 4 | self.next_protocol_type << 2, length, 0)
        flags = 1 << 27 | self.hop_count_exceeded << 26 | self.mtu_exceeded << 25
        first = self.version << 28 | flags | self.hop_words << 8 | self.remaining_hop_count
        header = struct.pack("!IHHHH", first, self.instructions, self.domain_id, 0, 0)
        return shim + header + self.stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Ipv4:
    """An IPv4 packet in an Ethernet frame. ``payload`` stands behind the L4 header and ``telemetry``."""

    source: int = 0x0A_00_00_01
    destination: int = 0x0A_00_00_02
    protocol: int = Protocol.UDP
    source_port: int = 4000
    destination_port: int = 5000
    dscp: int = 0
    ecn: int = 0
    time_to_live: int = 64
    telemetry: IntMd | None = None
    payload: bytes = b"payload of odd length"
    options: bytes = b""
    flags: int = 0
    fragment_offset: int = 0
    tcp_options: bytes = b""
    udp_checksum: bool = True
    checksum_error: int = 0
    l4_checksum_error: int = 0
    destination_mac: int = 0x06_FF_FF_FF_FF_FF
    source_mac: int = 0x02_00_00_00_00_01

    def octets(self) -> bytes:
        """The frame."""
        l4 = self._l4()
        header = bytearray(
            struct.pack(
                "!BBHHHBBHII",
                4 << 4 | 5 + len(self.options) // 4,
                self.dscp << 2 | self.ecn,
                20 + len(self.options) + len(l4),
                0x1234,
                self.flags << 13 | self.fragment_offset,
                self.time_to_live,
                self.protocol,
                0,
                self.source,
                self.destination,
            )
            + self.options
        )
        struct.pack_into("!H", header, 10, internet_checksum(bytes(header)) ^ self.checksum_error)
        return ethernet(bytes(header) + l4, destination=self.destination_mac, source=self.source_mac)

    def _l4(self) -> bytes:
        body = (self.telemetry.octets() if self.telemetry else b"") + self.payload
        match self.protocol:
            case Protocol.UDP:
                header = bytearray(struct.pack("!HHHH", self.source_port, self.destination_port, 8 + len(body), 0))
                at = 6
            case Protocol.TCP:
                offset = 5 + len(self.tcp_options) // 4
                ports = (self.source_port, self.destination_port)
                header = bytearray(struct.pack("!HHIIBBHHH", *ports, 7, 9, offset << 4, 0x18, 512, 0, 0))
                header += self.tcp_options
                at = 16
            case _:
                return body
        if self.protocol == Protocol.UDP and not self.udp_checksum:
            return bytes(header) + body
        length = len(header) + len(body)
        pseudo = struct.pack("!IIBBH", self.source, self.destination, 0, self.protocol, length)
        checksum = internet_checksum(pseudo + header + body)
        if self.protocol == Protocol.UDP and checksum == 0:
            checksum = 0xFFFF
        struct.pack_into("!H", header, at, checksum ^ self.l4_checksum_error)
        return bytes(header) + body
