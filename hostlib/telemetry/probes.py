"""Probes as packets: a flow's 5-tuple, INT-MD 2.1 behind L4, and a mark that identifies them to the receiver."""

import struct
from dataclasses import dataclass

from hostlib.types import FiveTuple
from hostlib.wire.int_md import (
    HEADER_BYTES,
    HEADER_WORDS,
    HOP_WORDS,
    INSTRUCTIONS,
    INT_BIT,
    MD_TYPE,
    SHIM_BYTES,
    TCP_PROTOCOL,
    UDP_PROTOCOL,
    VERSION,
    WORD_BYTES,
)

HOP_LIMIT = 16
"""Switches that may answer a probe."""

DOMAIN_ID = 0
"""Domain of INT's domain-specific instructions; we use none."""

IPV4_BYTES = 20
IPV4_WITHOUT_OPTIONS = 0x45
"""First byte of an IPv4 header without options."""

UDP_BYTES = 8
TCP_BYTES = 20
ETHERNET_BYTES = 14

MAGIC = b"TYP1"
"""Start of a probe's mark."""

_TTL = 64
_DO_NOT_FRAGMENT = 0x4000
_DISCARD = 1 << 27
_MARK = struct.Struct("!4sIIIQ")
MARK_BYTES = _MARK.size


@dataclass(frozen=True, slots=True)
class Mark:
    """The payload of a probe, behind its INT stack.

    ``session`` identifies a run of the sender. ``sequence`` counts its probes between the same two NICs,
    ``port_sequence`` those of them from the same source port, both from 0. ``sent_ns`` is the sender's clock.
    """

    session: int
    sequence: int
    port_sequence: int
    sent_ns: int

    def octets(self) -> bytes:
        """Return the payload."""
        return _MARK.pack(MAGIC, self.session, self.sequence, self.port_sequence, self.sent_ns)


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe to send: it takes the path of the flow with ``five_tuple``, in the queues of ``level`` (0 to 7)."""

    five_tuple: FiveTuple
    level: int
    mark: Mark


def mark_of(payload: bytes) -> Mark | None:
    """Parse a payload as a mark; return None if it is none."""
    if len(payload) != MARK_BYTES or not payload.startswith(MAGIC):
        return None
    _, *numbers = _MARK.unpack(payload)
    return Mark(*numbers)


def probe_packet(probe: Probe) -> bytes:
    """Return the IPv4 packet of a probe, with all checksums. Raises ValueError for protocols besides UDP and TCP."""
    flow = probe.five_tuple
    shim = struct.pack("!BBH", MD_TYPE << 4, HEADER_WORDS, 0)
    int_word = VERSION << 28 | _DISCARD | HOP_WORDS << 8 | HOP_LIMIT
    body = shim + struct.pack("!IHHHH", int_word, INSTRUCTIONS, DOMAIN_ID, 0, 0) + probe.mark.octets()
    match flow.protocol:
        case protocol if protocol == UDP_PROTOCOL:
            at = 6
            l4 = struct.pack("!HHHH", flow.source_port, flow.destination_port, UDP_BYTES + len(body), 0)
        case protocol if protocol == TCP_PROTOCOL:
            at = 16
            # No flag is set, so no connection accepts it.
            l4 = struct.pack("!HHIIBBHHH", flow.source_port, flow.destination_port, 0, 0, 5 << 4, 0, 0, 0, 0)
        case _:
            raise ValueError(f"probes speak UDP and TCP, not protocol {flow.protocol}")
    addresses = flow.source_address.packed + flow.destination_address.packed
    length = len(l4) + len(body)
    checksum = internet_checksum(pseudo_header(addresses, flow.protocol, length) + l4 + body)
    if flow.protocol == UDP_PROTOCOL and checksum == 0:
        checksum = 0xFFFF  # 0 means that there is no checksum
    dscp = probe.level << 3 | INT_BIT
    first = IPV4_WITHOUT_OPTIONS, dscp << 2, IPV4_BYTES + length
    # Forbid fragmentation. It also keeps kernels from replacing the identification field (RFC 6864).
    ipv4 = struct.pack("!BBHHHBBH", *first, 0, _DO_NOT_FRAGMENT, _TTL, flow.protocol, 0) + addresses
    ipv4 = ipv4[:10] + struct.pack("!H", internet_checksum(ipv4)) + ipv4[12:]
    return ipv4 + l4[:at] + struct.pack("!H", checksum) + l4[at + 2 :] + body


def wire_bytes(hops: int, protocol: int = UDP_PROTOCOL) -> int:
    """Return the bytes of a probe's Ethernet frame, without its checksum, after ``hops`` switches have answered."""
    l4_bytes = UDP_BYTES if protocol == UDP_PROTOCOL else TCP_BYTES
    fixed = ETHERNET_BYTES + IPV4_BYTES + l4_bytes + SHIM_BYTES + HEADER_BYTES + MARK_BYTES
    return fixed + WORD_BYTES * HOP_WORDS * hops


def internet_checksum(octets: bytes) -> int:
    """Return the one's complement of the one's complement sum of 16-bit words (RFC 1071); 0 verifies a checksum."""
    padded = octets + bytes(len(octets) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def pseudo_header(addresses: bytes, protocol: int, length_bytes: int) -> bytes:
    """Return the pseudo header of UDP and TCP checksums: addresses, protocol, and length of L4 with its payload."""
    return addresses + struct.pack("!HH", protocol, length_bytes)
