"""All-reduce of large arrays between two shards of one machine, in memory that both have.

Gloo would send them through sockets, in parts, by threads of its own. Here each shard copies its array to where the
other one reads it, and both compute the same of the two arrays, that of the lower shard first. So both get the same
bits, and those of Gloo.
"""

from typing import Any

import numpy as np

from runtime.collectives import Reduction
from runtime.executor.small_reductions import COMBINE, SmallReductions
from runtime.transport.shared_memory import Segment

MOST_BYTES = 1 << 24
"""Larger arrays go through Gloo: a pair of shards keeps four times as much."""

Array = np.ndarray[Any, Any]


class SharedReductions:
    """The memory of one of two shards, and that of the other one as it sees it.

    Each has two **rooms**, which it uses in turn. When both meet, the other one has read what was in the room before.
    """

    def __init__(self, connections: SmallReductions, index: int) -> None:
        self._connections = connections
        self._index = index
        self._room_bytes = 0
        self._segments: list[Segment] = []
        self._room = 0

    def reduce(self, array: Array, reduction: Reduction) -> None:
        """Reduce a row of numbers of both shards, in place.

        Raises OSError where the other shard ended its connections, and ValueError where its array has another size.
        """
        if array.nbytes > self._room_bytes:
            self._grow(array.nbytes)
        self._room = 1 - self._room
        own, theirs = (self._array_in(segment, array) for segment in self._segments)
        own[...] = array
        self._connections.meet(array.nbytes)
        COMBINE[reduction](*((own, theirs) if self._index == 0 else (theirs, own)), out=array)

    def _grow(self, size_bytes: int) -> None:
        """Make rooms of such a size, and swap them with the other shard, which does the same."""
        room_bytes = 1 << (size_bytes - 1).bit_length()
        own = Segment.create(2 * room_bytes)
        try:
            (descriptor,) = self._connections.meet(size_bytes, [own.descriptor])
        finally:
            own.close_descriptor()
        self._segments = [own, Segment.attach(descriptor)]
        self._room_bytes = room_bytes

    def _array_in(self, segment: Segment, like: Array) -> Array:
        part = segment.part(self._room * self._room_bytes, like.nbytes)
        return np.frombuffer(part, like.dtype)
