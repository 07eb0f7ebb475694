"""What generated code calls for operations that are not one Python operator."""

import numpy as np
from numpy.typing import NDArray

from emulator.jit import compiled


@compiled
def shift_left(value: np.uint64, bits: np.uint64) -> np.uint64:
    """Shift that gives 0 from 64 bits on, as P4 defines it."""
    return value << bits if bits < np.uint64(64) else np.uint64(0)


@compiled
def shift_right(value: np.uint64, bits: np.uint64) -> np.uint64:
    """Shift that gives 0 from 64 bits on, as P4 defines it."""
    return value >> bits if bits < np.uint64(64) else np.uint64(0)


@compiled
def subtract_saturating(minuend: np.uint64, subtrahend: np.uint64) -> np.uint64:
    """The difference, or 0 where it would be negative."""
    return minuend - subtrahend if minuend > subtrahend else np.uint64(0)


@compiled
def move(octets: NDArray[np.uint8], source: int, target: int, count: int) -> None:
    """Move bytes within the array; the ranges may overlap."""
    if target < source:
        for index in range(count):
            octets[target + index] = octets[source + index]
    else:
        for index in range(count - 1, -1, -1):
            octets[target + index] = octets[source + index]
