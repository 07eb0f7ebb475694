"""What a piece of an array must be: its shape by the plan, and so the size of what comes."""

import math
from typing import Any

import numpy as np

from runtime.arrays import ArraySpec
from runtime.frames import FrameError
from runtime.lowering.resharding import Piece

Array = np.ndarray[Any, Any]


def shape_of(size_bytes: int, spec: ArraySpec, piece: Piece) -> tuple[int, ...]:
    """Return the shape of a piece of so many bytes. Raises FrameError where it has none."""
    shape = tuple([each.stop - each.start for each in piece.destination_slices])
    item_bytes = np.dtype(spec.dtype).itemsize
    most_bytes = math.prod(shape) * item_bytes
    if spec.is_ragged and size_bytes < most_bytes:
        row_bytes = math.prod(shape[1:]) * item_bytes
        if size_bytes % row_bytes == 0:
            return size_bytes // row_bytes, *shape[1:]
    if size_bytes != most_bytes:
        raise FrameError(f"expected {most_bytes} bytes in a piece, got {size_bytes}")
    return shape


def array_of(data: bytearray | memoryview, spec: ArraySpec, piece: Piece) -> Array:
    """Return a piece that has come as an array on the same memory. Raises FrameError where it cannot be one."""
    shape = shape_of(len(data), spec, piece)
    return np.frombuffer(data, spec.dtype).reshape(shape)
