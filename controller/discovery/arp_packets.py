"""ARP packets for IPv4 on Ethernet (RFC 826)."""

import struct
from dataclasses import dataclass
from typing import Self

from controller.discovery.frames import ARP_TYPE, Frame
from topologies.addressing import Address, MacAddress

_ETHERNET, _IPV4 = 1, 0x0800
_REQUEST, _REPLY = 1, 2
_PACKET = struct.Struct("!HHBBH6s4s6s4s")

NOBODY = Address(0)
"""The sender of a probe for an address that a host would like to have (RFC 5227)."""


@dataclass(frozen=True, slots=True)
class ArpPacket:
    """A request or a reply; the target's MAC is 0 in a request."""

    is_reply: bool
    sender_mac: MacAddress
    sender: Address
    target_mac: MacAddress
    target: Address

    def frame(self, destination: int) -> bytes:
        """Return the packet in a frame from its sender."""
        operation = _REPLY if self.is_reply else _REQUEST
        ends = self.sender_mac.packed, self.sender.packed, self.target_mac.packed, self.target.packed
        payload = _PACKET.pack(_ETHERNET, _IPV4, 6, 4, operation, *ends)
        return Frame(MacAddress(destination), self.sender_mac, ARP_TYPE, payload).octets

    @classmethod
    def read(cls, frame: Frame) -> Self | None:
        """Return the packet in a frame; None where there is none, or its sender is not the frame's."""
        if frame.ether_type != ARP_TYPE or len(frame.payload) < _PACKET.size:
            return None
        hardware, protocol, mac_bytes, address_bytes, operation, *ends = _PACKET.unpack_from(frame.payload)
        if (hardware, protocol, mac_bytes, address_bytes) != (_ETHERNET, _IPV4, 6, 4):
            return None
        sender_mac, sender, target_mac, target = (int.from_bytes(each, "big") for each in ends)
        # A frame's source is the MAC of one NIC.
        if operation not in (_REQUEST, _REPLY) or sender_mac != frame.source:
            return None
        return cls(operation == _REPLY, frame.source, Address(sender), MacAddress(target_mac), Address(target))
