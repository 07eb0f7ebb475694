"""What data that come from another host must be: their shape by the plan, and so their size."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.frames import FrameError

Array = np.ndarray[Any, Any]


def shape_of(size_bytes: int, shape: Sequence[int], dtype: "np.dtype[Any]", is_ragged: bool) -> tuple[int, ...]:
    """Return the shape of so many bytes, which may have fewer rows if ragged. Raises FrameError where it has none."""
    most_bytes = math.prod(shape) * dtype.itemsize
    if is_ragged and size_bytes < most_bytes:
        row_bytes = math.prod(shape[1:]) * dtype.itemsize
        if size_bytes % row_bytes == 0:
            return size_bytes // row_bytes, *shape[1:]
    if size_bytes != most_bytes:
        raise FrameError(f"expected {most_bytes} bytes in a piece, got {size_bytes}")
    return tuple(shape)


def array_of(data: bytearray | memoryview, shape: Sequence[int], dtype: "np.dtype[Any]", is_ragged: bool) -> Array:
    """Return what has come as an array on the same memory. Raises FrameError where it cannot be one."""
    found = shape_of(len(data), shape, dtype, is_ragged)
    return np.frombuffer(data, dtype).reshape(found)
