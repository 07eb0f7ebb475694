"""Ethernet frames: header and padding, and from which ports they are sent."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from controller.links.port_states import Port
from topologies.addressing import MacAddress

ARP_TYPE = 0x0806
LLDP_TYPE = 0x88CC

_HEADER = struct.Struct("!6s6sH")
_SHORTEST_BYTES = 60
"""Without the checksum, which the port adds."""


@dataclass(frozen=True, slots=True)
class Frame:
    """An Ethernet frame without a VLAN tag."""

    destination: MacAddress
    source: MacAddress
    ether_type: int
    payload: bytes

    @property
    def octets(self) -> bytes:
        """The frame as a port sends it, without its checksum."""
        header = _HEADER.pack(self.destination.packed, self.source.packed, self.ether_type)
        return (header + self.payload).ljust(_SHORTEST_BYTES, b"\0")

    @classmethod
    def read(cls, octets: bytes) -> Self | None:
        """Return the frame that these octets are; None where they are too few, or nobody's NIC is the source."""
        if len(octets) < _HEADER.size:
            return None
        destination, source, ether_type = _HEADER.unpack_from(octets)
        sender = MacAddress(int.from_bytes(source, "big"))
        if not sender.is_of_one_nic:
            return None
        return cls(MacAddress(int.from_bytes(destination, "big")), sender, ether_type, octets[_HEADER.size :])


def by_switch(frames: Iterable[tuple[Port, bytes]]) -> dict[str, list[tuple[int, bytes]]]:
    """Return frames to be sent from ports, those of each switch together, with the numbers of its ports."""
    found: dict[str, list[tuple[int, bytes]]] = {}
    for (switch, number), octets in frames:
        found.setdefault(switch, []).append((number, octets))
    return found
