"""Ports for servers that are told theirs before they listen."""

import random
import socket
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_NUM_PORTS = 12_000


def free_port() -> int:
    """Return a port that is free, and that the kernel gives to no connection meanwhile, on loopback."""
    first = int(_RANGE.read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(first - _NUM_PORTS, first)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
