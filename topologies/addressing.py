"""Addresses of the fabric: NICs, switch ports, and the 5-tuples of flows."""

from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Self

UDP_PROTOCOL = 17
TCP_PROTOCOL = 6

FLOW_DESTINATION_PORT = 4791
"""UDP destination port of RoCEv2; the controller assigns it to flows without a 5-tuple."""

FIRST_SOURCE_PORT = 49152
LAST_SOURCE_PORT = 65535
"""Range of source ports that the controller assigns, the one that the kernel derives from a flow label."""

HOST_MASK = 0xFFFF_FF00
"""Part of an address that all NICs of a host have in common."""

MAX_HOSTS = 1 << 16
MAX_NICS_PER_HOST = 254
MAX_PORTS_PER_SWITCH = 509
"""P4 port numbers have 9 bits; 0 is unused, 510 is the CPU port and 511 means drop."""

_HOST_MAC_BASE = 0x02_00_00_00_00_00
_SWITCH_MAC_BASE = 0x06_00_00_00_00_00


@dataclass(frozen=True, slots=True, order=True)
class FiveTuple:
    """The header fields that identify a flow; addresses are IPv4 as integers."""

    source_address: int
    destination_address: int
    protocol: int
    source_port: int
    destination_port: int

    @property
    def reverse(self) -> Self:
        """The 5-tuple of the opposite direction, which acknowledgements have."""
        ends = self.destination_address, self.source_address
        return type(self)(*ends, self.protocol, self.destination_port, self.source_port)

    def __str__(self) -> str:
        protocol = {UDP_PROTOCOL: "udp", TCP_PROTOCOL: "tcp"}.get(self.protocol, str(self.protocol))
        return (
            f"{protocol} {IPv4Address(self.source_address)}:{self.source_port}"
            f" > {IPv4Address(self.destination_address)}:{self.destination_port}"
        )


def nic_address(host_index: int, nic_index: int) -> int:
    """Return the IPv4 address of a NIC: 10.H.H.N, with the host's index in 16 bits, and the NIC's from 1.

    Raises ValueError if an index does not fit.
    """
    if not 0 <= host_index < MAX_HOSTS:
        raise ValueError(f"host index {host_index} does not fit into 10.0.0.0/8 (at most {MAX_HOSTS:,} hosts)")
    if not 0 <= nic_index < MAX_NICS_PER_HOST:
        raise ValueError(f"NIC index {nic_index} does not fit into a /24 (at most {MAX_NICS_PER_HOST} NICs on a host)")
    return 10 << 24 | host_index << 8 | nic_index + 1


def nic_mac(host_index: int, nic_index: int) -> int:
    """Return the locally administered MAC address of a NIC."""
    return _HOST_MAC_BASE | host_index << 8 | nic_index + 1


def switch_mac(switch_index: int, port: int) -> int:
    """Return the locally administered MAC address of a switch port."""
    return _SWITCH_MAC_BASE | switch_index << 16 | port
