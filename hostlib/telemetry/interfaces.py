"""Network interfaces of a host: existence, address and rate, as the system reports them."""

import fcntl
import re
import socket
import struct
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path

_ASKED = re.compile(r"(?P<name>[^\s/=@]+)(=(?P<address>[^@]*))?(@(?P<rate_gbps>.*))?")
_INTERFACES = Path("/sys/class/net")

_GET_ADDRESS = 0x8915
"""``SIOCGIFADDR`` (netdevice(7))."""
_REQUEST = struct.Struct("16s16x8x")
_ADDRESS_AT = slice(20, 24)


class InterfaceError(ValueError):
    """An interface that cannot send probes; the message names it and the remedy."""


@dataclass(frozen=True, slots=True)
class Interface:
    """A NIC that sends and receives probes."""

    name: str
    address: IPv4Address
    rate_bps: float


def find_interface(asked: str) -> Interface:
    """Find the interface named by ``NAME[=ADDRESS][@GBPS]``; the system fills in what is missing.

    Raises InterfaceError if the system does not know the interface, its address or its rate.
    """
    matched = _ASKED.fullmatch(asked)
    if matched is None:
        raise InterfaceError(f"{asked!r}: expected NAME[=ADDRESS][@GBPS]")
    name, address, rate_gbps = matched["name"], matched["address"], matched["rate_gbps"]
    names = [known for _, known in socket.if_nameindex()]
    if name not in names:
        raise InterfaceError(f"{name}: there is no such interface; there are {', '.join(names)}")
    return Interface(
        name,
        _own_address(name) if address is None else _address(name, address),
        _own_rate_bps(name) if rate_gbps is None else _rate_bps(name, rate_gbps),
    )


def _address(name: str, address: str) -> IPv4Address:
    try:
        return IPv4Address(address)
    except AddressValueError as error:
        raise InterfaceError(f"{name}: not an IPv4 address: {error}") from error


def _own_address(name: str) -> IPv4Address:
    """Return the interface's first address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            answer = fcntl.ioctl(asking, _GET_ADDRESS, _REQUEST.pack(name.encode()))
        except OSError as error:
            raise InterfaceError(f"{name}: has no IPv4 address; give it one, or name it as {name}=ADDRESS") from error
    return IPv4Address(answer[_ADDRESS_AT])


def _rate_bps(name: str, rate_gbps: str) -> float:
    try:
        rate_bps = float(rate_gbps) * 1e9
    except ValueError:
        rate_bps = 0.0
    if not 0 < rate_bps < float("inf"):
        raise InterfaceError(f"{name}: expected a rate in Gbit/s above 0 behind @, got {rate_gbps!r}")
    return rate_bps


def _own_rate_bps(name: str) -> float:
    """Return the driver's rate, in Mbit/s in its file; -1 or an error there means unknown, as without a link."""
    file = _INTERFACES / name / "speed"
    try:
        rate_mbps = int(file.read_text())
    except (OSError, ValueError):
        rate_mbps = -1
    if rate_mbps <= 0:
        raise InterfaceError(f"{name}: its rate is not known ({file}); give it as {name}@GBPS")
    return rate_mbps * 1e6
