"""Addresses of a fabric: IPv4 and MAC addresses, subnets, the 5-tuples of flows, and the addresses of regular fabrics.

Fabrics speak IPv4. IPv6 addresses are refused by name; their class would stand beside ``Address``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import NamedTuple, Self

UDP_PROTOCOL = 17
TCP_PROTOCOL = 6

FLOW_DESTINATION_PORT = 4791
"""UDP destination port of RoCEv2; the controller assigns it to flows without a 5-tuple that do not say they are TCP."""

FIRST_SOURCE_PORT = 49152
LAST_SOURCE_PORT = 65535
"""Range of source ports that the controller assigns, the one that the kernel derives from a flow label."""

MAX_HOSTS = 1 << 16
MAX_NICS_PER_HOST = 254
MAX_PORTS_PER_SWITCH = 509
"""P4 port numbers have 9 bits; 0 is unused, 510 is the CPU port and 511 means drop."""

_MAC = re.compile(r"[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}")
BROADCAST_MAC = 0xFF_FF_FF_FF_FF_FF
_HOST_MAC_BASE = 0x02_00_00_00_00_00
_SWITCH_MAC_BASE = 0x06_00_00_00_00_00


class Service(NamedTuple):
    """What a flow leads to at its destination."""

    protocol: int
    port: int


ROCE = Service(UDP_PROTOCOL, FLOW_DESTINATION_PORT)


class Address(int):
    """An IPv4 address: hashed and compared as an integer, shown with dots.

    >>> Address.parse("10.0.0.1")
    Address('10.0.0.1')
    """

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an address. Raises ValueError where the text is none, or one of IPv6."""
        try:
            return cls(IPv4Address(text))
        except AddressValueError:
            kind = "IPv6 is not supported" if _is_ipv6(text) else "expected an IPv4 address"
            raise ValueError(f"{kind}: {text!r}") from None

    @property
    def packed(self) -> bytes:
        """Its four octets, as headers have them."""
        return self.to_bytes(4, "big")

    def __str__(self) -> str:
        return str(IPv4Address(int(self)))

    def __repr__(self) -> str:
        return f"Address('{self}')"


