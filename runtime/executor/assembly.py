"""Inputs that are put together from the pieces of several shards."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime.lowering.resharding import Piece
from runtime.lowering.subprograms import Receipt

Array = np.ndarray[Any, Any]


class Assembly:
    """An input in the making. Pieces of ragged arrays follow each other in the order of their shards."""

    def __init__(self, receipt: Receipt, empty: Callable[[Sequence[int], str], Array]) -> None:
        self._left = receipt.sources
        spec = receipt.edge.spec
        self._whole = None if spec.is_ragged else empty(receipt.shape, spec.dtype)
        self._pieces: dict[int, Array] = {}

    def place(self, piece: Piece, size_bytes: int) -> memoryview | None:
        """Return the memory of a piece, if it is one row of so many bytes."""
        if self._whole is None:
            return None
        part = self._whole[piece.destination_slices]
        return part.data.cast("B") if part.flags.c_contiguous and part.nbytes == size_bytes else None

    def add(self, piece: Piece, array: Array | None) -> bool:
        """Add a piece, or note that it will not come; return whether it was the last one."""
        if array is not None and self._whole is not None:
            part = self._whole[piece.destination_slices]
            if _address(part) != _address(array):  # else it was received there
                np.copyto(part, array)
        elif array is not None:
            self._pieces[piece.source] = array
        self._left -= 1
        return self._left == 0

    def finished(self) -> Array:
        """Return the whole, of the pieces that came."""
        if self._whole is not None:
            return self._whole
        return np.concatenate([self._pieces[source] for source in sorted(self._pieces)])


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
