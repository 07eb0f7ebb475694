"""The other hosts: connections to them, on which pieces of arrays travel.

A host sends on connections that it has opened, and receives on those that others have. On one machine it *lends* what
is large: the array lies in its arena, which the other one has mapped, and is read there. When nobody reads it any more
it is *returned*. What is small, what finds no room in the arena, and everything over TCP is sent; a large piece is
received in the place where it is needed.
"""

import hmac
import socket
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Protocol

import numpy as np

from runtime import messages
from runtime.addresses import dialled, listening
from runtime.codec import MalformedError
from runtime.executor.connection import Connection
from runtime.executor.loop import Loop
from runtime.frames import LOAN, MOST_BYTES, PIECE, RETURN, Frame, FrameError, Kind, prefix
from runtime.lowering.subprograms import Send
from runtime.messages import Failure
from runtime.substrates.interface import HostSettings
from runtime.transport.arrays import LEAST_BYTES, ArenaArrays, Array
from runtime.transport.shared_memory import Segment


class Receiver(Protocol):
    """Takes pieces; they are named by execution, edge, destination shard and source shard."""

    def receive(
        self, number: int, edge: int, destination: int, source: int, data: bytearray | memoryview | Failure, /
    ) -> None:
        """Take a piece, or why it will not come."""

    def place(self, number: int, edge: int, destination: int, source: int, size_bytes: int, /) -> memoryview | None:
        """Return the memory where a piece is needed, or None if any will do; ``receive`` follows once it is filled."""


class Peers:
    """The other hosts of a runtime."""

    def __init__(self, loop: Loop, settings: HostSettings, arrays: ArenaArrays, receiver: Receiver) -> None:
        self._loop = loop
        self._settings = settings
        self._arrays = arrays
        self._receiver = receiver
        self._addresses: Mapping[int, str] = {}
        self._outgoing: dict[int, _Outgoing] = {}
        self._listener = listening(settings.address)
        self._listener.setblocking(False)
        self.address = settings.address
        """Where this host listens; the port is the one that it got."""
        if self._listener.family != socket.AF_UNIX:
            host, _, _ = settings.address.rpartition(":")
            self.address = f"{host}:{self._listener.getsockname()[1]}"
        loop.watch(self._listener, self._accept, None)

    @property
    def lent(self) -> int:
        """Pieces that other hosts read where they lie."""
        return sum(len(each.lent) for each in self._outgoing.values())

    def take_addresses(self, addresses: Mapping[int, str]) -> None:
        """Take note of where all hosts listen."""
        self._addresses = dict(addresses)

    def send_piece(self, host: int, execution: int, send: Send, data: Array) -> None:
        """Send a piece, which does not change any more."""
        header = _header(execution, send)
        peer = self._peer(host)
        if data.nbytes >= LEAST_BYTES and peer.connection.is_local:
            lies, offset_bytes = data, self._arrays.offset_bytes(data) if data.flags.c_contiguous else None
            if offset_bytes is None and (copied := self._arrays.copied(data)) is not None:
                lies, offset_bytes = copied, self._arrays.offset_bytes(copied)
            if offset_bytes is not None:
                peer.lend(header, lies, offset_bytes)
                return
        peer.connection.send(Kind.PIECE, header, bytes_of(np.asarray(data, order="C")))

    def send_failure(self, host: int, execution: int, send: Send, failure: Failure) -> None:
        """Say that a piece will never come."""
        header = _header(execution, send)
        self._peer(host).connection.send(Kind.FAILED_PIECE, header, messages.encode(failure))

    def _peer(self, host: int) -> "_Outgoing":
        peer = self._outgoing.get(host)
        if peer is None:
            try:
                sock = dialled(self._addresses[host])
                self._greet(sock)
            except OSError:  # it has died; the server knows soon, and ends what waits for it
                sock, other = socket.socketpair()
                other.close()
            peer = self._outgoing[host] = _Outgoing(self._loop, sock, lambda: self._outgoing.pop(host, None))
        return peer

    def _greet(self, sock: socket.socket) -> None:
        """Send the first frame, and with it the arena if the other host can map it."""
        settings = self._settings
        hello = messages.Hello(messages.VERSION, "executor", str(settings.host), settings.secret, self.address)
        frame = prefix(Kind.MESSAGE, messages.encode(hello), 0)
        if sock.family == socket.AF_UNIX:
            socket.send_fds(sock, (frame,), (self._arrays.arena.segment.descriptor,))
        else:
            sock.sendall(frame)

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            sock, _ = self._listener.accept()
            Connection(self._loop, sock, self._take_greeting, lambda _: None)

    def _take_greeting(self, connection: Connection, frame: Frame) -> None:
        """Take the first frame of a connection, which must be that of a host that knows the secret."""
        try:
            hello = messages.decode(frame.header) if frame.kind == Kind.MESSAGE else None
        except MalformedError:
            hello = None
        if (
            not isinstance(hello, messages.Hello)
            or hello.version != messages.VERSION
            or not hmac.compare_digest(hello.token.encode(), self._settings.secret.encode())
        ):
            raise FrameError("expected the greeting of a host")
        connection.is_trusted = True
        connection.reader.most_bytes = MOST_BYTES
        _Incoming(self._loop, connection, self._arrays, self._receiver)


