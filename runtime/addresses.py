"""Sockets at addresses, which are ``unix:/PATH`` or ``HOST:PORT``."""

import os
import socket
from contextlib import suppress
from pathlib import Path

_BACKLOG = 1024


def listening(address: str) -> socket.socket:
    """Return a socket that listens at an address; one at a path is for this user alone. Raises OSError."""
    path = _path(address)
    if path is None:
        return socket.create_server(_host_port(address), backlog=_BACKLOG)
    with suppress(FileNotFoundError):
        Path(path).unlink()
    listener = socket.socket(socket.AF_UNIX)
    os.fchmod(listener.fileno(), 0o600)  # the path gets it; a umask would be that of all threads
    listener.bind(path)
    listener.listen(_BACKLOG)
    return listener


def dialled(address: str) -> socket.socket:
    """Return a socket that is connected to an address. Raises OSError, and ValueError for what is no address."""
    path = _path(address)
    if path is None:
        connected = socket.create_connection(_host_port(address))
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connected
    connected = socket.socket(socket.AF_UNIX)
    try:
        connected.connect(path)
    except OSError:
        connected.close()
        raise
    return connected


def dialling(address: str, source: str = "") -> socket.socket:
    """Return a socket that connects to an address; over TCP it may do so still, from the address ``source`` if given.

    Raises OSError and ValueError.
    """
    if _path(address) is not None:
        return dialled(address)
    host, port = _host_port(address)
    family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    connecting = socket.socket(family, kind, protocol)
    connecting.setblocking(False)
    try:
        if source:
            connecting.bind((source, 0))
        connecting.connect(place)
    except BlockingIOError:
        pass
    except OSError:
        connecting.close()
        raise
    return connecting


def _path(address: str) -> str | None:
    return address.removeprefix("unix:") if address.startswith("unix:") else None


def _host_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"address: expected HOST:PORT or unix:/PATH, got {address!r:.200}")
    return host.strip("[]"), int(port)
