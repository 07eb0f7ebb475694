"""A connection on which another host sends pieces to this one."""

import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from runtime import messages
from runtime.codec import MalformedError
from runtime.executor.connection import Connection
from runtime.executor.loop import Loop
from runtime.frames import ARRIVED, LOAN, PIECE, RETURN, Frame, FrameError, Kind
from runtime.messages import Failure
from runtime.transport.arrays import ArenaArrays
from runtime.transport.deliveries import Name, Taken
from runtime.transport.shared_memory import Segment


class Receiver(Protocol):
    """Takes pieces; they are named by execution, edge, destination shard and source shard."""

    def receive(
        self, number: int, edge: int, destination: int, source: int, data: bytearray | memoryview | Failure, /
    ) -> None:
        """Take a piece, or why it will not come. Raises FrameError for what cannot be that piece."""

    def place(self, number: int, edge: int, destination: int, source: int, size_bytes: int, /) -> memoryview | None:
        """Return the memory where a piece is needed, or None if any will do; ``receive`` follows once it is filled.

        Raises FrameError for what cannot be that piece.
        """

    def lose(self, number: int, edge: int, destination: int, source: int, cause: str, /) -> None:
        """Take note that a piece was lost on its way."""


class Incoming:
    """A connection of host ``sender`` to this one, and the memory of that host, as far as this one could map it.

    ``on_arrival`` hears of each piece that comes, before it goes anywhere.
    """

    def __init__(
        self,
        loop: Loop,
        connection: Connection,
        hosts: tuple[int, int],
        number: int,
        arrays: ArenaArrays,
        receiver: Receiver,
        tell: Callable[[object], None],
        on_arrival: Callable[[Name], None] | None = None,
    ) -> None:
        self.sender, self._host = hosts
        self._loop = loop
        self._connection = connection
        self._number = number
        self._arrays = arrays
        self._receiver = receiver
        self._tell = tell
        self._on_arrival = on_arrival
        self._taken = Taken()
        self._held: set[int] = set()
        self._is_over = False
        self._segment = self._mapped(connection.take_descriptor())
        connection.on_frame = self._take
        connection.on_close = self._end
        connection.reader.place = self._place

    def finish(self, first: int, names: Sequence[Name], loans: Sequence[int], cause: str) -> None:
        """Take the sender's word that the connection has ended: pieces that never came are lost, with the cause."""
        connection = self._connection
        connection.close()
        self._is_over = True
        self._return([loan for loan in loans if loan not in self._held])
        if connection.is_refused:
            cause = f"host {self._host} refused a frame of host {self.sender}: {connection.cause}"
        for name in self._taken.lost(first, names):
            self._receiver.lose(*name, cause)

    def _complain(self, what: str) -> None:
        print(f"host {self._host}, of host {self.sender}: {what}", file=sys.stderr, flush=True)

    def _mapped(self, descriptor: int | None) -> Segment | None:
        """Map the memory of the other host; return None where that cannot be done, so that it has to send."""
        if descriptor is None:
            return None
        try:
            return Segment.attach(descriptor)
        except OSError as error:
            self._complain(f"cannot map its memory, so it has to send: {error}")
            return None

    def _take(self, connection: Connection, frame: Frame) -> None:
        if frame.kind == Kind.LAST:
            connection.close("its last piece has come")
            return
        name = _name(frame.kind, frame.header)
        if self._on_arrival is not None:
            self._on_arrival(name)
        is_read = True
        if frame.kind == Kind.PIECE:
            self._receiver.receive(*name, frame.payload)
        elif frame.kind == Kind.LENT_PIECE:
            loan, offset_bytes, size_bytes = LOAN.unpack_from(frame.header, PIECE.size)
            is_read = self._segment is not None
            if self._segment is None:
                connection.send(Kind.UNREADABLE, RETURN.pack(loan))
            else:
                self._receiver.receive(*name, self._borrowed(loan, self._segment.part(offset_bytes, size_bytes)))
        else:
            self._receiver.receive(*name, _failure(frame))
        if self._taken.take(name, is_read=is_read):
            connection.send(Kind.ARRIVED, ARRIVED.pack(self._taken.number))

    def _borrowed(self, loan: int, part: memoryview) -> memoryview:
        """Return what is lent; the other host hears when nobody reads it any more."""
        array = np.frombuffer(part, np.uint8)
        array.flags.writeable = False
        self._held.add(loan)
        weakref.finalize(array, self._loop.post, partial(self._give_back, loan)).atexit = False
        return array.data

    def _give_back(self, loan: int) -> None:
        self._held.discard(loan)
        if self._is_over:
            self._return([loan])
        else:
            self._connection.send(Kind.RETURNED, RETURN.pack(loan))

    def _return(self, loans: Sequence[int]) -> None:
        """Return loans by way of the server."""
        if loans:
            self._tell(messages.LoansReturned(self.sender, self._number, tuple(loans)))

    def _end(self, connection: Connection) -> None:
        """Unmap the memory of the other host, once nobody reads it. What was lost, that host will say."""
        if connection.is_refused:
            self._complain(f"refused a frame: {connection.cause}")
        if self._segment is not None:
            self._segment.close()

    def _place(self, kind: int, header: bytes, size_bytes: int) -> memoryview:
        """Return where to receive a large payload."""
        found = self._receiver.place(*_name(kind, header), size_bytes) if kind == Kind.PIECE else None
        return self._arrays.empty((size_bytes,), "uint8").data if found is None else found


_HEADER_BYTES: Mapping[int, int] = {
    Kind.PIECE: PIECE.size,
    Kind.FAILED_PIECE: PIECE.size,
    Kind.LENT_PIECE: PIECE.size + LOAN.size,
}


def _name(kind: int, header: bytes) -> Name:
    """Return which piece a frame is. Raises FrameError where it is none."""
    expected_bytes = _HEADER_BYTES.get(kind)
    if expected_bytes is None:
        raise FrameError(f"expected a piece, got a frame of kind {kind}")
    if len(header) != expected_bytes:
        raise FrameError(f"expected a header of {expected_bytes} bytes in a piece, got {len(header)}")
    execution, edge, destination, source = PIECE.unpack_from(header)
    return execution, edge, destination, source


def _failure(frame: Frame) -> Failure:
    try:
        failure = messages.decode(bytes(frame.payload))
    except MalformedError as error:
        raise FrameError(f"expected why a piece does not come: {error}") from None
    if not isinstance(failure, Failure):
        raise FrameError(f"expected why a piece does not come, got {type(failure).__name__}")
    return failure
