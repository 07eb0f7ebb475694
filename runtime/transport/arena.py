"""An arena: one segment of which arrays are parts, so that peers map it once, and its warm pages are reused."""

import ctypes
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from threading import RLock

from runtime.transport.shared_memory import Segment
from runtime.transport.warmth import BLOCK_BYTES, Warmth

ALIGNMENT_BYTES = 64
"""Ranges begin at multiples of it: a line of the cache."""


class FreeList:
    """The free ranges of a segment, by offset; first fit. Pure."""

    def __init__(self, size_bytes: int) -> None:
        self._offsets = [0] if size_bytes else []
        self._sizes = [size_bytes] if size_bytes else []

    @property
    def free_bytes(self) -> int:
        """How much is free, in whatever pieces."""
        return sum(self._sizes)

    @property
    def ranges(self) -> Sequence[tuple[int, int]]:
        """Offset and size of each."""
        return tuple(zip(self._offsets, self._sizes, strict=True))

    def take_at(self, offset_bytes: int, size_bytes: int) -> None:
        """Take a part of a free range. Raises ValueError if it is not free."""
        index = bisect_right(self._offsets, offset_bytes) - 1
        begin, end = (self._offsets[index], self._offsets[index] + self._sizes[index]) if index >= 0 else (0, 0)
        if not begin <= offset_bytes <= offset_bytes + size_bytes <= end:
            raise ValueError(f"{size_bytes} bytes at {offset_bytes}: a part of them is taken already")
        rest = [(begin, offset_bytes), (offset_bytes + size_bytes, end)]
        left = [(first, last - first) for first, last in rest if last > first]
        self._offsets[index : index + 1] = [offset for offset, _ in left]
        self._sizes[index : index + 1] = [size for _, size in left]

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
    """Ranges of one segment. Any thread may use it.

    The segment takes memory as it is written to, so it may be much larger than what is in use. What was written to
    stays, to be used again, until ``give_back`` finds that it was not for long.

    A range may be freed at any time, also while Python's garbage collector interrupts ``allocate``. So ``free`` only
    notes it, and the next allocation frees what was noted.
    """

    def __init__(self, size_bytes: int) -> None:
        self.segment = Segment.create(size_bytes)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.segment.view))
        self._size_bytes = size_bytes - size_bytes % ALIGNMENT_BYTES
        self._free = FreeList(self._size_bytes)
        self._warmth = Warmth(size_bytes)
        self._taken: dict[int, int] = {}
        self._noted: deque[int] = deque()
        self._lock = RLock()
        self._is_changing = False

    @property
    def used_bytes(self) -> int:
        """How much is in use, in whole lines of the cache."""
        with self._changing():
            return self._size_bytes - self._free.free_bytes

    def size_bytes(self, offset_bytes: int) -> int:
        """Return how large the range is that begins there. Raises KeyError if none does."""
        return self._taken[offset_bytes]

    def allocate(self, size_bytes: int) -> int | None:
        """Return the offset of a range whose contents are arbitrary; None if no free range is as large."""
        return self._allocate(size_bytes, None)

    def allocate_zeros(self, size_bytes: int) -> int | None:
        """Return the offset of a range of zeros; None if no free range is as large."""
        warm: list[tuple[int, int]] = []
        offset_bytes = self._allocate(size_bytes, warm)
        for begin, part_bytes in warm:  # the others are zeros already
            ctypes.memset(self.address + begin, 0, part_bytes)
        return offset_bytes

    def _allocate(self, size_bytes: int, warm: list[tuple[int, int]] | None) -> int | None:
        """Return the offset of a new range; which parts of it may have content is added to ``warm``, if that is one."""
        with self._changing() as may_change:
            if not may_change:
                return None
            size_bytes = _aligned(size_bytes)
            offset_bytes = self._free.take(size_bytes)
            if offset_bytes is not None:
                self._taken[offset_bytes] = size_bytes
                if warm is not None:
                    warm += self._warmth.warm(offset_bytes, size_bytes)
                self._warmth.use(offset_bytes, size_bytes)
            return offset_bytes

    def age(self) -> None:
        """Begin another period, by which ``give_back`` goes."""
        with self._changing():
            self._warmth.age()

    def give_back(self, most_bytes: int) -> int:
        """Give memory back that is free and was not used in this period nor in the one before; return how much."""
        with self._changing() as may_change:
            found = list(islice(self._cold(), most_bytes // BLOCK_BYTES)) if may_change else []
            for offset_bytes in found:  # so that nobody else gets them meanwhile
                self._free.take_at(offset_bytes, BLOCK_BYTES)
        for offset_bytes in found:
            self.segment.give_back(offset_bytes, BLOCK_BYTES)
        with self._changing():
            for offset_bytes in found:
                self._warmth.clear(offset_bytes)
                self._free.give(offset_bytes, BLOCK_BYTES)
        return len(found) * BLOCK_BYTES

    def _cold(self) -> Iterator[int]:
        """Yield the blocks that are free and cold; the last ones first, for the first ones are taken first."""
        for offset_bytes, size_bytes in reversed(self._free.ranges):
            yield from self._warmth.cold(offset_bytes, size_bytes)

    def free(self, offset_bytes: int) -> None:
        """Take back a range that nobody uses any more; call it once for each."""
        self._noted.append(offset_bytes)

    @contextmanager
    def _changing(self) -> Iterator[bool]:
        """Free what was noted, and keep others out.

        Yields whether ranges may be taken: not by what the garbage collector calls in the midst of another change.
        """
        with self._lock:
            if self._is_changing:
                yield False
                return
            self._is_changing = True
            try:
                while self._noted:
                    offset_bytes = self._noted.popleft()
                    size_bytes = self._taken.pop(offset_bytes)
                    self._warmth.use(offset_bytes, size_bytes)
                    self._free.give(offset_bytes, size_bytes)
                yield True
            finally:
                self._is_changing = False


def _aligned(size_bytes: int) -> int:
    return max(1, -(-size_bytes // ALIGNMENT_BYTES)) * ALIGNMENT_BYTES
