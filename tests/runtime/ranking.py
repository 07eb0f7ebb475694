"""A real controller beside a runtime, in a thread of its own, and what hosts know of the levels at which they send."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import runtime as rt
from controller.clock import WallClock
from tests.hostlib.served import Served, served
from tests.patience import PATIENCE_S
from topologies.steering import Steering

MOST_SOCKETS = 32


@contextmanager
def controller(address: str = "127.0.0.1:0", steering: Steering = Steering.RULE) -> Iterator[Served]:
    """A controller that listens at an address; its switches are made up."""
    started: SimpleQueue[Served] = SimpleQueue()
    loop = asyncio.new_event_loop()
    over = asyncio.Event()

    async def serve() -> None:
        async with served(address, clock=WallClock(), steering=steering) as made:
            started.put(made)
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        yield started.get(timeout=PATIENCE_S)
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


@rt.function(library="numpy", outputs=lambda _: rt.ArraySpec((MOST_SOCKETS, 2), "int64"))
def opened_sockets(_x: Any) -> Any:
    """Return port and level of the connections that this host has opened over the network, and -1 for the rest."""
    import os
    import socket
    from contextlib import suppress
    from pathlib import Path

    import numpy

    listening, found = set(), []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError), socket.socket(fileno=os.dup(int(each.name))) as sock:
            if sock.family == socket.AF_INET:
                if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    listening.add(sock.getsockname()[1])
                else:
                    sock.getpeername()
                    found.append((sock.getsockname()[1], sock.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) >> 5))
    opened = [(port, level) for port, level in found if port not in listening]
    return numpy.array((opened + [(-1, -1)] * 32)[:32])


def until(holds: Callable[[], Any]) -> Any:
    """Return what a condition returns once it holds."""
    import time

    end_s = time.monotonic() + PATIENCE_S
    while not (found := holds()):
        assert time.monotonic() < end_s
        time.sleep(0.01)
    return found
