"""Big-endian numbers in a packet's bytes.

The code works byte by byte, in a form that LLVM turns into one load or store.
"""

import numpy as np
from numpy.typing import NDArray

from emulator.jit import inlined


@inlined
def read_8(octets: NDArray[np.uint8], at: np.uint64) -> np.uint64:
    """Read eight bytes as one number."""
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    five, six, seven = np.uint64(5), np.uint64(6), np.uint64(7)
    return (
        np.uint64(octets[at]) << np.uint64(56)
        | np.uint64(octets[at + one]) << np.uint64(48)
        | np.uint64(octets[at + two]) << np.uint64(40)
        | np.uint64(octets[at + three]) << np.uint64(32)
        | np.uint64(octets[at + four]) << np.uint64(24)
        | np.uint64(octets[at + five]) << np.uint64(16)
        | np.uint64(octets[at + six]) << np.uint64(8)
        | np.uint64(octets[at + seven])
    )


@inlined
def read_4(octets: NDArray[np.uint8], at: np.uint64) -> np.uint64:
    """Read four bytes as one number."""
    return (
        np.uint64(octets[at]) << np.uint64(24)
        | np.uint64(octets[at + np.uint64(1)]) << np.uint64(16)
        | np.uint64(octets[at + np.uint64(2)]) << np.uint64(8)
        | np.uint64(octets[at + np.uint64(3)])
    )


@inlined
def read_2(octets: NDArray[np.uint8], at: np.uint64) -> np.uint64:
    """Read two bytes as one number."""
    return np.uint64(octets[at]) << np.uint64(8) | np.uint64(octets[at + np.uint64(1)])


@inlined
def read_1(octets: NDArray[np.uint8], at: np.uint64) -> np.uint64:
    """Read one byte."""
    return np.uint64(octets[at])


@inlined
def write_8(octets: NDArray[np.uint8], at: np.uint64, value: np.uint64) -> None:
    """Write a number as eight bytes."""
    octets[at] = value >> np.uint64(56)
    octets[at + np.uint64(1)] = value >> np.uint64(48)
    octets[at + np.uint64(2)] = value >> np.uint64(40)
    octets[at + np.uint64(3)] = value >> np.uint64(32)
    octets[at + np.uint64(4)] = value >> np.uint64(24)
    octets[at + np.uint64(5)] = value >> np.uint64(16)
    octets[at + np.uint64(6)] = value >> np.uint64(8)
    octets[at + np.uint64(7)] = value


@inlined
def write_4(octets: NDArray[np.uint8], at: np.uint64, value: np.uint64) -> None:
    """Write the low 32 bits of a number as four bytes."""
    octets[at] = value >> np.uint64(24)
    octets[at + np.uint64(1)] = value >> np.uint64(16)
    octets[at + np.uint64(2)] = value >> np.uint64(8)
    octets[at + np.uint64(3)] = value


@inlined
def write_2(octets: NDArray[np.uint8], at: np.uint64, value: np.uint64) -> None:
    """Write the low 16 bits of a number as two bytes."""
    octets[at] = value >> np.uint64(8)
    octets[at + np.uint64(1)] = value


@inlined
def write_1(octets: NDArray[np.uint8], at: np.uint64, value: np.uint64) -> None:
    """Write the low 8 bits of a number as a byte."""
    octets[at] = value


@inlined
def read_left(octets: NDArray[np.uint8], at: np.uint64, size: np.uint64, first: np.uint64) -> np.uint64:
    """Read eight bytes from the one numbered ``first`` on; those from ``size`` on are zeros."""
    value = np.uint64(0)
    for number in range(8):
        value = value << np.uint64(8)
        if first + np.uint64(number) < size:
            value = value | np.uint64(octets[at + first + np.uint64(number)])
    return value


@inlined
def write_left(octets: NDArray[np.uint8], at: np.uint64, value: np.uint64, size: np.uint64, first: np.uint64) -> None:
    """Write a number as eight bytes from the one numbered ``first`` on, without those from ``size`` on."""
    for number in range(8):
        if first + np.uint64(number) < size:
            octets[at + first + np.uint64(number)] = value >> np.uint64(56 - 8 * number)
