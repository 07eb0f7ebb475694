"""Match fields on the wire: OpenFlow's extensible matches (OXM), section 7.2.3 of the specification.

A field has a header of four bytes: class, number and whether it has a mask, length of what follows. The same headers
name the fields that actions set.
"""

import struct
from collections.abc import Iterator, Mapping

from controller.southbound.openflow.entries import Match
from controller.southbound.openflow.messages import MalformedError
from topologies.addressing import TCP_PROTOCOL, UDP_PROTOCOL, Address, Prefix

IPV4 = 0x0800
MOST_DSCP = 63

IN_PORT = b"\x80\x00\x00\x04"
ETHERNET_DESTINATION = b"\x80\x00\x06\x06"
ETHERNET_SOURCE = b"\x80\x00\x08\x06"
ETHER_TYPE = b"\x80\x00\x0a\x02"
IP_DSCP = b"\x80\x00\x10\x01"
IP_PROTOCOL = b"\x80\x00\x14\x01"
IPV4_SOURCE = b"\x80\x00\x16\x04"
IPV4_DESTINATION = b"\x80\x00\x18\x04"
SOURCE_PORTS: Mapping[int | None, bytes] = {TCP_PROTOCOL: b"\x80\x00\x1a\x02", UDP_PROTOCOL: b"\x80\x00\x1e\x02"}
DESTINATION_PORTS: Mapping[int | None, bytes] = {TCP_PROTOCOL: b"\x80\x00\x1c\x02", UDP_PROTOCOL: b"\x80\x00\x20\x02"}

_NO_FIELDS = Match()[1:]
_HEADER_BYTES = 4
_MATCH = struct.Struct("!HH")
"""The type of a match, and its length without padding."""
_OXM_MATCH = 1
_PADDING = [bytes(count) for count in range(8)]

_FLOW = struct.Struct("!HH6s4sB4sI4sI4sH4sH5x")
"""The match of one flow, with its padding: each field behind its header."""
_FLOW_BYTES = 43
_IS_IPV4 = ETHER_TYPE + IPV4.to_bytes(2, "big")

_PREFIXES = (IPV4_SOURCE, IPV4_DESTINATION)
_PREFIX_LENGTHS: Mapping[int | None, int] = {
    None: 32,
    **{0xFFFF_FFFF << 32 - length & 0xFFFF_FFFF: length for length in range(32)},
}
"""By mask; None: all bits count."""


def encode_match(match: Match) -> bytes:
    """Return a match with its padding, its fields in the order of their numbers.

    Raises:
        ValueError: OpenFlow cannot say it; the message tells why.
    """
    try:
        return _encode_flow(match) or match_of(_encode_fields(match))
    except (OverflowError, struct.error):
        raise ValueError(f"a number does not fit into its field: {match}") from None


def match_of(fields: bytes) -> bytes:
    """Return the match that these fields make, with its padding."""
    length = _MATCH.size + len(fields)
    return _MATCH.pack(_OXM_MATCH, length) + fields + _PADDING[-length % 8]


def encode_dscp(dscp: int) -> bytes:
    """Return the field of a DSCP. Raises ValueError where it does not fit into 6 bits."""
    if not 0 <= dscp <= MOST_DSCP:
        raise ValueError(f"a DSCP has 6 bits: {dscp}")
    return IP_DSCP + dscp.to_bytes(1, "big")


def split_match(octets: bytes, start: int) -> tuple[bytes, int]:
    """Return the fields of the match that begins at ``start``, without header and padding, and where it ends.

    Raises:
        MalformedError: It is truncated, or of another type than OXM.
    """
    if len(octets) < start + _MATCH.size:
        raise MalformedError("a match is truncated")
    kind, length = _MATCH.unpack_from(octets, start)
    end = start + length + -length % 8
    if kind != _OXM_MATCH or length < _MATCH.size or end > len(octets):
        raise MalformedError(f"a match has type {kind} and says it has {length} bytes of {len(octets) - start}")
    return octets[start + _MATCH.size : start + length], end


