"""The socket of a server, HOST:PORT or unix:/PATH, bound before it is made, so that what is wrong is told in words."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hostlib.addresses import socket_path
from topologies.printable import printable


def host_and_port(address: str) -> tuple[str, int]:
    """Split HOST:PORT, without the brackets of an IPv6 address."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


@contextmanager
def bound_socket(address: str, what: str) -> Iterator[socket.socket]:
    """Listen at HOST:PORT or unix:/PATH while the context lasts; port 0 becomes one that is free.

    A Unix socket whose process is gone is replaced.

    Raises:
        OSError: The address cannot be bound; the message begins with ``what``.
    """
    path = socket_path(address)
    try:
        listener = _listening(address) if path is None else _listening_at(Path(path))
    except OSError as error:
        raise OSError(f"{what}: cannot listen on {printable(address)}: {error.strerror or error}") from error
    try:
        with listener:
            yield listener
    finally:
        if path is not None:
            Path(path).unlink(missing_ok=True)


def _listening(address: str) -> socket.socket:
    family, kind, _, _, where = socket.getaddrinfo(*host_and_port(address), type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


def remove_dead_socket(path: Path) -> None:
    """Remove a socket that nobody listens at. Raises OSError where somebody does, and for what is no socket."""
    with suppress(FileNotFoundError), socket.socket(socket.AF_UNIX) as client:
        # A server that does not take connections has as many as it may have waiting: the call does not wait for it.
        client.setblocking(False)
        try:
            client.connect(os.fspath(path))
        except ConnectionRefusedError:
            if not path.is_socket():
                raise OSError("there is a file that is no socket") from None
            path.unlink()
            return
        except BlockingIOError:
            pass
        raise OSError("another server listens there")


def _listening_at(path: Path) -> socket.socket:
    remove_dead_socket(path)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener
