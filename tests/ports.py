"""Ports for servers that are told theirs before they listen, or that listen at theirs again."""

import socket


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody else gets while this process lives.

    The kernel gives it to no connection, and to no other socket that asks for any port, of this process or another.
    What sets SO_REUSEADDR, as servers do, can bind it, and sockets without it cannot.
    """
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    port: int = kept.getsockname()[1]
    kept.detach()  # it stays open
    return port
