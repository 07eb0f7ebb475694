"""Real interfaces of a namespace, in pairs: a host's end and the fabric's."""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from tests.namespaces import Namespaces, namespaces
from tests.patience import PATIENCE_S

MTU_BYTES = 9000
LAB = "lab"
"""The namespace of all interfaces."""
_PACKET_ALL = 3  # ETH_P_ALL


@contextmanager
def cabled() -> Iterator[Namespaces]:
    """The namespace, with the pairs ``e1`` and ``f1`` to ``e3`` and ``f3``."""
    with namespaces(LAB) as made:
        # IPv6 sends frames of its own.
        made.run(
            LAB, "sh", "-c", "cd /proc/sys/net/ipv6/conf; echo 1 > all/disable_ipv6; echo 1 > default/disable_ipv6"
        )
        for port in (1, 2, 3):
            cable(made, port)
        yield made


def cable(lab: Namespaces, port: int) -> None:
    """Join a host's end and the fabric's."""
    lab.cable((LAB, f"e{port}"), (LAB, f"f{port}"))
    for name in (f"e{port}", f"f{port}"):
        lab.ip(LAB, "link", "set", name, "mtu", str(MTU_BYTES))


def packets_of(lab: Namespaces, interface: str) -> socket.socket:
    """A socket that sends and receives the frames of an interface."""
    with lab.entered(LAB):
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_PACKET_ALL))
    opened.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
    opened.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
    opened.bind((interface, _PACKET_ALL))
    opened.setblocking(False)
    return opened


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario to its end, which must come."""

    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await scenario()

    asyncio.run(bounded())
