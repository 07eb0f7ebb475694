"""Sockets between processes: a stream of messages that never blocks its reader, and a stream of bulk that does.

Two processes share two connections, over TCP or over a Unix socket. Messages are critical: each is sent at once by the
thread that has it, and received by the endpoint's thread, which waits for all peers with epoll(7). Bulk would hold them
up, so it has a connection and threads of its own, which block: it is received straight into the memory that its
consumer has named, by one call where the kernel allows it, and what waits is sent by one call.
"""

import contextlib
import os
import queue
import select
import socket
import threading
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hostlib.addresses import check_host_port, socket_path
from runtime.transport.errors import FrameError, PeerLostError
from runtime.transport.framing import HEADER_BYTES, NO_TAG, Decoder, Frame, Kind, Tag, bulk_header, header
from runtime.transport.rendezvous import Ended, end
from runtime.transport.shared_memory import Segment, copy

MOST_OUTBOX_BYTES = 16 << 20
"""A thread that sends messages waits while a peer has as much to read."""
_MOST_DESCRIPTORS = 16
_MOST_BATCHED = 256
_KEEPALIVE = (
    (socket.TCP_NODELAY, 1),
    (socket.TCP_KEEPIDLE, 1),
    (socket.TCP_KEEPINTVL, 1),
    (socket.TCP_KEEPCNT, 3),
    (socket.TCP_USER_TIMEOUT, 4000),
)
"""A host that vanishes without a word is noticed within seconds; a process that ends, at once."""


def connect(address: str, timeout_s: float) -> socket.socket:
    """Return a blocking connection to HOST:PORT, unix:/PATH, or unix:@NAME, a name that leaves no file behind.

    Raises OSError if nobody listens there, and ValueError for what is no address.
    """
    path = socket_path(address)
    if path is None:
        return socket.create_connection(_host_port(address), timeout_s)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        connection.connect(_abstract(path))
    except BaseException:
        connection.close()
        raise
    return connection


def listen(address: str) -> tuple[socket.socket, str]:
    """Return a listening socket and its address, for HOST:PORT (port 0: any), unix:/PATH or unix:@NAME.

    Raises OSError if the address is taken, and ValueError for what is no address.
    """
    path = socket_path(address)
    if path is None:
        host, port = _host_port(address)
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        host, port = listener.getsockname()[:2]
        return listener, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(_abstract(path))
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener, address


def _host_port(address: str) -> tuple[str, int]:
    host, _, port = check_host_port(address, first_port=0).rpartition(":")
    return host.strip("[]"), int(port)


def _abstract(path: str) -> str:
    return "\0" + path[1:] if path.startswith("@") else path


class MessageStream:
    """The connection for messages of one peer.

    Any thread sends; the endpoint's thread receives, and sends what the kernel did not take at once. Sends raise
    PeerLostError once the connection is closed.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _KEEPALIVE:
                connection.setsockopt(socket.IPPROTO_TCP, option, value)
        self._socket = connection
        self.passes_descriptors = connection.family == socket.AF_UNIX
        """Whether the peer is on this host, and can share memory."""
        self._watched: select.epoll | None = None
        self._decoder = Decoder()
        self._descriptors: deque[int] = deque()
        self._outbox: deque[tuple[memoryview, Segment | None]] = deque()
        self._outbox_bytes = 0
        self._lock = threading.Lock()
        self._has_room = threading.Condition(self._lock)
        self._is_closed = False
        self.descriptor = connection.fileno()
        """By which epoll names it."""

    def watch(self, watched: select.epoll) -> None:
        """Let epoll say when something comes."""
        self._watched = watched
        watched.register(self._socket, select.EPOLLIN)

    def send(self, frame: bytes, segment: Segment | None = None, *, may_wait: bool) -> None:
        """Send a frame, and the descriptor of a segment with it; wait while the peer has too much to read."""
        with self._lock:
            if self._is_closed:
                raise PeerLostError("the connection is closed")
            if not self._outbox:
                sent = self._try(memoryview(frame), segment)
                if sent == len(frame):
                    return
                self._queue(memoryview(frame)[sent:], segment if sent == 0 else None)
                self._watch_for(select.EPOLLIN | select.EPOLLOUT)
            else:
                self._queue(memoryview(frame), segment)
            while may_wait and self._outbox_bytes > MOST_OUTBOX_BYTES and not self._is_closed:
                self._has_room.wait()

    def flush(self) -> None:
        """Send what has waited. Raises OSError if the connection broke."""
        with self._lock:
            while self._outbox:
                frame, segment = self._outbox.popleft()
                sent = self._try(frame, segment)
                self._outbox_bytes -= sent
                if sent < len(frame):
                    self._outbox.appendleft((frame[sent:], segment if sent == 0 else None))
                    break
            else:
                self._watch_for(select.EPOLLIN)
            self._has_room.notify_all()

    def received(self) -> Iterator[Frame]:
        """Yield the frames that are complete.

        Raises OSError if the connection broke, EOFError at its end, and FrameError for what no peer may send.
        """
        try:
            if self.passes_descriptors:
                count = self._receive_with_descriptors()
            else:
                count = self._socket.recv_into(self._decoder.buffer())
        except BlockingIOError:
            return
        if count == 0:
            raise EOFError("it ended the connection")
        yield from self._decoder.frames(count)

    def passed_descriptor(self) -> int:
        """Return the descriptor that came with a frame. Raises FrameError if none came."""
        if not self._descriptors:
            raise FrameError("a segment came without its descriptor")
        return self._descriptors.popleft()

    def close(self) -> None:
        """Close the connection, and let nobody wait for it."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._outbox.clear()
            self._has_room.notify_all()
            if self._watched is not None:
                self._watched.unregister(self._socket)
            self._socket.close()
        while self._descriptors:
            os.close(self._descriptors.popleft())

    def _watch_for(self, events: int) -> None:
        if self._watched is not None:
            self._watched.modify(self._socket, events)

    def _queue(self, frame: memoryview, segment: Segment | None) -> None:
        self._outbox.append((frame, segment))
        self._outbox_bytes += len(frame)

    def _try(self, frame: memoryview, segment: Segment | None) -> int:
        try:
            if segment is None:
                return self._socket.send(frame)
            rights = array("i", [segment.descriptor])
            return self._socket.sendmsg([frame], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        except BlockingIOError:
            return 0
        except OSError:
            return 0  # the endpoint's thread hears of it by epoll, and ends the connection

    def _receive_with_descriptors(self) -> int:
        room = socket.CMSG_SPACE(_MOST_DESCRIPTORS * array("i").itemsize)
        count, ancillary, flags, _ = self._socket.recvmsg_into([self._decoder.buffer()], room, socket.MSG_CMSG_CLOEXEC)
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                descriptors = array("i")
                descriptors.frombytes(content[: len(content) - len(content) % descriptors.itemsize])
                self._descriptors.extend(descriptors)
        if flags & socket.MSG_CTRUNC:
            raise FrameError(f"more than {_MOST_DESCRIPTORS} descriptors came at once")
        return count


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
