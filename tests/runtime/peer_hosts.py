"""Two hosts of this process, connected by real sockets."""

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

import numpy as np

from runtime import messages
from runtime.executor.copies import Copies
from runtime.executor.loop import Loop
from runtime.executor.peers import Peers
from runtime.lowering.resharding import Piece
from runtime.lowering.subprograms import Send
from runtime.substrates.interface import HostSettings
from runtime.transport.arena import Arena
from runtime.transport.arrays import LEAST_BYTES, ArenaArrays
from tests.patience import PATIENCE_S

T = TypeVar("T")
SECRET = "of these hosts"
ROOM_BYTES = 64 * LEAST_BYTES
ITEMS = LEAST_BYTES // 8
SEND = Send(3, 1, Piece(5, 4, (), ()), True)
TCP = ("127.0.0.1:0", "127.0.0.1:0")
"""Addresses of two hosts."""


class KnownSockets(Loop):
    """A loop that can tell which sockets it watches."""

    def __init__(self) -> None:
        super().__init__()
        self.sockets: dict[int, socket.socket] = {}

    def watch(self, sock: socket.socket, readable: Callable[[], None], writable: Callable[[], None] | None) -> None:
        self.sockets[sock.fileno()] = sock
        super().watch(sock, readable, writable)

    def forget(self, sock: socket.socket) -> None:
        self.sockets.pop(sock.fileno(), None)
        super().forget(sock)


class Host:
    """A host with a loop in a thread of its own, which takes note of what it receives."""

    def __init__(self, number: int, address: str, room_bytes: int, local_address: str = "") -> None:
        self.received: SimpleQueue[tuple[tuple[int, int, int, int], Any]] = SimpleQueue()
        self.places: dict[tuple[int, int, int, int], memoryview] = {}
        self.arrays = ArenaArrays(Arena(room_bytes))
        self.loop = KnownSockets()
        self.others: dict[int, Host] = {}
        self.steered: SimpleQueue[messages.FlowSteered] = SimpleQueue()
        settings = HostSettings(number, 1, address, "", SECRET, local_address=local_address)
        self.peers = Peers(self.loop, settings, self.arrays, Copies(self.loop), self, self.tell)
        self.thread = Thread(target=self.loop.run)
        self.thread.start()

    def receive(self, number: int, edge: int, destination: int, source: int, data: Any) -> None:
        self.received.put(((number, edge, destination, source), data))

    def place(self, number: int, edge: int, destination: int, source: int, size_bytes: int) -> memoryview | None:
        place = self.places.get((number, edge, destination, source))
        assert place is None or len(place) == size_bytes
        return place

    def lose(self, number: int, edge: int, destination: int, source: int, cause: str) -> None:
        self.received.put(((number, edge, destination, source), cause))

    def tell(self, message: Any) -> None:
        """Pass a message on, as the server does, and keep what is for that."""
        if isinstance(message, messages.FlowSteered):
            self.steered.put(message)
            return
        other = self.others.get(message.host)
        if other is not None:
            is_end = isinstance(message, messages.ConnectionEnded)
            take = other.peers.take_end if is_end else other.peers.take_returned
            other.loop.post(lambda: take(message))

    def do(self, call: Callable[[], T]) -> T:
        """What a call returns in the loop's thread."""
        done: SimpleQueue[T] = SimpleQueue()
        self.loop.post(lambda: done.put(call()))
        return done.get(timeout=PATIENCE_S)

    def send(self, execution: int, array: np.ndarray[Any, Any]) -> None:
        self.do(lambda: self.peers.send_piece(1, execution, SEND, array))

    def next(self) -> tuple[tuple[int, int, int, int], Any]:
        return self.received.get(timeout=PATIENCE_S)

    def until_returned(self) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while self.do(lambda: self.peers.lent):
            assert time.monotonic() < deadline_s

    def end(self) -> None:
        self.loop.post(self.loop.stop)
        self.thread.join()
        self.loop._wake.close()
        for watched in self.loop.sockets.values():
            watched.close()
        self.loop._woken.close()


@contextmanager
def two_hosts(
    *addresses: str, room_bytes: int = ROOM_BYTES, local_addresses: Sequence[str] = ("", "")
) -> Iterator[tuple[Host, Host]]:
    hosts = [
        Host(number, address, room_bytes, local_address)
        for number, (address, local_address) in enumerate(zip(addresses, local_addresses, strict=True))
    ]
    known = {number: host.peers.place for number, host in enumerate(hosts)}
    for host in hosts:
        host.others = dict(enumerate(hosts))
        host.peers.take_places(known)
    try:
        yield hosts[0], hosts[1]
    finally:
        for host in hosts:
            host.end()
