"""INT-MD 2.1 as our switches and hosts write it: the instruction bitmap, and the answer of every hop.

Source: *In-band Network Telemetry (INT) Dataplane Specification*, version 2.1, sections 4 and 5.
"""

import struct
from collections.abc import Mapping
from enum import IntFlag
from functools import cache
from typing import NamedTuple

VERSION = 2
MD_TYPE = 1
"""Type of the shim before INT-MD."""

SHIM_BYTES = 4
HEADER_BYTES = 12
WORD_BYTES = 4
HEADER_WORDS = HEADER_BYTES // WORD_BYTES

INT_BIT = 1
"""Bit 0 of the DSCP, which announces the shim behind L4."""

UDP_PROTOCOL = 17
TCP_PROTOCOL = 6


class Instruction(IntFlag):
    """Data that a probe requests from every hop: bits 0 to 7 of the bitmap; bit 0 is the most significant of 16."""

    NODE_ID = 1 << 15
    LEVEL1_PORTS = 1 << 14
    HOP_LATENCY = 1 << 13
    QUEUE = 1 << 12
    INGRESS_TIME = 1 << 11
    EGRESS_TIME = 1 << 10
    LEVEL2_PORTS = 1 << 9
    UTILISATION = 1 << 8


INSTRUCTIONS = 0xFF00 & ~int(Instruction.LEVEL2_PORTS)
"""Instructions in our probes: everything that our switches support."""

HOP_WORDS = 9
"""32-bit words of a hop's answer to them."""

UTILISATION_WINDOW_US = 1 << 14
"""Time over which switches count the bytes of UTILISATION, unless an operator changes table utilisation_window."""


class Hop(NamedTuple):
    """A switch's answer to a probe; None for values that were not requested or that the switch does not know.

    Times are microseconds of the switch's own clock. ``queue_packets`` waited in the queue of ``level`` when the probe
    arrived. ``window_bytes`` left by the egress port in its last complete window and give its utilisation. A Tofino
    writes nanoseconds, and cells for packets; the controller knows which switches do, and converts. A named tuple,
    because a controller reads hundreds of thousands a second.
    """

    node_id: int | None = None
    ingress_port: int | None = None
    egress_port: int | None = None
    latency_us: int | None = None
    level: int | None = None
    queue_packets: int | None = None
    ingress_us: int | None = None
    egress_us: int | None = None
    window_bytes: int | None = None


def words_of(instructions: int) -> int:
    """Return the 32-bit words in which a hop answers a bitmap; bits that the specification leaves open take one."""
    two_words = Instruction.INGRESS_TIME | Instruction.EGRESS_TIME | Instruction.LEVEL2_PORTS
    return instructions.bit_count() + (instructions & two_words).bit_count()


def read_stack(stack: bytes, instructions: int = INSTRUCTIONS, hop_words: int = HOP_WORDS) -> tuple[Hop, ...]:
    """Read the hops of an INT stack in the order of the path, the first switch first.

    Raises ValueError if the stack does not consist of whole hops, or a hop has too few words for the instructions.
    """
    layout, positions = _layout(instructions, hop_words)
    if len(stack) % layout.size:
        raise ValueError(f"an INT stack of {len(stack)} bytes is not of hops of {layout.size}")
    words = layout.iter_unpack(stack)
    if positions != _ALL:
        words = (
            tuple(_NOT_KNOWN[n] if at is None else values[at] for n, at in enumerate(positions)) for values in words
        )
    # The last switch's answer is on top.
    return tuple([_hop(values) for values in words])[::-1]


_FIELDS: Mapping[Instruction, tuple[tuple[str, str], ...]] = {
    Instruction.NODE_ID: (("node_id", "I"),),
    Instruction.LEVEL1_PORTS: (("ingress_port", "H"), ("egress_port", "H")),
    Instruction.HOP_LATENCY: (("latency_us", "I"),),
    Instruction.QUEUE: (("queue", "I"),),
    Instruction.INGRESS_TIME: (("ingress_us", "Q"),),
    Instruction.EGRESS_TIME: (("egress_us", "Q"),),
    Instruction.LEVEL2_PORTS: (("", "8x"),),
    Instruction.UTILISATION: (("window_bytes", "I"),),
}
"""What a hop answers to each instruction: names, and formats of ``struct`` in network byte order."""

HOP_FIELDS: tuple[tuple[str, str], ...] = tuple(
    field for instruction, fields in _FIELDS.items() if INSTRUCTIONS & instruction for field in fields
)
"""The fields of a hop that answers INSTRUCTIONS, one behind the other, for readers of many stacks at once."""

HOP_PATH = struct.Struct("!" + "".join(form for _, form in HOP_FIELDS[:3]))
"""The first three fields of a hop, which tell the path: node id, ingress port, egress port."""

QUEUE_DEPTH_BITS = 24
"""Low bits of ``queue``, which hold its depth in packets; the bits above them hold its level."""

_ONES_8, _ONES_16, _ONES_24, _ONES_32, _ONES_64 = ((1 << bits) - 1 for bits in (8, 16, 24, 32, 64))

_NOT_KNOWN = (_ONES_32, _ONES_16, _ONES_16, _ONES_32, _ONES_32, _ONES_64, _ONES_64, _ONES_32)
"""Values of a hop that knows nothing, in the order of the formats."""

_Positions = tuple[int | None, ...]
"""Position of each value of a hop among those requested; None if it was not requested."""

_ALL: _Positions = tuple(range(len(_NOT_KNOWN)))


@cache
def _layout(instructions: int, hop_words: int) -> tuple[struct.Struct, _Positions]:
    """Return the format of a hop's words; words without a known meaning are skipped."""
    if hop_words < words_of(instructions) or hop_words == 0:
        raise ValueError(f"instructions {instructions:#06x} need {words_of(instructions)} words a hop, not {hop_words}")
    known, positions, asked = "", list[int | None](), 0
    for instruction, fields in _FIELDS.items():
        is_asked = bool(instructions & instruction)
        for name, form in fields:
            known += form if is_asked else ""
            if name:
                positions.append(asked if is_asked else None)
                asked += is_asked
    spare_bytes = WORD_BYTES * hop_words - struct.calcsize("!" + known)
    return struct.Struct(f"!{known}{spare_bytes}x"), tuple(positions)


def _hop(values: tuple[int, ...]) -> Hop:
    """Convert the values of a hop."""
    node_id, ingress_port, egress_port, latency_us, queue, ingress_us, egress_us, window_bytes = values
    level, queue_packets = queue >> QUEUE_DEPTH_BITS, queue & _ONES_24
    return Hop(
        None if node_id == _ONES_32 else node_id,
        None if ingress_port == _ONES_16 else ingress_port,
        None if egress_port == _ONES_16 else egress_port,
        None if latency_us == _ONES_32 else latency_us,
        None if level == _ONES_8 else level,
        None if queue_packets == _ONES_24 else queue_packets,
        None if ingress_us == _ONES_64 else ingress_us,
        None if egress_us == _ONES_64 else egress_us,
        None if window_bytes == _ONES_32 else window_bytes,
    )
