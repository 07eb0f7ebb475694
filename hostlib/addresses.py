"""Addresses of servers: HOST:PORT, with IPv6 addresses in brackets, or unix:/PATH, a Unix socket."""

import re
from collections.abc import Sequence
from ipaddress import ip_address

_HOST_PORT = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:/\[\]]+)):(?P<port>\d{1,5})", re.ASCII)
_LAST_PORT = 0xFFFF
_UNIX = "unix:"
_PATH = re.compile(r"/[!-~]*")
_NOT_IN_PATHS = frozenset("%?#")
"""gRPC reads addresses as URIs, in which %, ? and # mean something else."""
_MOST_PATH_BYTES = 107
"""What Linux takes as the path of a Unix socket."""


def check_host_port(address: str, first_port: int = 1) -> str:
    """Return an address that is HOST:PORT. Raises ValueError, whose message names neither field nor address."""
    matched = _HOST_PORT.fullmatch(address) if isinstance(address, str) else None
    if matched is None or not first_port <= int(matched["port"]) <= _LAST_PORT:
        raise ValueError(f"expected HOST:PORT with a port from {first_port} to {_LAST_PORT}")
    return address


def check_server(address: str, first_port: int = 1) -> str:
    """Return an address that is HOST:PORT or unix:/PATH.

    Raises ValueError, whose message names neither field nor address.
    """
    path = socket_path(address)
    if path is None:
        try:
            return check_host_port(address, first_port)
        except ValueError as error:
            raise ValueError(f"{error}, or unix:/PATH") from None
    if not _PATH.fullmatch(path) or not _NOT_IN_PATHS.isdisjoint(path):
        raise ValueError("expected an absolute path after unix:, of ASCII characters without spaces, %, ? and #")
    if len(path) > _MOST_PATH_BYTES:
        raise ValueError(f"expected a path of at most {_MOST_PATH_BYTES} bytes after unix:, not {len(path)}")
    return address


def check_address(address: str) -> str:
    """Return an address of a controller. Raises ValueError if it is neither HOST:PORT nor unix:/PATH."""
    try:
        return check_server(address)
    except ValueError as error:
        raise ValueError(f"address: {error}, got {address!r:.200}") from None


def listed_addresses(text: str) -> tuple[str, ...]:
    """Return the addresses in a text that has commas between them, such as ``TRAINYARD_CONTROLLER``.

    Raises ValueError as ``check_address`` does.
    """
    return tuple(check_address(part.strip()) for part in text.split(",") if part.strip())


def unique_addresses(address: str | Sequence[str]) -> tuple[str, ...]:
    """Return one or several addresses, each once. Raises ValueError if there is none, and as ``check_address``."""
    addresses = (address,) if isinstance(address, str) else tuple(dict.fromkeys(address))
    if not addresses:
        raise ValueError("address: expected HOST:PORT or unix:/PATH, or a list of them")
    return tuple(check_address(each) for each in addresses)


def socket_path(address: str) -> str | None:
    """Return the path in the address of a Unix socket; None for any other address."""
    return address.removeprefix(_UNIX) if isinstance(address, str) and address.startswith(_UNIX) else None


def is_local(address: str) -> bool:
    """Return whether nothing that is sent to an address leaves this machine."""
    if socket_path(address) is not None:
        return True
    matched = _HOST_PORT.fullmatch(address)
    host = "" if matched is None else matched["ipv6"] or matched["host"]
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
