"""Parser of received probes; refuses other packets with the reason."""

import struct
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address

from hostlib.telemetry.probes import (
    DOMAIN_ID,
    HOP_LIMIT,
    IPV4_BYTES,
    IPV4_WITHOUT_OPTIONS,
    TCP_BYTES,
    UDP_BYTES,
    Mark,
    internet_checksum,
    mark_of,
    pseudo_header,
)
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
    Hop,
    read_stack,
)


class Malformed(StrEnum):
    """Why a packet is not one of our probes, in the order of the checks."""

    CUT_SHORT = "packet ends inside a header"
    IPV4 = "not IPv4 without options and whole"
    IPV4_LENGTH = "IPv4 length does not fit the packet"
    IPV4_CHECKSUM = "IPv4 checksum is wrong"
    PROTOCOL = "neither UDP nor TCP"
    NOT_ANNOUNCED = "DSCP does not announce INT"
    L4_LENGTH = "length of L4 does not fit IPv4's"
    L4_CHECKSUM = "L4 checksum is wrong"
    SHIM = "no shim of INT-MD with the payload behind it"
    VERSION = "not INT-MD version 2"
    DOMAIN = "another INT domain"
    STACK_LENGTH = "INT stack longer than the packet"
    INSTRUCTIONS = "instructions or Hop ML are not those of our probes"
    HOP_WORDS = "INT stack is not of whole hops"
    HOP_COUNT = "hops on the stack are not those that the count says"
    MARK = "no mark of a probe behind the stack"


class MalformedProbeError(Exception):
    """The packet is not a probe, for ``reason``."""

    def __init__(self, reason: Malformed) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ReceivedProbe:
    """A probe that has arrived.

    ``stack`` holds the words of the hops, the last switch's first. ``is_complete`` is False if a switch had no room to
    answer (INT's E or M bit), so that hops are missing.
    """

    five_tuple: FiveTuple
    dscp: int
    mark: Mark
    stack: bytes
    is_complete: bool

    @property
    def hops(self) -> tuple[Hop, ...]:
        """Answers of the switches, the first switch first."""
        return read_stack(self.stack)


def parse_probe(packet: bytes) -> ReceivedProbe:
    """Parse the probe in an IPv4 packet; bytes behind IPv4's end (Ethernet padding) are ignored.

    Raises MalformedProbeError for every other packet, and no other error.
    """
    dscp, protocol, addresses, l4 = _ipv4(packet)
    ports, body = _l4(protocol, addresses, l4)
    stack, is_complete, payload = _int_md(body)
    mark = mark_of(payload)
    if mark is None:
        raise MalformedProbeError(Malformed.MARK)
    source, destination = IPv4Address(addresses[:4]), IPv4Address(addresses[4:])
    five_tuple = FiveTuple(source, destination, protocol, *ports)
    return ReceivedProbe(five_tuple, dscp, mark, stack, is_complete)


def _ipv4(packet: bytes) -> tuple[int, int, bytes, bytes]:
    """Return DSCP, protocol, both addresses, and what follows the header."""
    _require(len(packet) >= IPV4_BYTES, Malformed.CUT_SHORT)
    first, tos, length, _, fragment, _, protocol, _ = struct.unpack_from("!BBHHHBBH", packet)
    # Refuse fragments (offset, more to come) and the reserved flag.
    _require(first == IPV4_WITHOUT_OPTIONS and fragment & 0xBFFF == 0, Malformed.IPV4)
    _require(IPV4_BYTES <= length <= len(packet), Malformed.IPV4_LENGTH)
    _require(internet_checksum(packet[:IPV4_BYTES]) == 0, Malformed.IPV4_CHECKSUM)
    _require(protocol in (UDP_PROTOCOL, TCP_PROTOCOL), Malformed.PROTOCOL)
    dscp = tos >> 2
    _require(bool(dscp & INT_BIT), Malformed.NOT_ANNOUNCED)
    return dscp, protocol, packet[12:IPV4_BYTES], packet[IPV4_BYTES:length]


def _l4(protocol: int, addresses: bytes, l4: bytes) -> tuple[tuple[int, int], bytes]:
    """Return both ports and what follows the header."""
    header_bytes = UDP_BYTES if protocol == UDP_PROTOCOL else TCP_BYTES
    _require(len(l4) >= header_bytes, Malformed.CUT_SHORT)
    source_port, destination_port = struct.unpack_from("!HH", l4)
    if protocol == UDP_PROTOCOL:
        length, checksum = struct.unpack_from("!HH", l4, 4)
        _require(length == len(l4), Malformed.L4_LENGTH)
        has_checksum = checksum != 0
    else:
        # Switches look for INT behind a header without options.
        _require(l4[12] >> 4 == TCP_BYTES // WORD_BYTES, Malformed.L4_LENGTH)
        has_checksum = True
    if has_checksum:
        covered = pseudo_header(addresses, protocol, len(l4)) + l4
        _require(internet_checksum(covered) == 0, Malformed.L4_CHECKSUM)
    return (source_port, destination_port), l4[header_bytes:]


def _int_md(body: bytes) -> tuple[bytes, bool, bytes]:
    """Return the stack, whether it is complete, and what follows it."""
    _require(len(body) >= SHIM_BYTES + HEADER_BYTES, Malformed.CUT_SHORT)
    kind, length_words = body[0], body[1]
    _require(kind >> 4 == MD_TYPE and kind >> 2 & 0b11 == 0, Malformed.SHIM)
    _require(length_words >= HEADER_WORDS, Malformed.SHIM)
    first, instructions, domain_id = struct.unpack_from("!IHH", body, SHIM_BYTES)
    _require(first >> 28 == VERSION, Malformed.VERSION)
    _require(domain_id == DOMAIN_ID, Malformed.DOMAIN)
    end = SHIM_BYTES + WORD_BYTES * length_words
    _require(end <= len(body), Malformed.STACK_LENGTH)
    hop_words, remaining_hops = first >> 8 & 0x1F, first & 0xFF
    _require((instructions, hop_words) == (INSTRUCTIONS, HOP_WORDS), Malformed.INSTRUCTIONS)
    hops, left_over_words = divmod(length_words - HEADER_WORDS, HOP_WORDS)
    _require(left_over_words == 0, Malformed.HOP_WORDS)
    _require(hops + remaining_hops == HOP_LIMIT, Malformed.HOP_COUNT)
    is_complete = first >> 25 & 0b11 == 0
    return body[SHIM_BYTES + HEADER_BYTES : end], is_complete, body[end:]


def _require(condition: bool, reason: Malformed) -> None:
    if not condition:
        raise MalformedProbeError(reason)
