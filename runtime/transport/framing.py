"""Frames on a stream: a header of 32 bytes, and as many bytes of payload as it says. Pure: no I/O.

All integers are little-endian. What a payload is depends on the kind of the frame; ``Kind`` says it.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from runtime.transport.errors import FrameError

MOST_MESSAGE_BYTES = 64 << 20
"""A message may be as large; subprograms are the largest."""
EAGER_BYTES = 64 << 10
"""A tuple of at most as many bytes travels among the messages, at once; a larger one waits until its place is known."""
MOST_BULK_BYTES = 1 << 40
"""A tuple may be as large."""

_STAGING_BYTES = 2 * EAGER_BYTES
_HEADER = Struct("<QQIIIB3x")
HEADER_BYTES = _HEADER.size
_PLACE = Struct("<QQQ")


class Kind(IntEnum):
    """What a frame is. Those without a remark have no payload."""

    MESSAGE = 1
    """Payload: bytes of the layer above."""
    TUPLE = 2
    """Payload: the tuple of the tag; on the connection for messages at most ``EAGER_BYTES``."""
    READY = 3
    """The place of a tuple is known to its producer from now on. Payload: a ``Place``."""
    PLACED = 4
    """The tuple is in its place, in memory that both share. On the connection for bulk."""
    WITHDRAW = 5
    """Nothing of the execution is wanted any more; WITHDRAWN answers."""
    WITHDRAWN = 6
    """No tuple of the execution follows. On the connection for bulk, after what was under way there."""
    SEGMENT = 7
    """A segment of the sender, whose descriptor comes with the frame. Payload: a ``Place``, the whole segment."""
    HANDOVER = 8
    """The tuple of the tag, to be read where it is. Payload: a ``Place`` in a segment of the sender."""


class Tag(NamedTuple):
    """Which tuple: the edge of a program execution, the shard of its consumer, and that of its producer."""

    execution: int
    edge: int
    shard: int
    source: int


class Place(NamedTuple):
    """Where a tuple is, or shall be: in a segment, or (segment 0) where only its owner finds it."""

    segment: int
    offset_bytes: int
    size_bytes: int


class Frame(NamedTuple):
    """A frame. ``payload`` is valid until the decoder is used again."""

    kind: Kind
    tag: Tag
    payload: memoryview


NO_TAG = Tag(0, 0, 0, 0)
_SIZES = {
    Kind.WITHDRAW: (0, 0),
    **dict.fromkeys((Kind.READY, Kind.SEGMENT, Kind.HANDOVER), (_PLACE.size, _PLACE.size)),
    Kind.MESSAGE: (0, MOST_MESSAGE_BYTES),
    Kind.TUPLE: (0, EAGER_BYTES),
}
"""The fewest and the most bytes of payload, on the connection for messages."""
_KINDS = {int(kind): (kind, *sizes) for kind, sizes in _SIZES.items()}
_NO_KIND = (Kind.MESSAGE, 1, 0)
_MOST_ON_BULK = {Kind.TUPLE: MOST_BULK_BYTES, Kind.PLACED: 0, Kind.WITHDRAWN: 0}


def header(kind: Kind, tag: Tag, size_bytes: int) -> bytes:
    """Return the header of a frame. Raises ValueError for a tag with a negative number, or too large a one."""
    try:
        return _HEADER.pack(size_bytes, *tag, kind)
    except struct.error:
        raise ValueError(f"{tag}: expected an execution of 64 bits, an edge and shards of 32 bits") from None


def bulk_header(received: bytes | bytearray) -> tuple[Kind, Tag, int]:
    """Return kind, tag and size of what a header announces on the connection for bulk: TUPLE, PLACED or WITHDRAWN.

    Raises FrameError for any other frame, and for a size above ``MOST_BULK_BYTES``.
    """
    size_bytes, execution, edge, shard, source, number = _HEADER.unpack(received)
    tag = Tag(execution, edge, shard, source)
    most_bytes = _MOST_ON_BULK.get(number)
    if most_bytes is None:
        raise FrameError(f"a frame of kind {number}, which does not exist on the connection for bulk")
    if size_bytes > most_bytes:
        raise FrameError(f"{tag}: a frame {Kind(number).name} of {size_bytes} bytes, more than {most_bytes}")
    return Kind(number), tag, size_bytes


def packed_place(place: Place) -> bytes:
    """Return the payload that a place is."""
    return _PLACE.pack(*place)


def place_of(payload: memoryview) -> Place:
    """Return the place that a payload is."""
    return Place(*_PLACE.unpack(payload))


class Decoder:
    """Cuts what is received into frames: receive into ``buffer()``, then ask ``frames(count)``."""

    def __init__(self) -> None:
        self._staging = memoryview(bytearray(_STAGING_BYTES))
        self._staged = 0
        self._large: memoryview | None = None
        self._large_filled = 0
        self._large_kind = Kind.MESSAGE

    def buffer(self) -> memoryview:
        """Return where the next bytes of the stream belong; never empty."""
        if self._large is not None:
            return self._large[self._large_filled :]
        return self._staging[self._staged :]

    def frames(self, count: int) -> Iterator[Frame]:
        """Yield the frames that ``count`` more bytes complete. Raises FrameError for what no peer may send."""
        if self._large is not None:
            self._large_filled += count
            if self._large_filled < len(self._large):
                return
            complete, self._large = self._large, None
            yield Frame(self._large_kind, NO_TAG, complete)
            return
        begin, end = 0, self._staged + count
        while end - begin >= HEADER_BYTES:
            size_bytes, execution, edge, shard, source, number = _HEADER.unpack_from(self._staging, begin)
            kind, fewest, most = _KINDS.get(number, _NO_KIND)
            if not fewest <= size_bytes <= most:
                raise FrameError(_wrong(number, size_bytes))
            payload, after = begin + HEADER_BYTES, begin + HEADER_BYTES + size_bytes
            if after > end:
                if HEADER_BYTES + size_bytes > _STAGING_BYTES:
                    self._begin_large(kind, size_bytes, self._staging[payload:end])
                    begin = end
                break
            yield Frame(kind, Tag(execution, edge, shard, source), self._staging[payload:after])
            begin = after
        self._staged = end - begin
        if begin and self._staged:
            self._staging[: self._staged] = self._staging[begin:end]

    def _begin_large(self, kind: Kind, size_bytes: int, received: memoryview) -> None:
        self._large = memoryview(bytearray(size_bytes))
        self._large_kind = kind
        self._large_filled = len(received)
        self._large[: len(received)] = received


def _wrong(number: int, size_bytes: int) -> str:
    if number not in _KINDS:
        return f"a frame of kind {number}, which does not exist on the connection for messages"
    kind, fewest, most = _KINDS[number]
    wanted = f"{fewest}" if fewest == most else f"at most {most}"
    return f"a frame {kind.name} with {size_bytes} bytes of payload, expected {wanted}"
