"""BPF programs that recognise probes to an address: one for packet sockets, one for a device's ingress.

Both accept UDP or TCP over IPv4 without options to the address, with INT announced by the DSCP and our mark at the end
of the packet. (ICMP errors copy the DSCP and the end of the probe.) The programs are small enough to be written as
instructions; see ``bpf_common.h``, ``filter.h`` and ``bpf.h`` of Linux.
"""

import struct
from ipaddress import IPv4Address

from hostlib.telemetry.probes import IPV4_WITHOUT_OPTIONS, MAGIC, MARK_BYTES
from hostlib.wire.int_md import INT_BIT, TCP_PROTOCOL, UDP_PROTOCOL

_WORD, _HALF, _BYTE = 0x00, 0x08, 0x10
_LOAD, _LOAD_ABSOLUTE, _LOAD_INDIRECT = 0x00, 0x20, 0x40
_JUMP_EQUAL, _JUMP_ANY_BIT = 0x15, 0x45
_SUBTRACT, _RETURN, _TO_INDEX = 0x14, 0x06, 0x07

_IPV4 = -0x100000 & 0xFFFF_FFFF
"""Offsets from here on count from the IPv4 header, wherever the packet begins (``SKF_NET_OFF``)."""

_INT_ANNOUNCED = INT_BIT << 2
_DSCP, _LENGTH, _PROTOCOL, _DESTINATION = 1, 2, 9, 16
_MAGIC_WORD = int.from_bytes(MAGIC, "big")

_CLASSIC = struct.Struct("=HBBI")
_EXTENDED = struct.Struct("=BBhI")
INSTRUCTION_BYTES = _CLASSIC.size
"""Size of an instruction in either form."""

_WHOLE = 0xFFFF_FFFF

_EXTENDED_MOVE, _EXTENDED_COPY, _EXTENDED_SUBTRACT = 0xB7, 0xBF, 0x17
_EXTENDED_JUMP, _EXTENDED_EXIT = 0x05, 0x95
_EXTENDED_JUMP_EQUAL, _EXTENDED_JUMP_NOT_EQUAL, _EXTENDED_JUMP_ANY_BIT = 0x16, 0x56, 0x45
_RESULT, _ARGUMENT, _PACKET, _INDEX = 0, 1, 6, 7
"""Registers: result of loads and of the program, its argument, the packet for loads, and our index."""

_DROP, _NEXT_PROGRAM = 2, _WHOLE
"""Verdicts on a packet (``TCX_DROP``, ``TCX_NEXT``)."""


def socket_filter(address: IPv4Address) -> bytes:
    """Classic BPF: a packet socket receives probes to this address, whole, and nothing else."""
    instructions = [
        (_LOAD | _BYTE | _LOAD_ABSOLUTE, 0, 0, _IPV4),
        (_JUMP_EQUAL, 0, 13, IPV4_WITHOUT_OPTIONS),
        (_LOAD | _BYTE | _LOAD_ABSOLUTE, 0, 0, _IPV4 + _DSCP),
        (_JUMP_ANY_BIT, 0, 11, _INT_ANNOUNCED),
        (_LOAD | _BYTE | _LOAD_ABSOLUTE, 0, 0, _IPV4 + _PROTOCOL),
        (_JUMP_EQUAL, 1, 0, UDP_PROTOCOL),
        (_JUMP_EQUAL, 0, 8, TCP_PROTOCOL),
        (_LOAD | _WORD | _LOAD_ABSOLUTE, 0, 0, _IPV4 + _DESTINATION),
        (_JUMP_EQUAL, 0, 6, int(address)),
        (_LOAD | _HALF | _LOAD_ABSOLUTE, 0, 0, _IPV4 + _LENGTH),
        (_SUBTRACT, 0, 0, MARK_BYTES),
        (_TO_INDEX, 0, 0, 0),
        (_LOAD | _WORD | _LOAD_INDIRECT, 0, 0, _IPV4),
        (_JUMP_EQUAL, 0, 1, _MAGIC_WORD),
        (_RETURN, 0, 0, _WHOLE),
        (_RETURN, 0, 0, 0),
    ]
    return b"".join(_CLASSIC.pack(*instruction) for instruction in instructions)


def device_program(address: IPv4Address) -> bytes:
    """Return an eBPF program for a device's ingress: drops probes to this address and passes everything else."""
    instructions = [
        (_EXTENDED_COPY, _PACKET | _ARGUMENT << 4, 0, 0),
        (_LOAD | _BYTE | _LOAD_ABSOLUTE, 0, 0, _IPV4),
        (_EXTENDED_JUMP_NOT_EQUAL, _RESULT, 15, IPV4_WITHOUT_OPTIONS),
        (_LOAD | _BYTE | _LOAD_ABSOLUTE, 0, 0, _IPV4 + _DSCP),
        (_EXTENDED_JUMP_ANY_BIT, _RESULT, 1, _INT_ANNOUNCED),
        (_EXTENDED_JUMP, 0, 12, 0),
        (_LOAD | _BYTE | _LOAD_ABSOLUTE, 0, 0, _IPV4 + _PROTOCOL),
        (_EXTENDED_JUMP_EQUAL, _RESULT, 1, UDP_PROTOCOL),
        (_EXTENDED_JUMP_NOT_EQUAL, _RESULT, 9, TCP_PROTOCOL),
        (_LOAD | _WORD | _LOAD_ABSOLUTE, 0, 0, _IPV4 + _DESTINATION),
        (_EXTENDED_JUMP_NOT_EQUAL, _RESULT, 7, int(address)),
        (_LOAD | _HALF | _LOAD_ABSOLUTE, 0, 0, _IPV4 + _LENGTH),
        (_EXTENDED_SUBTRACT, _RESULT, 0, MARK_BYTES),
        (_EXTENDED_COPY, _INDEX | _RESULT << 4, 0, 0),
        (_LOAD | _WORD | _LOAD_INDIRECT, _INDEX << 4, 0, _IPV4),
        (_EXTENDED_JUMP_NOT_EQUAL, _RESULT, 2, _MAGIC_WORD),
        (_EXTENDED_MOVE, _RESULT, 0, _DROP),
        (_EXTENDED_EXIT, 0, 0, 0),
        (_EXTENDED_MOVE, _RESULT, 0, _NEXT_PROGRAM),
        (_EXTENDED_EXIT, 0, 0, 0),
    ]
    return b"".join(_EXTENDED.pack(*instruction) for instruction in instructions)
