"""Golomb-Rice codes of the gaps between ascending indices, for comparison with ``hostlib.compression.codecs.indices``.

Each gap less 1 is its quotient by 2^bits in unary, then its ``bits`` lower bits (Rice 1979). On average they are
shorter than Elias-Fano's form of the same indices, and at worst as long. Where a gap ends is known only once it is
read, so that decoding cannot go on before.
"""

import numpy as np
from numpy.typing import NDArray

from hostlib.compression.codecs.machine_code import compiled, trailing_zeros

Indices = NDArray[np.int32]
Words = NDArray[np.uint64]


def best_bits(elements: int, count: int) -> int:
    """Return how many lower bits make the code of random indices the shortest on average."""
    left_out = 1 - count / elements

    def mean_bits(bits: int) -> float:
        stays = left_out ** (1 << bits)  # the probability that a quotient goes on
        return bits + 1 + stays / (1 - stays)

    return min(range(31), key=mean_bits)


def words_at_worst(elements: int, count: int, bits: int) -> int:
    """Return how many words hold any indices."""
    return (count * (bits + 1) + ((elements - count) >> bits)) // 64 + 2


@compiled("int64(int32[::1], int64, uint64[::1])")
def encode(indices: Indices, bits: int, words: Words) -> int:
    """Write the gaps to words that are 0, and return in how many bits."""
    one, shift = np.uint64(1), np.uint64(bits)
    mask = (one << shift) - one
    word, used, position = np.uint64(0), np.int64(0), 0
    previous = np.int64(-1)
    for index in indices:
        gap = np.uint64(index - previous - 1)
        previous = np.int64(index)
        used += np.int64(gap >> shift)
        while used >= 64:
            words[position] = word
            position, word, used = position + 1, np.uint64(0), used - 64
        code = one | ((gap & mask) << one)
        word |= code << np.uint64(used)
        used += bits + 1
        if used >= 64:
            words[position] = word
            position, used = position + 1, used - 64
            word = code >> np.uint64(bits + 1 - used) if used else np.uint64(0)
    words[position] = word
    return 64 * position + used


@compiled("boolean(uint64[::1], int64, int64, int32[::1])")
def decode(words: Words, bits: int, elements: int, indices: Indices) -> bool:
    """Read as many indices as there is room for; return whether they were there."""
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    start, end = np.int64(0), np.int64(64 * len(words))
    previous = np.int64(-1)
    for number in range(len(indices)):
        quotient = np.int64(0)
        word = np.uint64(0)
        while not word:
            if start >= end:
                return False
            word = words[start >> 6] >> np.uint64(start & 63)
            zeros = np.int64(trailing_zeros(word)) if word else 64 - (start & 63)
            quotient += zeros
            start += zeros
        start += 1
        if start + bits > end:
            return False
        low = np.uint64(0)
        if bits:
            offset = start & 63
            low = words[start >> 6] >> np.uint64(offset)
            if offset + bits > 64:
                low |= words[(start >> 6) + 1] << np.uint64(64 - offset)
            start += bits
        previous += 1 + ((quotient << bits) | np.int64(low & mask))
        if previous >= elements:
            return False
        indices[number] = previous
    return True
