"""Inputs that are put together from the pieces of several shards."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime.lowering.resharding import Piece
from runtime.lowering.subprograms import Receipt

Array = np.ndarray[Any, Any]


class Assembly:
    """An input in the making. Pieces of ragged arrays follow each other in the order of their shards.

    ``copy`` copies an array to another one, and calls back when it has. ``on_whole`` is called when all pieces that
    come are there, which is once ``add`` was called for each; then ``whole`` is the input.
    """

    def __init__(
        self,
        receipt: Receipt,
        empty: Callable[[Sequence[int], str], Array],
        copy: Callable[[Array, Array, Callable[[], None]], None],
        on_whole: Callable[[], None],
    ) -> None:
        self._left = receipt.sources
        self._copy = copy
        self._empty = empty
        self._on_whole = on_whole
        self._spec = receipt.edge.spec
        self._pieces: dict[int, Array] = {}
        self.whole: Array | None = None if self._spec.is_ragged else empty(receipt.shape, self._spec.dtype)

    def place(self, piece: Piece, size_bytes: int) -> memoryview | None:
        """Return the memory of a piece, if it is one row of so many bytes."""
        if self.whole is None:
            return None
        part = self.whole[piece.destination_slices]
        return part.data.cast("B") if part.flags.c_contiguous and part.nbytes == size_bytes else None

    def add(self, piece: Piece, array: Array | None) -> None:
        """Add a piece, or note that it will not come."""
        if self._spec.is_ragged:
            if array is not None:
                self._pieces[piece.source] = array
            self._left -= 1
            if self._left == 0:
                self._join()
        elif array is None or _address(part := self._part(piece)) == _address(array):  # it was received there
            self._end_piece()
        else:
            self._copy(part, array, self._end_piece)

    def _part(self, piece: Piece) -> Array:
        assert self.whole is not None
        return self.whole[piece.destination_slices]

    def _join(self) -> None:
        """Put the pieces of a ragged array one after another."""
        pieces = [self._pieces.pop(source) for source in sorted(self._pieces)]
        rows = sum(map(len, pieces))
        self.whole = self._empty((rows, *self._spec.shape[1:]), self._spec.dtype)
        self._left = len(pieces)
        begin = 0
        for piece in pieces:
            self._copy(self.whole[begin : begin + len(piece)], piece, self._end_piece)
            begin += len(piece)
        if not pieces:
            self._on_whole()

    def _end_piece(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._on_whole()


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
