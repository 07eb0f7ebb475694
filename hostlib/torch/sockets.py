"""TCP connections that other code of this process owns, such as gloo's: found, marked and measured.

Nothing here keeps a connection open. Each use duplicates the owner's descriptor, sees whether it is still the
connection, and closes the duplicate at once; only the number of the descriptor is kept between uses. So the owner's
close ends the connection when the owner means it to. Descriptors are looked up in /proc, as Linux has it; elsewhere
there are no connections.
"""

import errno
import os
import socket
import stat
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address
from typing import Self

from hostlib import checks

_DESCRIPTORS = "/proc/self/fd"
_MAX_PACING_RATE = 47
"""``SO_MAX_PACING_RATE``, in bytes per second."""
_UNLIMITED = (1 << 64) - 1
_BITS = 8

_HIGHEST_LEVEL = 7
_LEVEL_SHIFT = 5
"""Class selectors are the upper three bits of the octet that holds DSCP and ECN."""

_ESTABLISHED = 1
_TCP_INFO = {
    "tcpi_state": ("=B", 0),
    "tcpi_rtt": ("=I", 68),
    "tcpi_total_retrans": ("=I", 100),
    "tcpi_bytes_received": ("=Q", 128),
    "tcpi_notsent_bytes": ("=I", 144),
    "tcpi_delivery_rate": ("=Q", 160),
    "tcpi_bytes_sent": ("=Q", 200),
    "tcpi_bytes_retrans": ("=Q", 208),
}
"""Format and offset of fields of ``struct tcp_info``, by the kernel's names. Kernels append fields and move none."""
_TCP_INFO_BYTES = 256


class ConnectionGoneError(ConnectionError):
    """A connection that was adopted is closed, or has been reset."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Both ends of a TCP connection over IPv4, this process's first."""

    address: IPv4Address
    port: int
    peer_address: IPv4Address
    peer_port: int

    def __str__(self) -> str:
        return f"{self.address}:{self.port} to {self.peer_address}:{self.peer_port}"

    @property
    def reversed(self) -> "Endpoints":
        """The same connection as the peer sees it."""
        return Endpoints(self.peer_address, self.peer_port, self.address, self.port)


def connections() -> frozenset[Endpoints]:
    """Return the established TCP connections of this process.

    IPv4-mapped connections of IPv6 sockets count as IPv4, and those over IPv6 are left out. A connection from this
    process to itself is there twice, once from each end. Raises OSError if the process can open no more descriptors.
    """
    return frozenset(endpoints for _, endpoints in _established())


