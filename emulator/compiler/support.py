"""Runtime functions of generated code, for operations that are not one Python operator."""

import numpy as np
from numpy.typing import NDArray

from emulator.jit import inlined


@inlined
def shift_left(value: np.uint64, bits: np.uint64) -> np.uint64:
    """Shift left; 64 bits or more give 0, as P4 defines it."""
    return value << bits if bits < np.uint64(64) else np.uint64(0)


@inlined
def shift_right(value: np.uint64, bits: np.uint64) -> np.uint64:
    """Shift right; 64 bits or more give 0, as P4 defines it."""
    return value >> bits if bits < np.uint64(64) else np.uint64(0)


@inlined
def shift_right_signed(value: np.uint64, bits: np.uint64) -> np.uint64:
    """Shift a value in two's complement right; 64 bits or more leave only its sign."""
    return np.uint64(np.int64(value) >> np.int64(min(bits, np.uint64(63))))


@inlined
def clamp_signed(value: np.uint64, lowest: np.uint64, highest: np.uint64) -> np.uint64:
    """Return the value, or the nearest one within limits; all three in two's complement."""
    if np.int64(value) < np.int64(lowest):
        return lowest
    return highest if np.int64(value) > np.int64(highest) else value


@inlined
def divided(dividend: np.uint64, divisor: np.uint64) -> np.uint64:
    """Return the quotient; 0 if the divisor is 0."""
    return dividend // divisor if divisor != np.uint64(0) else np.uint64(0)


@inlined
def remainder(dividend: np.uint64, divisor: np.uint64) -> np.uint64:
    """Return the remainder; 0 if the divisor is 0."""
    return dividend % divisor if divisor != np.uint64(0) else np.uint64(0)


@inlined
def multiply_high(left: np.uint64, right: np.uint64) -> np.uint64:
    """Return the upper 64 bits of the 128-bit product."""
    half, low = np.uint64(32), np.uint64(0xFFFF_FFFF)
    low_left, high_left, low_right, high_right = left & low, left >> half, right & low, right >> half
    middle = high_left * low_right + (low_left * low_right >> half)
    other = low_left * high_right + (middle & low)
    return high_left * high_right + (middle >> half) + (other >> half)


@inlined
def random_bits(state: np.uint64) -> np.uint64:
    """Return 64 pseudo-random bits for a state that grows by an odd number each time.

    This is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    """
    state = (state ^ state >> np.uint64(30)) * np.uint64(0xBF58_476D_1CE4_E5B9)
    state = (state ^ state >> np.uint64(27)) * np.uint64(0x94D0_49BB_1331_11EB)
    return state ^ state >> np.uint64(31)


@inlined
def subtract_saturating(minuend: np.uint64, subtrahend: np.uint64) -> np.uint64:
    """Return the difference, or 0 if it would be negative."""
    return minuend - subtrahend if minuend > subtrahend else np.uint64(0)


@inlined
def copy(
    source: NDArray[np.uint64], start: np.uint64, target: NDArray[np.uint64], target_start: np.uint64, count: np.uint64
) -> None:
    """Copy words from one array to another."""
    for index in range(count):
        target[target_start + index] = source[start + index]


@inlined
def move(octets: NDArray[np.uint8], source: np.uint64, target: np.uint64, count: np.uint64) -> None:
    """Move bytes within the array; the ranges may overlap."""
    if target < source:
        for index in range(count):
            octets[target + index] = octets[source + index]
    else:
        while count > np.uint64(0):
            count -= np.uint64(1)
            octets[target + count] = octets[source + count]
