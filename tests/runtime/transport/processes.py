"""Two endpoints in one process, and what they were told."""

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from runtime.transport.endpoint import Endpoint
from runtime.transport.errors import TransportError
from runtime.transport.framing import Tag
from runtime.transport.peer import Peer

PATIENCE_S = 60.0
TOKEN = b"a token of a client"


@dataclass
class Heard:
    """What an endpoint was told, in order."""

    connections: "queue.SimpleQueue[Peer]" = field(default_factory=queue.SimpleQueue)
    messages: "queue.SimpleQueue[bytes]" = field(default_factory=queue.SimpleQueue)
    handovers: "queue.SimpleQueue[tuple[Tag, memoryview]]" = field(default_factory=queue.SimpleQueue)
    losses: "queue.SimpleQueue[TransportError]" = field(default_factory=queue.SimpleQueue)

    def connected(self, peer: Peer) -> None:
        self.connections.put(peer)

    def message(self, _: Peer, payload: memoryview) -> None:
        self.messages.put(bytes(payload))

    def handed_over(self, _: Peer, tag: Tag, memory: memoryview) -> None:
        self.handovers.put((tag, memory))

    def lost(self, _: Peer, cause: TransportError) -> None:
        self.losses.put(cause)


class Ends:
    """How a tuple ended; it must end once."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self.causes: list[TransportError | None] = []

    def __call__(self, cause: TransportError | None) -> None:
        self.causes.append(cause)
        self._ended.set()

    def wait(self) -> TransportError | None:
        assert self._ended.wait(PATIENCE_S), "the tuple has not ended"
        assert len(self.causes) == 1
        return self.causes[0]


@dataclass(frozen=True)
class Pair:
    """A server that a client is connected to, and either's view of the other."""

    server: Endpoint
    client: Endpoint
    of_server: Peer
    of_client: Peer
    server_heard: Heard
    client_heard: Heard


@contextmanager
def connected(address: str) -> Iterator[Pair]:
    """Yield a connected pair; end both."""
    server_heard, client_heard = Heard(), Heard()
    with (
        Endpoint("server", server_heard, {"client": TOKEN}.get) as server,
        Endpoint("client", client_heard) as client,
    ):
        server.start()
        client.start()
        of_client = client.connect(server.listen(address), TOKEN)
        of_server = server_heard.connections.get(timeout=PATIENCE_S)
        yield Pair(server, client, of_server, of_client, server_heard, client_heard)