class AdoptedSocket:
    """One connection that other code of this process owns. Holds no descriptor, so it does not keep it open.

    Measurements are None where the kernel does not have them. Every use raises ConnectionGoneError once the owner has
    closed the connection, or it has been reset.
    """

    def __init__(self, endpoints: Endpoints, descriptor: int) -> None:
        self.endpoints = endpoints
        self._descriptor = descriptor

    @classmethod
    def open(cls, endpoints: Endpoints) -> Self | None:
        """Adopt the connection with these ends; None if this process has none, or it is not established."""
        return cls.open_all({endpoints}).get(endpoints)

    @classmethod
    def open_all(cls, wanted: Collection[Endpoints]) -> dict[Endpoints, Self]:
        """Adopt those connections that there are, in one pass over the descriptors."""
        return {
            endpoints: cls(endpoints, descriptor) for descriptor, endpoints in _established() if endpoints in wanted
        }

    @property
    def level(self) -> int:
        """Priority level of the packets, 0 to 7: their class selector."""
        with self._duplicate() as found:
            return found.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) >> _LEVEL_SHIFT

    def set_level(self, level: int) -> None:
        """Mark packets as CS0 to CS7. Raises ValueError for any other level."""
        # The kernel keeps the ECN bits of TCP sockets as they are.
        octet = checks.integer("level", level, 0, _HIGHEST_LEVEL) << _LEVEL_SHIFT
        with self._duplicate() as found:
            found.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, octet)
            if found.family == socket.AF_INET6:
                found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, octet)

    def set_pacing_rate(self, rate_bps: float | None) -> None:
        """Limit the rate of payload and headers, in bit/s; None lifts the limit. Raises ValueError unless positive."""
        octets_per_s = _UNLIMITED
        if rate_bps is not None:
            octets_per_s = int(checks.number("rate_bps", rate_bps)) // _BITS
            if not 0 < octets_per_s < _UNLIMITED:
                raise ValueError(f"rate_bps: expected a rate of at least {_BITS} bit/s, got {checks.shown(rate_bps)}")
        with self._duplicate() as found:
            found.setsockopt(socket.SOL_SOCKET, _MAX_PACING_RATE, struct.pack("=Q", octets_per_s))

    def sent_bytes(self) -> int | None:
        """Bytes of payload that were handed to TCP since the connection opened, acknowledged or not.

        These are the bytes sent, less those sent again, and those that wait in the socket. ``tcpi_bytes_acked`` would
        lag behind, and counts the SYN of the end that connected.
        """
        info = self._info()
        sent, again, waiting = (
            _field(info, name) for name in ("tcpi_bytes_sent", "tcpi_bytes_retrans", "tcpi_notsent_bytes")
        )
        return None if sent is None or again is None or waiting is None else sent - again + waiting

    def received_bytes(self) -> int | None:
        """Bytes of payload that came in order, each counted once; the peer's FIN counts as one."""
        return _field(self._info(), "tcpi_bytes_received")

    def retransmissions(self) -> int | None:
        """Segments that were sent again."""
        return _field(self._info(), "tcpi_total_retrans")

    def delivery_rate_bps(self) -> float | None:
        """The latest rate at which payload was delivered, in bit/s, as the kernel estimates it; 0 before any."""
        octets_per_s = _field(self._info(), "tcpi_delivery_rate")
        return None if octets_per_s is None else float(octets_per_s * _BITS)

    def round_trip_s(self) -> float | None:
        """The smoothed round-trip time in seconds."""
        round_trip_us = _field(self._info(), "tcpi_rtt")
        return None if round_trip_us is None else round_trip_us / 1e6

    def close(self) -> None:
        """Give the connection up, which leaves it as it is. Each later use raises ConnectionGoneError."""
        self._descriptor = -1

    def _info(self) -> bytes:
        with self._duplicate() as found:
            return _tcp_info(found)

    def _duplicate(self) -> socket.socket:
        found = _duplicate(self._descriptor)
        if found is not None:
            if _endpoints(found) == self.endpoints:
                return found
            found.close()
        raise ConnectionGoneError(f"{self.endpoints}: the connection is gone")


def _established() -> Iterator[tuple[int, Endpoints]]:
    try:
        with os.scandir(_DESCRIPTORS) as entries:
            descriptors = [int(entry.name) for entry in entries]
    except FileNotFoundError:
        return
    for descriptor in descriptors:
        found = _duplicate(descriptor)
        if found is None:
            continue
        with found:
            endpoints = _endpoints(found)
            established = endpoints is not None and _field(_tcp_info(found), "tcpi_state") == _ESTABLISHED
        if endpoints is not None and established:
            yield descriptor, endpoints


def _duplicate(descriptor: int) -> socket.socket | None:
    """Duplicate the descriptor of a socket; None if it is something else, or closed by now."""
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return None
        duplicate = os.dup(descriptor)
    except OSError as error:
        if error.errno == errno.EBADF:
            return None
        raise
    try:
        # Unless it is told that the socket is non-blocking, Python makes it so where the process has a default timeout,
        # and that would be the owner's socket too.
        return socket.socket(type=socket.SOCK_STREAM | socket.SOCK_NONBLOCK, fileno=duplicate)
    except OSError:  # by now the number stands for something else
        os.close(duplicate)
        return None


def _endpoints(found: socket.socket) -> Endpoints | None:
    """Return the ends of a TCP connection over IPv4; None for any other socket."""
    if found.proto != socket.IPPROTO_TCP or found.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    if found.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) != socket.SOCK_STREAM:
        return None
    try:
        own, peer = found.getsockname(), found.getpeername()
    except OSError:  # it listens, connects, or has been reset
        return None
    address, peer_address = _ipv4(own[0]), _ipv4(peer[0])
    return None if address is None or peer_address is None else Endpoints(address, own[1], peer_address, peer[1])


def _ipv4(address: str) -> IPv4Address | None:
    parsed = ip_address(address)
    return parsed if isinstance(parsed, IPv4Address) else parsed.ipv4_mapped


def _tcp_info(found: socket.socket) -> bytes:
    return found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)


def _field(info: bytes, name: str) -> int | None:
    """Return a field of ``struct tcp_info``; None if the kernel's is too short to have it."""
    layout, offset = _TCP_INFO[name]
    if len(info) < offset + struct.calcsize(layout):
        return None
    value: int
    (value,) = struct.unpack_from(layout, info, offset)
    return value
