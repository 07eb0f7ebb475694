"""LLDP packets (IEEE 802.1AB): who sends at a port, in a list of types, lengths and values."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from controller.discovery.frames import LLDP_TYPE, Frame
from topologies.addressing import MacAddress
from topologies.printable import printable

NEAREST_BRIDGE = MacAddress(0x01_80_C2_00_00_0E)
"""The group address that no switch forwards."""

_END, _CHASSIS_ID, _PORT_ID, _TIME_TO_LIVE = range(4)
_SYSTEM_NAME, _ORGANISATION = 5, 127
_MAC_OF_CHASSIS, _MAC_OF_PORT, _LOCAL_NAME = 4, 3, 7
_MAX_VALUE_BYTES = 255
_MAX_TEXT = 64
"""Characters of a text of a host that are kept."""
_MAX_VALUES = 64


@dataclass(frozen=True, slots=True)
class LldpPacket:
    """What a port says of itself; the texts of others are short and printable.

    ``signed`` is the value that our own packets have, and empty in others. ``port_mac`` is the port's identity where
    that is a MAC.
    """

    chassis: str
    port: str
    time_to_live_s: int
    system: str = ""
    port_mac: MacAddress | None = None
    signed: bytes = b""

    def frame(self, source: MacAddress) -> bytes:
        """Return a packet of a switch in a frame; names that are too long are cut off."""
        values = (
            (_CHASSIS_ID, bytes((_LOCAL_NAME,)) + _cut(self.chassis)),
            (_PORT_ID, bytes((_LOCAL_NAME,)) + _cut(self.port)),
            (_TIME_TO_LIVE, self.time_to_live_s.to_bytes(2, "big")),
            (_SYSTEM_NAME, _cut(self.system)),
            (_ORGANISATION, OWN_VALUE + self.signed),
            (_END, b""),
        )
        payload = b"".join((kind << 9 | len(value)).to_bytes(2, "big") + value for kind, value in values)
        return Frame(NEAREST_BRIDGE, source, LLDP_TYPE, payload).octets

    @classmethod
    def read(cls, frame: Frame) -> Self | None:
        """Return the packet in a frame; None where it lacks an obligatory value, or one does not fit."""
        if frame.ether_type != LLDP_TYPE:
            return None
        values = list(_values(frame.payload))
        if [kind for kind, _ in values[:3]] != [_CHASSIS_ID, _PORT_ID, _TIME_TO_LIVE]:
            return None
        (_, chassis), (_, port), (_, time_to_live), *others = values
        if len(chassis) < 2 or len(port) < 2 or len(time_to_live) < 2:
            return None
        own = [value for kind, value in others if kind == _ORGANISATION and value.startswith(OWN_VALUE)]
        names = [value for kind, value in others if kind == _SYSTEM_NAME]
        return cls(
            _identity(chassis, _MAC_OF_CHASSIS),
            _identity(port, _MAC_OF_PORT),
            int.from_bytes(time_to_live[:2], "big"),
            _text(names[0]) if names else "",
            MacAddress(int.from_bytes(port[1:], "big")) if _is_mac(port, _MAC_OF_PORT) else None,
            own[0][len(OWN_VALUE) :] if own else b"",
        )


OWN_VALUE = b"\x02TY\x01"
"""Begins our signed value: an identifier that is locally administered, and the kind of value."""


def _values(payload: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield types and values up to the end; nothing more from one on that does not fit."""
    place = 0
    for _ in range(_MAX_VALUES):
        if place + 2 > len(payload):
            return
        head = int.from_bytes(payload[place : place + 2], "big")
        kind, length = head >> 9, head & 0x1FF
        place += 2 + length
        if kind == _END or place > len(payload):
            return
        yield kind, payload[place - length : place]


def _identity(value: bytes, kind_of_mac: int) -> str:
    if _is_mac(value, kind_of_mac):
        return value[1:].hex(":")
    return _text(value[1:])


def _is_mac(value: bytes, kind_of_mac: int) -> bool:
    return value[0] == kind_of_mac and len(value) == 7


def _text(value: bytes) -> str:
    return printable(value.decode("utf-8", "replace").strip("\0 "), _MAX_TEXT)


def _cut(name: str) -> bytes:
    return name.encode()[: _MAX_VALUE_BYTES - 1]
