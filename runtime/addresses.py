"""Sockets at addresses, which are ``unix:/PATH``, ``unix:@NAME`` or ``HOST:PORT``.

A socket with a name (unix(7), abstract) is in no folder, so nothing of it is left behind. Processes of one network
namespace find it by that.
"""

import os
import socket
import struct
from errno import EPERM
from pathlib import Path

_BACKLOG = 1024
_CREDENTIALS = struct.Struct("3i")
_OF_TCP = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000),
)
"""A peer that only falls silent is known after 30 s at least. Its kernel answers, so its process may be busy longer."""


def listening(address: str) -> socket.socket:
    """Return a socket that listens at an address; one at a path is for this user alone. Raises OSError."""
    path = _path(address)
    if path is None:
        host, port = _host_port(address)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    unlist(address)
    listener = socket.socket(socket.AF_UNIX)
    os.fchmod(listener.fileno(), 0o600)  # the path gets it; a umask would be that of all threads
    listener.bind(path)
    listener.listen(_BACKLOG)
    return listener


def unlist(address: str) -> None:
    """Remove what shows in the file system that somebody listens at an address."""
    path = _path(address)
    if path is not None and not path.startswith("\0"):
        Path(path).unlink(missing_ok=True)


def bound(listener: socket.socket, address: str) -> str:
    """Return an address with the port that a socket got which listens there."""
    if _path(address) is not None:
        return address
    return f"{address.rpartition(':')[0]}:{listener.getsockname()[1]}"


def watch_peer(sock: socket.socket) -> None:
    """Let a TCP socket send at once, and notice when its peer falls silent; others need nothing."""
    if sock.family != socket.AF_UNIX:
        for level, option, value in _OF_TCP:
            sock.setsockopt(level, option, value)


def this_machine() -> str:
    """Return what processes have in common that find each other's named sockets; empty where that is not known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/net').stat().st_ino}"
    except OSError:
        return ""


def dialled(address: str) -> socket.socket:
    """Return a socket that is connected to an address. Raises OSError, and ValueError for what is no address."""
    path = _path(address)
    if path is None:
        connected = socket.create_connection(_host_port(address))
        watch_peer(connected)
        return connected
    connected = socket.socket(socket.AF_UNIX)
    try:
        connected.connect(path)
        if path.startswith("\0"):  # anybody may listen at a name that is free
            check_user(connected)
    except OSError:
        connected.close()
        raise
    return connected


def dialling(address: str, source: str = "", source_port: int = 0) -> socket.socket:
    """Return a socket that connects to an address; over TCP it may do so still, from the address ``source`` if given.

    Several connections have one ``source_port`` if they lead elsewhere. Raises OSError and ValueError.
    """
    if _path(address) is not None:
        return dialled(address)
    host, port = _host_port(address)
    family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    connecting = socket.socket(family, kind, protocol)
    connecting.setblocking(False)
    try:
        if source or source_port:
            connecting.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            connecting.bind((source, source_port))
        connecting.connect(place)
    except BlockingIOError:
        pass
    except OSError:
        connecting.close()
        raise
    return connecting


def check_user(connected: socket.socket) -> None:
    """Raise PermissionError unless this user is at the other end of a Unix socket."""
    _, user, _ = _CREDENTIALS.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    if user != os.geteuid():
        raise PermissionError(EPERM, "another user is at the other end")


def _path(address: str) -> str | None:
    if not address.startswith("unix:"):
        return None
    path = address.removeprefix("unix:")
    return "\0" + path[1:] if path.startswith("@") else path


def _host_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"address: expected HOST:PORT or unix:/PATH, got {address!r:.200}")
    return host.strip("[]"), int(port)
