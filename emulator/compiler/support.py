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
def copy(
    source: NDArray[np.uint64], start: np.uint64, target: NDArray[np.uint64], target_start: np.uint64, count: np.uint64
) -> None:
    """Copy words from one array to another."""
    for index in range(count):
        target[target_start + index] = source[start + index]


@compiled
def move(octets: NDArray[np.uint8], source: np.uint64, target: np.uint64, count: np.uint64) -> None:
    """Move bytes within the array; the ranges may overlap."""
    if target < source:
        for index in range(count):
            octets[target + index] = octets[source + index]
    else:
        while count > np.uint64(0):
            count -= np.uint64(1)
            octets[target + count] = octets[source + count]