class _Outgoing:
    """A connection on which this host sends, and what it has lent there."""

    def __init__(self, loop: Loop, sock: socket.socket, forget: Callable[[], object]) -> None:
        self.connection = Connection(loop, sock, self._take, self._end)
        self.connection.is_trusted = True
        self.lent: dict[int, Array] = {}
        self._numbers = count()
        self._forget = forget

    def lend(self, header: bytes, array: Array, offset_bytes: int) -> None:
        """Let the other host read an array; it lives until that is over."""
        number = next(self._numbers)
        self.lent[number] = array
        self.connection.send(Kind.LENT_PIECE, header + LOAN.pack(number, offset_bytes, array.nbytes))

    def _take(self, _: Connection, frame: Frame) -> None:
        if frame.kind != Kind.RETURNED:
            raise FrameError(f"expected what was lent, got a frame of kind {frame.kind}")
        (number,) = RETURN.unpack(frame.header)
        self.lent.pop(number, None)

    def _end(self, _: Connection) -> None:
        self.lent.clear()
        self._forget()


class _Incoming:
    """A connection on which another host sends, and the memory of that host."""

    def __init__(self, loop: Loop, connection: Connection, arrays: ArenaArrays, receiver: Receiver) -> None:
        self._loop = loop
        self._arrays = arrays
        self._receiver = receiver
        descriptor = connection.take_descriptor()
        self._segment = None if descriptor is None else Segment.attach(descriptor)
        connection.on_frame = self._take
        connection.on_close = self._end
        connection.reader.place = self._place

    def _take(self, connection: Connection, frame: Frame) -> None:
        if frame.kind == Kind.PIECE:
            self._receiver.receive(*_name(frame.header), frame.payload)
        elif frame.kind == Kind.LENT_PIECE and self._segment is not None:
            number, offset_bytes, size_bytes = LOAN.unpack_from(frame.header, PIECE.size)
            array = np.frombuffer(self._segment.part(offset_bytes, size_bytes), np.uint8)
            array.flags.writeable = False
            returned = partial(connection.send, Kind.RETURNED, RETURN.pack(number))
            weakref.finalize(array, self._loop.post, returned).atexit = False
            self._receiver.receive(*_name(frame.header), array.data)
        elif frame.kind == Kind.FAILED_PIECE:
            failure = messages.decode(bytes(frame.payload))
            assert isinstance(failure, Failure)
            self._receiver.receive(*_name(frame.header), failure)
        else:
            raise FrameError(f"expected a piece, got a frame of kind {frame.kind}")

    def _end(self, _: Connection) -> None:
        """Unmap the memory of the other host, once nobody reads it."""
        if self._segment is not None:
            self._segment.close()

    def _place(self, kind: int, header: bytes, size_bytes: int) -> memoryview:
        """Return where to receive a large payload."""
        found = self._receiver.place(*_name(header), size_bytes) if kind == Kind.PIECE else None
        return self._arrays.empty((size_bytes,), "uint8").data if found is None else found


def _name(header: bytes) -> tuple[int, int, int, int]:
    execution, edge, destination, source = PIECE.unpack_from(header)
    return execution, edge, destination, source


def _header(execution: int, send: Send) -> bytes:
    return PIECE.pack(execution, send.edge, send.piece.destination, send.piece.source)


def bytes_of(array: Array) -> bytes | memoryview:
    """Return the memory of an array whose elements lie in a row."""
    return array.data.cast("B") if array.nbytes else b""
