"""Addresses of controllers: HOST:PORT, with IPv6 addresses in brackets."""

import re
from collections.abc import Sequence
from ipaddress import ip_address

_HOST_PORT = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:/\[\]]+)):(?P<port>\d{1,5})", re.ASCII)
_LAST_PORT = 0xFFFF


def check_address(address: str) -> str:
    """Return an address of a controller. Raises ValueError if it is not HOST:PORT."""
    matched = _HOST_PORT.fullmatch(address) if isinstance(address, str) else None
    if matched is None or not 1 <= int(matched["port"]) <= _LAST_PORT:
        raise ValueError(f"address: expected HOST:PORT with a port from 1 to {_LAST_PORT}, got {address!r:.100}")
    return address


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