class MacAddress(int):
    """A MAC address: hashed and compared as an integer, shown as six pairs of digits.

    >>> str(MacAddress.parse("02:00:00:00:0A:01"))
    '02:00:00:00:0a:01'
    """

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an address with colons or hyphens. Raises ValueError where the text is none, or not that of one NIC."""
        match = _MAC.fullmatch(text)
        if match is None:
            raise ValueError(f"expected a MAC address like 02:00:00:00:00:01: {text!r}")
        found = cls(int(text.replace(match[1], ""), 16))
        if not found.is_of_one_nic:
            raise ValueError(f"expected the MAC address of one NIC: {text!r}")
        return found

    @property
    def is_of_one_nic(self) -> bool:
        """Whether it is neither all zeros nor that of a group of NICs."""
        return bool(self) and not self >> 40 & 1

    @property
    def packed(self) -> bytes:
        """Its six octets, as headers have them."""
        return self.to_bytes(6, "big")

    def __str__(self) -> str:
        return self.packed.hex(":")

    def __repr__(self) -> str:
        return f"MacAddress('{self}')"


@dataclass(frozen=True, order=True)
class Prefix:
    """The addresses that share their first ``length`` bits with ``address``, whose other bits are 0."""

    address: Address
    length: int

    @classmethod
    def around(cls, address: Address, length: int) -> Self:
        """Return the prefix of this length that an address is in."""
        return cls(Address(address & _mask(length)), length)

    @cached_property
    def mask(self) -> int:
        """The bits that count, as an integer of 32 bits."""
        return _mask(self.length)

    def __contains__(self, address: Address) -> bool:
        return address & self.mask == self.address

    def overlaps(self, other: Self) -> bool:
        """Return whether some address is in both."""
        return self.address in other or other.address in self

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"


def address_and_length(text: str, shortest: int) -> tuple[Address, int]:
    """Read an address and the length of its subnet's prefix, as ``192.168.7.11/26``.

    Raises ValueError where the text is none, or the prefix has fewer bits than ``shortest`` or more than 32.
    """
    address, slash, length = text.partition("/")
    if not slash:
        raise ValueError("expected an address with the length of its subnet's prefix, like 192.168.7.11/26")
    parsed = Address.parse(address)
    if not (length.isdecimal() and len(length) <= 2 and shortest <= int(length) <= 32):
        raise ValueError(f"expected a prefix length from {shortest} to 32 behind the slash")
    return parsed, int(length)


_FIELD_BITS = 32, 32, 8, 16, 16
"""Of the fields of a 5-tuple, in order."""


@dataclass(frozen=True, slots=True, order=True)
class FiveTuple:
    """The header fields that identify a flow."""

    source_address: Address
    destination_address: Address
    protocol: int
    source_port: int
    destination_port: int

    @classmethod
    def of_numbers(cls, numbers: Sequence[int]) -> Self:
        """Return the 5-tuple of these fields, in order.

        Raises ValueError where there are not five, or one is no integer that fits into its field.
        """
        for name, bits, number in zip(cls.__slots__, _FIELD_BITS, numbers, strict=True):
            if not isinstance(number, int) or not 0 <= number < 1 << bits:
                raise ValueError(f"expected {name} from 0 to {(1 << bits) - 1}, not {number!r:.40}")
        source, destination, *others = numbers
        return cls(Address(source), Address(destination), *others)

    @property
    def service(self) -> Service:
        """To what it leads."""
        return Service(self.protocol, self.destination_port)

    @property
    def reverse(self) -> Self:
        """The 5-tuple of the opposite direction, which acknowledgements have."""
        ends = self.destination_address, self.source_address
        return type(self)(*ends, self.protocol, self.destination_port, self.source_port)

    def __str__(self) -> str:
        protocol = {UDP_PROTOCOL: "udp", TCP_PROTOCOL: "tcp"}.get(self.protocol, str(self.protocol))
        return (
            f"{protocol} {self.source_address}:{self.source_port} > {self.destination_address}:{self.destination_port}"
        )


@dataclass(frozen=True, slots=True)
class Interface:
    """What a host calls a NIC, its address there, the length of its subnet's prefix, and its MAC.

    Where the MAC is None, ARP tells it.
    """

    name: str
    address: Address
    prefix_length: int
    mac: MacAddress | None

    @property
    def subnet(self) -> Prefix:
        """The subnet that the address is in."""
        return Prefix.around(self.address, self.prefix_length)


REGULAR_PREFIX_LENGTH = 24
"""Each host of a regular fabric has a subnet of its own."""


def regular_interface(host_index: int, nic_index: int) -> Interface:
    """Return the NIC ``eth<n>`` of a regular fabric, 10.H.H.N, with the host's index in 16 bits, and the NIC's from 1.

    Its MAC is locally administered. Raises ValueError if an index does not fit.
    """
    if not 0 <= host_index < MAX_HOSTS:
        raise ValueError(f"host index {host_index} does not fit into 10.0.0.0/8 (at most {MAX_HOSTS:,} hosts)")
    if not 0 <= nic_index < MAX_NICS_PER_HOST:
        raise ValueError(f"NIC index {nic_index} does not fit into a /24 (at most {MAX_NICS_PER_HOST} NICs on a host)")
    number = host_index << 8 | nic_index + 1
    address = Address(10 << 24 | number)
    return Interface(f"eth{nic_index}", address, REGULAR_PREFIX_LENGTH, MacAddress(_HOST_MAC_BASE | number))


def switch_mac(switch_index: int, port: int) -> MacAddress:
    """Return the locally administered MAC address of a switch port."""
    return MacAddress(_SWITCH_MAC_BASE | switch_index << 16 | port)


def _mask(length: int) -> int:
    return 0xFFFF_FFFF << 32 - length & 0xFFFF_FFFF


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True
