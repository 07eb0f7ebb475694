"""Which blocks of a segment have memory, and when each was last used. Pure.

Time passes in periods. A block that was not used in this period nor in the one before is *cold*: what a program needs
again and again stays, what only a peak needed is given back.
"""

from array import array
from collections.abc import Iterator

BLOCK_BYTES = 1 << 20
_NONE = -1


class Warmth:
    """The blocks of a segment."""

    def __init__(self, size_bytes: int) -> None:
        self._last = array("q", [_NONE]) * -(-size_bytes // BLOCK_BYTES)
        self._period = 0

    def age(self) -> None:
        """Begin another period."""
        self._period += 1

    def use(self, offset_bytes: int, size_bytes: int) -> None:
        """Note that a range is used, or was until now."""
        first, end = offset_bytes // BLOCK_BYTES, -(-(offset_bytes + size_bytes) // BLOCK_BYTES)
        self._last[first:end] = array("q", [self._period]) * (end - first)

    def warm(self, offset_bytes: int, size_bytes: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of a range that may have content: offset and size."""
        end_bytes = offset_bytes + size_bytes
        for block in range(offset_bytes // BLOCK_BYTES, -(-end_bytes // BLOCK_BYTES)):
            if self._last[block] != _NONE:
                begin = max(offset_bytes, block * BLOCK_BYTES)
                yield begin, min(end_bytes, (block + 1) * BLOCK_BYTES) - begin

    def cold(self, offset_bytes: int, size_bytes: int) -> Iterator[int]:
        """Yield where the cold blocks begin that lie wholly in a range, last ones first."""
        for block in range((offset_bytes + size_bytes) // BLOCK_BYTES - 1, -(-offset_bytes // BLOCK_BYTES) - 1, -1):
            if _NONE < self._last[block] < self._period - 1:
                yield block * BLOCK_BYTES

    def clear(self, offset_bytes: int) -> None:
        """Note that the block that begins there has no memory any more."""
        self._last[offset_bytes // BLOCK_BYTES] = _NONE
