"""Addresses, and the connection for messages of two processes, which never blocks its reader.

Two processes share two connections, over TCP or over a Unix socket. Messages are critical: each is sent at once by the
thread that has it, and received by the endpoint's thread, which waits for all peers with epoll(7). Bulk has the other
connection (``bulk``), so that it holds up no message.
"""

import os
import select
import socket
import threading
from array import array
from collections import deque
from collections.abc import Iterator

from hostlib.addresses import check_host_port, socket_path
from runtime.transport.errors import FrameError, PeerLostError
from runtime.transport.framing import Decoder, Frame
from runtime.transport.shared_memory import Segment

MOST_OUTBOX_BYTES = 16 << 20
"""A thread that sends messages waits while a peer has as much to read."""
_MOST_DESCRIPTORS = 16
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
