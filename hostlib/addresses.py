"""Addresses of servers: HOST:PORT, with IPv6 addresses in brackets."""

import re
from collections.abc import Sequence
from ipaddress import ip_address

_HOST_PORT = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:/\[\]]+)):(?P<port>\d{1,5})", re.ASCII)
_LAST_PORT = 0xFFFF


def check_host_port(address: str, first_port: int = 1) -> str:
    """Return an address that is HOST:PORT. Raises ValueError, whose message names neither field nor address."""
    matched = _HOST_PORT.fullmatch(address) if isinstance(address, str) else None
    if matched is None or not first_port <= int(matched["port"]) <= _LAST_PORT:
        raise ValueError(f"expected HOST:PORT with a port from {first_port} to {_LAST_PORT}")
    return address


def check_address(address: str) -> str:
    """Return an address of a controller. Raises ValueError if it is not HOST:PORT."""
    try:
        return check_host_port(address)
    except ValueError as error:
        raise ValueError(f"address: {error}, got {address!r:.100}") from None


def unique_addresses(address: str | Sequence[str]) -> tuple[str, ...]:
    """Return one or several addresses, each once. Raises ValueError if there is none, or one is not HOST:PORT."""
    addresses = (address,) if isinstance(address, str) else tuple(dict.fromkeys(address))
    if not addresses:
        raise ValueError("address: expected HOST:PORT, or a list of them")
    return tuple(check_address(each) for each in addresses)


def is_loopback(address: str) -> bool:
    """Return whether packets to an address never leave this machine."""
    matched = _HOST_PORT.fullmatch(address)
    host = "" if matched is None else matched["ipv6"] or matched["host"]
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
