"""The other process of ``benchmarks/runtime_transport.py``: sends what it is asked for, and answers."""

import socket
import struct
import sys
import threading
from pathlib import Path

import numpy as np

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from runtime.transport.endpoint import Endpoint
from runtime.transport.errors import TransportError
from runtime.transport.framing import Tag
from runtime.transport.peer import Peer

REQUEST = struct.Struct("<cQQ")
"""What is asked for, of how many bytes, and the number of the tuple."""
TUPLE, BARE_BULK, BARE_HOPS, ECHO = b"t", b"b", b"h", b"e"
TOKEN = b"a token of the benchmark"


def content(size_bytes: int) -> np.ndarray:
    """Return what a tuple of a size contains."""
    return np.random.default_rng(size_bytes).integers(0, 256, size_bytes, np.uint8)


class Producer:
    """Serves one consumer."""

    def __init__(self, bare: socket.socket) -> None:
        self._bare = bare
        self._contents: dict[int, memoryview] = {}
        self.ended = threading.Event()
        self._echo_memory = memoryview(bytearray(4096))

    def connected(self, peer: Peer) -> None:
        """Nobody connects to a producer."""

    def message(self, peer: Peer, payload: memoryview) -> None:
        """Serve a request; a payload of another size is returned."""
        if len(payload) != REQUEST.size:
            peer.send(bytes(payload))
            return
        request, size_bytes, number = REQUEST.unpack(payload)
        if request == TUPLE:
            peer.send_tuple(Tag(number, 0, 0, 0), self._content(size_bytes), _checked)
        elif request == ECHO:
            self._echo(peer, number)
        elif request == BARE_BULK:
            self._bare.sendall(self._content(size_bytes))
        elif request == BARE_HOPS:
            memory = memoryview(bytearray(size_bytes))
            for _ in range(number):
                receive(self._bare, memory)
                self._bare.sendall(memory)

    def handed_over(self, peer: Peer, tag: Tag, memory: memoryview) -> None:
        """Answer with the first and the last bytes of what may be read now."""
        peer.send(bytes(memory[:8]) + bytes(memory[-8:]) + tag.edge.to_bytes(4))

    def lost(self, *_: object) -> None:
        """End with the consumer."""
        self.ended.set()

    def _content(self, size_bytes: int) -> memoryview:
        if size_bytes not in self._contents:
            self._contents[size_bytes] = memoryview(content(size_bytes)).cast("B")
        return self._contents[size_bytes]

    def _echo(self, peer: Peer, number: int) -> None:
        """Expect a tuple, and return it, as often as the consumer sends one."""

        def arrived(cause: TransportError | None) -> None:
            if cause is None:
                self._echo(peer, number + 1)
                peer.send_tuple(Tag(number, 1, 0, 0), self._echo_memory, _checked)

        peer.expect(Tag(number, 0, 0, 0), self._echo_memory, arrived)


def receive(connection: socket.socket, memory: memoryview) -> None:
    """Receive into memory until it is full."""
    while memory:
        count = connection.recv_into(memory)
        if count == 0:
            raise EOFError("the other process is gone")
        memory = memory[count:]


def _checked(cause: TransportError | None) -> None:
    if cause is not None:
        print(cause, file=sys.stderr)


def main() -> None:
    """Connect to the two addresses of the command line and serve until the consumer ends."""
    address, bare_address = sys.argv[1:]
    host, port = bare_address.split(":")
    with socket.create_connection((host, int(port))) as bare:
        bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        producer = Producer(bare)
        with Endpoint("producer", producer) as endpoint:
            endpoint.connect(address, TOKEN)
            while not producer.ended.is_set():
                endpoint.poll()


if __name__ == "__main__":
    main()