def decode_match(fields: bytes) -> Match | None:
    """Return the match of these fields, in any order; None where our words do not tell all of it.

    Fields whose mask is all ones are those without a mask; those whose mask is 0 match everything.

    Raises:
        MalformedError: They are truncated.
    """
    prefixes: dict[bytes, Prefix] = {}
    numbers: dict[bytes, int] = {}
    for header, value, mask in extensible_fields(fields, "a match field"):
        if header in _PREFIXES:
            length = _PREFIX_LENGTHS.get(mask)
            if length is None or (mask is not None and value & ~mask):
                return None
            if length:
                prefixes[header] = Prefix(Address(value), length)
        elif mask is None:
            numbers[header] = value
        elif mask:
            return None
    protocol = numbers.pop(IP_PROTOCOL, None)
    match = Match(
        ether_type=numbers.pop(ETHER_TYPE, None),
        dscp=numbers.pop(IP_DSCP, None),
        source=prefixes.get(IPV4_SOURCE),
        destination=prefixes.get(IPV4_DESTINATION),
        protocol=protocol,
        source_port=numbers.pop(SOURCE_PORTS.get(protocol, b""), None),
        destination_port=numbers.pop(DESTINATION_PORTS.get(protocol, b""), None),
    )
    is_ours = not numbers and _has_its_ether_type(match) and (match.dscp or 0) <= MOST_DSCP
    return match if is_ours else None


def extensible_fields(octets: bytes, what: str) -> Iterator[tuple[bytes, int, int | None]]:
    """Yield the header without its mask bit, the value and the mask of each field; None where all its bits count.

    Raises:
        MalformedError: One, which ``what`` names, is truncated.
    """
    position, end = 0, len(octets)
    while position < end:
        start = position + _HEADER_BYTES
        header = octets[position:start]
        if len(header) < _HEADER_BYTES or start + header[3] > end:
            raise MalformedError(f"{what} is truncated")
        position = start + header[3]
        if header[2] & 1:
            yield _masked_field(header, octets[start:position])
        else:
            yield header, int.from_bytes(octets[start:position], "big"), None


def _masked_field(header: bytes, payload: bytes) -> tuple[bytes, int, int | None]:
    length = len(payload) // 2
    value, mask = payload[:length], payload[length:]
    unmasked = bytes((header[0], header[1], header[2] & 0xFE, length))
    all_count = mask == b"\xff" * length
    return unmasked, int.from_bytes(value, "big"), None if all_count else int.from_bytes(mask, "big")


def _has_its_ether_type(match: Match) -> bool:
    """Whether a match has the EtherType that its other fields need."""
    return match.ether_type == IPV4 or match[1:] == _NO_FIELDS


def _encode_flow(match: Match) -> bytes | None:
    """Return the match of one flow at once, as there are many of them; None where it is another match."""
    ether_type, dscp, source, destination, protocol, source_port, destination_port = match
    if (
        protocol not in SOURCE_PORTS
        or source is None
        or destination is None
        or not source.length == destination.length == 32
    ):
        return None
    if ether_type != IPV4 or dscp is not None or source_port is None or destination_port is None:
        return None
    return _FLOW.pack(
        *(_OXM_MATCH, _FLOW_BYTES, _IS_IPV4, IP_PROTOCOL, protocol),
        *(IPV4_SOURCE, source.address, IPV4_DESTINATION, destination.address),
        *(SOURCE_PORTS[protocol], source_port, DESTINATION_PORTS[protocol], destination_port),
    )


def _encode_fields(match: Match) -> bytes:
    """Return the fields of any match."""
    ether_type, dscp, source, destination, protocol, source_port, destination_port = match
    if not _has_its_ether_type(match):
        raise ValueError(f"fields of IPv4 need the EtherType 0x0800: {match}")
    fields = b""
    if ether_type is not None:
        fields = ETHER_TYPE + ether_type.to_bytes(2, "big")
    if dscp is not None:
        fields += encode_dscp(dscp)
    if protocol is not None:
        fields += IP_PROTOCOL + protocol.to_bytes(1, "big")
    if source is not None:
        fields += _encode_prefix(IPV4_SOURCE, source)
    if destination is not None:
        fields += _encode_prefix(IPV4_DESTINATION, destination)
    if source_port is not None:
        fields += _header_of_port(SOURCE_PORTS, protocol) + source_port.to_bytes(2, "big")
    if destination_port is not None:
        fields += _header_of_port(DESTINATION_PORTS, protocol) + destination_port.to_bytes(2, "big")
    return fields


def _encode_prefix(header: bytes, prefix: Prefix) -> bytes:
    if prefix.length == 32:
        return header + prefix.address.to_bytes(4, "big")
    if not prefix.length:
        raise ValueError(f"a prefix of length 0 is no field: {prefix}")
    masked = header[:2] + bytes((header[2] | 1, 8))
    return masked + prefix.address.to_bytes(4, "big") + prefix.mask.to_bytes(4, "big")


def _header_of_port(headers: Mapping[int | None, bytes], protocol: int | None) -> bytes:
    if protocol not in headers:
        raise ValueError(f"ports need the protocol TCP or UDP: {protocol}")
    return headers[protocol]
