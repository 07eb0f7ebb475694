"""A connection on which this host sends pieces to another one."""

import struct
from collections.abc import Callable
from itertools import count
from socket import socket

from runtime.executor.connection import Connection
from runtime.executor.loop import Loop
from runtime.frames import ARRIVED, LOAN, PIECE, RETURN, Frame, FrameError, Kind
from runtime.transport.arrays import Array
from runtime.transport.deliveries import Name, Sent


class Outgoing:
    """A connection to a host, what it has carried as far as that may be lost, and what was lent on it.

    ``key`` is that host and the flow that it is for, or None.
    ``can_lend`` says whether the other host has, as far as known, the arena of this one. When the connection ends, what
    was lent stays lent: the other host may live, and read it still.
    """

    def __init__(
        self,
        loop: Loop,
        sock: socket,
        key: tuple[int, int | None],
        number: int,
        can_lend: bool,
        on_end: Callable[["Outgoing"], None],
    ) -> None:
        self.key = key
        self.host = key[0]
        self.number = number
        self.can_lend = can_lend
        self.sent = Sent()
        self.lent: dict[int, tuple[Name, Array]] = {}
        self.connection = Connection(loop, sock, self._take, lambda _: on_end(self))
        self.connection.is_trusted = True
        self._loans = count()

    def send(self, kind: Kind, name: Name, payload: bytes | memoryview) -> None:
        """Send a piece, or why it will not come."""
        self.sent.add(name)
        self.connection.send(kind, PIECE.pack(*name), payload)

    def lend(self, name: Name, array: Array, offset_bytes: int) -> None:
        """Let the other host read an array; it lives until that is over."""
        loan = next(self._loans)
        self.lent[loan] = name, array
        self.sent.add(name)
        self.connection.send(Kind.LENT_PIECE, PIECE.pack(*name) + LOAN.pack(loan, offset_bytes, array.nbytes))

    def retire(self) -> None:
        """End the connection once all that was sent has arrived.

        The other host closes it: this one's kernel would keep the 5-tuple from new connections for a minute.
        """
        self.connection.send(Kind.LAST, b"")

    def _take(self, _: Connection, frame: Frame) -> None:
        try:
            if frame.kind == Kind.RETURNED:
                (loan,) = RETURN.unpack(frame.header)
                self.lent.pop(loan)
            elif frame.kind == Kind.UNREADABLE:
                self.can_lend = False
                (loan,) = RETURN.unpack(frame.header)
                name, array = self.lent.pop(loan)
                self.send(Kind.PIECE, name, array.data.cast("B"))
            elif frame.kind == Kind.ARRIVED:
                self.sent.confirm(*ARRIVED.unpack(frame.header))
            else:
                raise FrameError(f"expected what was lent, got a frame of kind {frame.kind}")
        except struct.error:
            raise FrameError(f"a frame of kind {frame.kind} with a header of {len(frame.header)} bytes") from None
        except KeyError as error:
            raise FrameError(f"there is no loan {error.args[0]}") from None
