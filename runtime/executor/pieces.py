"""What a piece of an array must be: its shape by the plan, and so the size of what comes."""

import math
from typing import Any

import numpy as np

from runtime.executor.hops import Arrival
from runtime.frames import FrameError

Array = np.ndarray[Any, Any]


def shape_of(size_bytes: int, arrival: Arrival) -> tuple[int, ...]:
    """Return the shape of a piece of so many bytes. Raises FrameError where it has none."""
    shape, item_bytes = arrival.shape, arrival.dtype.itemsize
    most_bytes = math.prod(shape) * item_bytes
    if arrival.receipt.edge.spec.is_ragged and size_bytes < most_bytes:
        row_bytes = math.prod(shape[1:]) * item_bytes
        if size_bytes % row_bytes == 0:
            return size_bytes // row_bytes, *shape[1:]
    if size_bytes != most_bytes:
        raise FrameError(f"expected {most_bytes} bytes in a piece, got {size_bytes}")
    return shape


def array_of(data: bytearray | memoryview, arrival: Arrival) -> Array:
    """Return a piece that has come as an array on the same memory. Raises FrameError where it cannot be one."""
    shape = shape_of(len(data), arrival)
    return np.frombuffer(data, arrival.dtype).reshape(shape)
