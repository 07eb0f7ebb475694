"""Frames, in which all processes of the runtime talk: kind, header and payload, each of the last two with its length.

A reader hands out the memory to receive into, and yields what has arrived whole. A large payload goes from the socket
straight into the place that its consumer has for it; small frames are taken from one buffer, many at a time.
"""

import struct
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import NamedTuple

import numpy as np

_PREFIX = struct.Struct("!BIQ")
PREFIX_BYTES = _PREFIX.size
_BUFFER_BYTES = 1 << 18
GREETING_BYTES = 1 << 14
"""The most that a stranger may send as its first frame."""
MOST_BYTES = 1 << 36


class Kind(IntEnum):
    """What the header of a frame is."""

    MESSAGE = 0
    """A message of ``runtime.messages``."""
    PIECE = 1
    """Data on its way to a shard (``PIECE``); the payload is the data."""
    FAILED_PIECE = 2
    """The same, but its producer failed; the payload says why."""
    GRANTS = 3
    """Stretches of computations that a host may enqueue (``GRANT`` each), in this order."""
    COMPLETIONS = 4
    """Stretches of computations that a host has completed (``COMPLETION`` each)."""
    ENQUEUED = 5
    """Computations that a host has enqueued (``ENQUEUED`` each)."""
    ESTIMATES = 6
    """How long functions take on a host (``ESTIMATE`` each)."""
    LENT_PIECE = 7
    """As PIECE, but the data lie in memory that the sender shares (``PIECE``, then ``LOAN``); there is no payload."""
    RETURNED = 8
    """Nobody reads what was lent any more (``RETURN``)."""
    UNREADABLE = 9
    """What was lent cannot be read, and is to be sent (``RETURN``)."""
    ARRIVED = 10
    """So many pieces of a connection have arrived (``ARRIVED``)."""
    LAST = 11
    """Nothing follows on a connection: who receives it is to close it."""


PIECE = struct.Struct("!qiii")
"""Execution, edge, destination shard, source shard."""
GRANT = struct.Struct("!qii")
"""Execution, first node, last node."""
COMPLETION = struct.Struct("!qi?ddd")
"""Execution, first node, whether it failed, and three times in seconds.

For how long all devices together have computed, for how long they were occupied, and since when the last one has ended.
"""
ENQUEUED = struct.Struct("!qi")
"""Execution, node."""
ESTIMATE = struct.Struct("!qd")
"""Function, seconds that a shard takes."""
LOAN = struct.Struct("!qqq")
"""Number of the loan, offset and size in bytes."""
RETURN = struct.Struct("!q")
"""Number of the loan."""
ARRIVED = struct.Struct("!q")
"""How many pieces."""


class Frame(NamedTuple):
    """A frame that has arrived."""

    kind: int
    header: bytes
    payload: bytearray | memoryview


class FrameError(ConnectionError):
    """A peer sent what is no frame, or one that is larger than allowed."""


def prefix(kind: int, header: bytes, payload_bytes: int) -> bytes:
    """Return what goes before the payload on the wire."""
    return _PREFIX.pack(kind, len(header), payload_bytes) + header


Place = Callable[[int, bytes, int], memoryview]
"""Returns the memory for a large payload, given kind, header and size in bytes."""


def new_place(_kind: int, _header: bytes, size_bytes: int) -> memoryview:
    """Return new memory for a payload."""
    return np.empty(size_bytes, np.uint8).data


class FrameReader:
    """Makes frames of what is received; frames of more than ``most_bytes`` raise FrameError."""

    def __init__(self, most_bytes: int = GREETING_BYTES) -> None:
        self.most_bytes = most_bytes
        self.place: Place = new_place
        self._buffer = bytearray(_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._start = self._stop = 0
        self._large: tuple[int, bytes, memoryview] | None = None
        self._large_received = 0

    def memory(self) -> memoryview:
        """Return the memory to receive into."""
        if self._large is not None:
            return self._large[2][self._large_received :]
        if self._start == self._stop:
            self._start = self._stop = 0
        elif self._stop == len(self._buffer) or self._start > len(self._buffer) // 2:
            self._move_to_front()
        return self._view[self._stop :]

    def received(self, size: int) -> Iterator[Frame]:
        """Yield the frames that so many more bytes in ``memory()`` complete."""
        if self._large is not None:
            self._large_received += size
            if self._large_received == len(self._large[2]):
                large, self._large = self._large, None
                yield Frame(*large)
            return
        self._stop += size
        while True:
            have = self._stop - self._start
            if have < PREFIX_BYTES:
                return
            kind, header_bytes, payload_bytes = _PREFIX.unpack_from(self._buffer, self._start)
            if header_bytes + payload_bytes > self.most_bytes:
                raise FrameError(f"a frame of {header_bytes + payload_bytes} bytes, at most {self.most_bytes} allowed")
            whole = PREFIX_BYTES + header_bytes + payload_bytes
            begin = self._start + PREFIX_BYTES
            if have >= whole:
                header = bytes(self._view[begin : begin + header_bytes])
                payload = self._buffer[begin + header_bytes : self._start + whole]  # a copy, which may be written
                self._start += whole
                yield Frame(kind, header, payload)
            elif PREFIX_BYTES + header_bytes > len(self._buffer) // 2:
                self._grow(whole)
                return
            elif have >= PREFIX_BYTES + header_bytes and payload_bytes > len(self._buffer) // 4:
                self._begin_large(kind, begin, header_bytes, payload_bytes)
                return
            else:
                return

    def _begin_large(self, kind: int, begin: int, header_bytes: int, payload_bytes: int) -> None:
        header = bytes(self._view[begin : begin + header_bytes])
        payload = self.place(kind, header, payload_bytes)
        arrived = self._stop - begin - header_bytes
        payload[:arrived] = self._view[begin + header_bytes : self._stop]
        self._large = (kind, header, payload)
        self._large_received = arrived
        self._start = self._stop = 0

    def _grow(self, size: int) -> None:
        if len(self._buffer) < 4 * size:
            buffer = bytearray(4 * size)
            buffer[: self._stop - self._start] = self._view[self._start : self._stop]
            self._buffer, self._view = buffer, memoryview(buffer)
            self._start, self._stop = 0, self._stop - self._start

    def _move_to_front(self) -> None:
        rest = bytes(self._view[self._start : self._stop])
        self._view[: len(rest)] = rest
        self._start, self._stop = 0, len(rest)
