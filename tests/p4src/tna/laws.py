"""What the two programs do differently, in Python: the member of a group that each chooses, and what each refuses."""

import hashlib
import zlib
from functools import cache

from tests.p4src.tna.entries import Entries
from topologies.addressing import Address, FiveTuple

ETHERNET_BYTES, IPV4_BYTES, PORTS_BYTES, UDP_BYTES, TCP_BYTES = 14, 20, 4, 8, 20
INT_HEADERS_BYTES = 16


def v1model_choice(entries: Entries, flow: FiveTuple, hops: tuple[int, ...]) -> int:
    """The next hop that v1model's program chooses: CRC-32 times a multiplier, upper 16 bits, modulo the group."""
    return hops[(_crc(flow) * entries.hash_multiplier >> 16 & 0xFFFF) % len(hops)]


def tofino_choice(entries: Entries, flow: FiveTuple, hops: tuple[int, ...]) -> int:
    """The next hop that Tofino's program chooses: salted CRC-32, four boxes, as many bits as the mask has."""
    salted = (_crc(flow) ^ entries.hash_salt).to_bytes(4, "big")
    boxes = _boxes()
    hashed = boxes[0][salted[0]] ^ boxes[1][salted[1]] ^ boxes[2][salted[2]] ^ boxes[3][salted[3]]
    return hops[(hashed & entries.slot_mask) % len(hops)]


def _crc(flow: FiveTuple) -> int:
    addresses = flow.source_address.to_bytes(4, "big") + flow.destination_address.to_bytes(4, "big")
    ports = flow.source_port.to_bytes(2, "big") + flow.destination_port.to_bytes(2, "big")
    return zlib.crc32(addresses + flow.protocol.to_bytes(1, "big") + ports)


@cache
def _boxes() -> tuple[tuple[int, ...], ...]:
    """Four boxes of 256 numbers: the first 16 bits of SHA-256 of "trainyard ecmp k b"."""
    return tuple(
        tuple(
            int.from_bytes(hashlib.sha256(f"trainyard ecmp {box} {octet}".encode()).digest()[:2], "big")
            for octet in range(256)
        )
        for box in range(4)
    )


def flow_of(frame: bytes) -> FiveTuple | None:
    """What both programs hash: the ports are 0 where a packet has none of its own. None for what is no whole IPv4."""
    if len(frame) < ETHERNET_BYTES + IPV4_BYTES or frame[12:14] != b"\x08\x00" or not 0x45 <= frame[14] <= 0x4F:
        return None
    source, destination = (int.from_bytes(frame[at : at + 4], "big") for at in (26, 30))
    ports = (0, 0)
    if _has_ports(frame) and len(frame) >= ETHERNET_BYTES + IPV4_BYTES + PORTS_BYTES:
        ports = int.from_bytes(frame[34:36], "big"), int.from_bytes(frame[36:38], "big")
    return FiveTuple(Address(source), Address(destination), frame[23], *ports)


def _has_ports(frame: bytes) -> bool:
    return frame[14] == 0x45 and frame[20] & 0x3F == 0 and frame[21] == 0 and frame[23] in (6, 17)


def _announces_int(frame: bytes) -> bool:
    return frame[15] >> 2 & 1 == 1


def is_cut_short(frame: bytes) -> bool:
    """Whether a frame lacks bytes of a header that it announces: Tofino's program drops it as malformed."""
    return len(frame) < _announced_bytes(frame)


def _announced_bytes(frame: bytes) -> int:
    """Bytes that the parser of Tofino's program wants, of frames that are not the controller's."""
    ipv4_end = ETHERNET_BYTES + IPV4_BYTES
    if frame[12:14] != b"\x08\x00":
        return ETHERNET_BYTES
    if len(frame) < ETHERNET_BYTES + 1:
        return ETHERNET_BYTES + 1
    if not 0x45 <= frame[14] <= 0x4F:
        return ETHERNET_BYTES
    if len(frame) < ipv4_end or frame[14] > 0x45:
        return ETHERNET_BYTES + 4 * (frame[14] & 0xF)
    if not _has_ports(frame):
        return ipv4_end
    if not _announces_int(frame):
        return ipv4_end + PORTS_BYTES
    l4_end = ipv4_end + (UDP_BYTES if frame[23] == 17 else TCP_BYTES)
    if len(frame) < l4_end or (frame[23] == 6 and frame[46] >> 4 != 5):
        return l4_end
    ahead = int.from_bytes(frame[l4_end : l4_end + 5], "big")
    is_int_md_2 = len(frame) >= l4_end + 5 and ahead & 0xFC000000F0 == 0x1000000020
    return l4_end + (INT_HEADERS_BYTES if is_int_md_2 else 5)


def claims_too_much(frame: bytes) -> bool:
    """Whether IPv4 and INT end behind the frame: v1model's program sees that, Tofino's does not."""
    if flow_of(frame) is None or not _announces_int(frame):
        return False
    return ETHERNET_BYTES + int.from_bytes(frame[16:18], "big") > len(frame)
