"""A connection of the executor's loop: frames in and out, never blocking."""

import os
import socket
import struct
from array import array
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from runtime.addresses import watch_peer
from runtime.executor.loop import Loop
from runtime.frames import Frame, FrameError, FrameReader, prefix

_SEND_BUFFER_BYTES = 1 << 20
_LEVEL_SHIFT = 5
"""Class selectors are the upper three bits of the octet that holds DSCP and ECN."""
_MAX_PACING_RATE = 47
"""``SO_MAX_PACING_RATE``, in bytes per second."""
_UNLIMITED = (1 << 64) - 1
_BITS = 8


class Connection:
    """Sends frames at once where the socket takes them, and the rest in order when it does.

    ``on_frame`` gets what arrives; ``on_close`` is called once, when the peer has closed, broken the protocol or died.
    Then ``cause`` says why, and ``is_refused`` whether this side has refused what the peer sent: ``on_frame`` does so
    with FrameError. The socket may be connecting still.
    A Unix socket may bring a descriptor with a first frame, until the peer ``is_trusted``.
    """

    def __init__(
        self,
        loop: Loop,
        sock: socket.socket,
        on_frame: Callable[["Connection", Frame], None],
        on_close: Callable[["Connection"], None],
    ) -> None:
        self._loop = loop
        self._socket = sock
        self.on_frame = on_frame
        self.on_close = on_close
        self._unsent: deque[memoryview] = deque()
        self.is_closed = False
        self.reader = FrameReader()
        self.is_trusted = False
        self.cause = ""
        self.is_refused = False
        self.is_local = sock.family == socket.AF_UNIX
        self._descriptor: int | None = None
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        watch_peer(sock)
        loop.watch(sock, self._receive, None)

    def send(self, kind: int, header: bytes, payload: bytes | memoryview = b"") -> None:
        """Send a frame. The payload must not change any more. Sending on a closed connection does nothing."""
        if self.is_closed:
            return
        head = prefix(kind, header, len(payload))
        if self._unsent:
            self._unsent.extend((memoryview(head), memoryview(payload)))
            return
        try:
            sent = self._socket.sendmsg((head, payload))
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._loop.post(partial(self.close, _text(error)))
            return
        if sent < len(head) + len(payload):
            if sent < len(head):
                self._unsent.append(memoryview(head)[sent:])
            self._unsent.append(memoryview(payload)[max(0, sent - len(head)) :])
            self._loop.watch(self._socket, self._receive, self._send_rest)

    def send_at(self, level: int, rate_bps: float | None) -> None:
        """Mark packets as CS0 to CS7, and send no faster than a rate, if there is one. It is for TCP over IPv4."""
        octets_per_s = _UNLIMITED if rate_bps is None else max(1, int(rate_bps) // _BITS)
        if not self.is_closed:
            self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, level << _LEVEL_SHIFT)
            self._socket.setsockopt(socket.SOL_SOCKET, _MAX_PACING_RATE, struct.pack("=Q", octets_per_s))

    def source_port(self) -> int:
        """Return the port from which it sends over TCP. Raises OSError once it is closed."""
        port: int = self._socket.getsockname()[1]
        return port

    def take_descriptor(self) -> int | None:
        """Return the descriptor that came with a frame, which is the caller's then; None where none came."""
        descriptor, self._descriptor = self._descriptor, None
        return descriptor

    def close(self, cause: str = "") -> None:
        """Close the connection, and say so."""
        if not self.is_closed:
            self.is_closed = True
            self.cause = cause
            descriptor = self.take_descriptor()
            if descriptor is not None:
                os.close(descriptor)
            self._unsent.clear()
            with suppress(KeyError, ValueError):
                self._loop.forget(self._socket)
            self._socket.close()
            self.on_close(self)

    def _receive(self) -> None:
        try:
            if self.is_trusted or not self.is_local:
                size = self._socket.recv_into(self.reader.memory())
            else:
                size = self._receive_with_descriptor()
        except BlockingIOError:
            return
        except OSError as error:
            self.close(_text(error))
            return
        if size == 0:
            self.close("the other side closed it")
            return
        try:
            for frame in self.reader.received(size):
                self.on_frame(self, frame)
                if self.is_closed:
                    return
        except FrameError as error:
            self.is_refused = True
            self.close(str(error))

    def _receive_with_descriptor(self) -> int:
        """Receive, and keep the one descriptor that may come; the kernel closes more."""
        room = socket.CMSG_LEN(array("i").itemsize)
        size, controls, _, _ = self._socket.recvmsg_into([self.reader.memory()], room, socket.MSG_CMSG_CLOEXEC)
        for level, kind, content in controls:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                for descriptor in array("i", content):
                    if self._descriptor is not None:
                        os.close(self._descriptor)
                    self._descriptor = descriptor
        return size

    def _send_rest(self) -> None:
        try:
            while self._unsent:
                sent = self._socket.send(self._unsent[0])
                if sent < len(self._unsent[0]):
                    self._unsent[0] = self._unsent[0][sent:]
                    return
                self._unsent.popleft()
        except BlockingIOError:
            return
        except OSError as error:
            self.close(_text(error))
            return
        self._loop.watch(self._socket, self._receive, None)


def _text(error: OSError) -> str:
    return error.strerror or str(error)
