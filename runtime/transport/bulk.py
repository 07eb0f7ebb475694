"""The connection for bulk of two processes, whose threads block.

A tuple is received straight into the memory that its consumer has named, by one call where the kernel allows it. What
waits to be sent is sent by one call; on one host it is copied into the consumer's memory instead, and only a word of it
is sent.
"""

import contextlib
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from runtime.transport.errors import PeerLostError
from runtime.transport.framing import HEADER_BYTES, NO_TAG, Kind, Tag, bulk_header, header
from runtime.transport.rendezvous import Ended, end
from runtime.transport.shared_memory import copy

_MOST_BATCHED = 256
_NOTHING = memoryview(b"")


@dataclass(frozen=True)
class Transfer:
    """What the connection for bulk sends: a frame, and of TUPLE the payload; of PLACED the copy that comes before."""

    kind: Kind
    tag: Tag = NO_TAG
    payload: memoryview = _NOTHING
    destination: memoryview | None = None
    ended: Ended | None = None


class BulkStream:
    """The connection for bulk of one peer, and its two threads, which run until it is closed.

    ``place_of`` says into which memory a tuple is to be received, and ``arrived`` is told of every frame that is
    complete; both run in the thread that receives. ``failed`` is told once, by either thread, why it ends.
    """

    def __init__(
        self,
        connection: socket.socket,
        place_of: Callable[[Tag, int], memoryview],
        arrived: Callable[[Kind, Tag], None],
        failed: Callable[[Exception], None],
        transfers: "queue.SimpleQueue[Transfer | None]",
        name: str,
    ) -> None:
        connection.setblocking(True)
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connection
        self._place_of, self._arrived, self._failed = place_of, arrived, failed
        self._transfers = transfers
        self._threads = [
            threading.Thread(target=work, name=f"bulk {word} {name}", daemon=True)
            for work, word in ((self._receive, "from"), (self._send, "to"))
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End the connection, and both threads; no memory is touched after that."""
        with contextlib.suppress(OSError):  # the peer may have ended it already
            self._socket.shutdown(socket.SHUT_RDWR)
        self._transfers.put(None)
        for thread in self._threads:
            thread.join()
        self._socket.close()

    def _receive(self) -> None:
        try:
            received = bytearray(HEADER_BYTES)
            while True:
                self._receive_into(memoryview(received))
                kind, tag, size_bytes = bulk_header(received)
                if kind is Kind.TUPLE:
                    self._receive_into(self._place_of(tag, size_bytes))
                self._arrived(kind, tag)
        except Exception as error:
            self._failed(error)

    def _receive_into(self, memory: memoryview) -> None:
        while memory:
            count = self._socket.recv_into(memory, 0, socket.MSG_WAITALL)
            if count == 0:
                raise EOFError("it ended the connection")
            memory = memory[count:]

    def _send(self) -> None:
        while self._send_next():
            pass

    def _send_next(self) -> bool:
        """Send what waits, or what comes next; return whether more may come."""
        transfer = self._transfers.get()
        if transfer is None:
            return False
        batch = [transfer, *self._waiting()]
        cause = None
        try:
            self._send_batch(batch)
        except Exception as error:
            cause = PeerLostError(f"it was not sent: {error}")
            self._failed(error)
        end([each.ended for each in batch if each.ended], cause)
        return cause is None

    def _waiting(self) -> Iterator[Transfer]:
        """Yield what waits to be sent, up to the end."""
        for _ in range(_MOST_BATCHED):
            try:
                transfer = self._transfers.get_nowait()
            except queue.Empty:
                return
            if transfer is None:
                self._transfers.put(None)
                return
            yield transfer

    def _send_batch(self, batch: list[Transfer]) -> None:
        buffers: list[memoryview] = []
        for transfer in batch:
            if transfer.destination is not None:
                copy(transfer.payload, transfer.destination)
                buffers.append(memoryview(header(Kind.PLACED, transfer.tag, 0)))
                self._send_all(buffers)
            else:
                buffers += (memoryview(header(transfer.kind, transfer.tag, len(transfer.payload))), transfer.payload)
        self._send_all(buffers)

    def _send_all(self, buffers: list[memoryview]) -> None:
        """Send buffers and empty the list."""
        while buffers:
            sent = self._socket.sendmsg(buffers)
            done = 0
            while done < len(buffers) and sent >= len(buffers[done]):
                sent -= len(buffers[done])
                done += 1
            del buffers[:done]
            if buffers:
                buffers[0] = buffers[0][sent:]
