"""An arena: one segment of which a host's buffers are parts, so that peers map it once, and its warm pages are reused.

Whether there may be a buffer is decided elsewhere, by budgets of bytes; the arena decides where it lies.
"""

import threading
from bisect import bisect_left
from dataclasses import dataclass

from runtime.transport.shared_memory import Segment

ALIGNMENT_BYTES = 64
"""Buffers begin at multiples of it: a line of the cache."""


@dataclass(frozen=True)
class Buffer:
    """A part of an arena."""

    segment: Segment
    offset_bytes: int
    memory: memoryview


class FreeList:
    """The free ranges of a segment, by offset; first fit. Pure."""

    def __init__(self, size_bytes: int) -> None:
        self._offsets = [0] if size_bytes else []
        self._sizes = [size_bytes] if size_bytes else []

    @property
    def free_bytes(self) -> int:
        """How much is free, in whatever pieces."""
        return sum(self._sizes)

    def take(self, size_bytes: int) -> int | None:
        """Return the offset of a range that is taken from now on; None if no free one is as large."""
        for index, free_bytes in enumerate(self._sizes):
            if free_bytes >= size_bytes:
                offset = self._offsets[index]
                if free_bytes == size_bytes:
                    del self._offsets[index], self._sizes[index]
                else:
                    self._offsets[index] += size_bytes
                    self._sizes[index] -= size_bytes
                return offset
        return None

    def give(self, offset_bytes: int, size_bytes: int) -> None:
        """Free a range, joined to the free ones beside it. Raises ValueError if a part of it is free already."""
        index = bisect_left(self._offsets, offset_bytes)
        has_before = index > 0
        before_end = self._offsets[index - 1] + self._sizes[index - 1] if has_before else 0
        after_begin = self._offsets[index] if index < len(self._offsets) else None
        if before_end > offset_bytes or (after_begin is not None and offset_bytes + size_bytes > after_begin):
            raise ValueError(f"{size_bytes} bytes at {offset_bytes}: a part of them is free already")
        if after_begin == offset_bytes + size_bytes:
            size_bytes += self._sizes[index]
            del self._offsets[index], self._sizes[index]
        if has_before and before_end == offset_bytes:
            self._sizes[index - 1] += size_bytes
        else:
            self._offsets.insert(index, offset_bytes)
            self._sizes.insert(index, size_bytes)


class Arena:
    """Buffers in one segment. Any thread may use it.

    The segment takes memory as it is written to, so that it may be much larger than what is in use.
    """

    def __init__(self, size_bytes: int) -> None:
        self.segment = Segment.create(size_bytes)
        self._free = FreeList(size_bytes)
        self._lock = threading.Lock()

    @property
    def free_bytes(self) -> int:
        """How much is free, in whatever pieces."""
        with self._lock:
            return self._free.free_bytes

    def allocate(self, size_bytes: int) -> Buffer | None:
        """Return a buffer whose contents are arbitrary; None if no free range is as large."""
        with self._lock:
            offset_bytes = self._free.take(_aligned(size_bytes))
        if offset_bytes is None:
            return None
        return Buffer(self.segment, offset_bytes, self.segment.part(offset_bytes, size_bytes))

    def free(self, buffer: Buffer) -> None:
        """Take back a buffer that nobody uses any more. Raises ValueError if it is free already."""
        with self._lock:
            self._free.give(buffer.offset_bytes, _aligned(len(buffer.memory)))


def _aligned(size_bytes: int) -> int:
    return max(1, -(-size_bytes // ALIGNMENT_BYTES)) * ALIGNMENT_BYTES
