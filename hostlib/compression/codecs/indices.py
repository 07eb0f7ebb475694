"""Ascending indices in few bits: Elias-Fano (Elias 1974; Fano 1971), as ``count`` of ``elements``.

The i-th index less i is a number from 0 to elements - count, and these numbers do not fall. Each is cut into its lower
bits, which are stored as they are, and its upper bits: bit upper + i of a bitmap is set. So the bitmap has a set bit
for each index, and is as long as the upper bits of the largest number need. With no lower bits it is the plain bitmap
of the chosen elements.

The size depends on ``elements`` and ``count`` alone, at most 0.6 bits per index above the entropy log2 C(n, k) / k, so
that ranks gather payloads of one size without telling each other. Golomb-Rice codes of the gaps have this size at
worst, and about 0.4 bits less on average, of which an all-gather of equal sizes gains nothing; they take twice as long
to decode (``benchmarks/compression_codecs.py``).
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hostlib.compression.codecs.errors import CorruptPayloadError
from hostlib.compression.codecs.machine_code import compiled, trailing_zeros

IndexArray = NDArray[np.int32]
Words = NDArray[np.uint64]

_WORD_BITS = 64
_INDEX_BITS = 31


def size_words(elements: int, count: int) -> int:
    """Return in how many 64-bit words that many indices below ``elements`` fit; never fewer for a larger count."""
    upper_bits, lower_bits = _sizes_bits(elements, count, _low_bits(elements, count))
    return -(-(upper_bits + lower_bits) // _WORD_BITS) + 1  # both parts begin with a word


def encode(indices: IndexArray, elements: int, words: Words) -> None:
    """Write ascending indices below ``elements`` to words, at least ``size_words`` of them.

    Raises:
        ValueError: The indices do not ascend or lie outside, or there are too few words.
    """
    low_bits = _low_bits(elements, len(indices))
    upper_words, lower_words = _sizes_words(elements, len(indices), low_bits)
    if len(words) < upper_words + lower_words:
        raise ValueError(f"words: expected at least {upper_words + lower_words}, got {len(words)}")
    words[:] = 0
    if not _encode(indices, elements, low_bits, words[:upper_words], words[upper_words:]):
        raise ValueError(f"indices: expected ascending numbers from 0 to below {elements}")


def decode(words: Words, count: int, elements: int) -> IndexArray:
    """Return the indices that ``encode`` wrote.

    Raises:
        CorruptPayloadError: These words are no encoding of ``count`` indices below ``elements``.
    """
    if not 0 <= count <= elements:
        raise CorruptPayloadError(f"payload: {count} indices of {elements} elements")
    low_bits = _low_bits(elements, count)
    upper_words, lower_words = _sizes_words(elements, count, low_bits)
    if len(words) < upper_words + lower_words:
        raise CorruptPayloadError(f"payload: {len(words)} words of indices, expected {upper_words + lower_words}")
    indices = np.empty(count, np.int32)
    lower = words[upper_words : upper_words + lower_words]
    if not _decode(words[:upper_words], lower, low_bits, elements, indices):
        raise CorruptPayloadError(f"payload: it has no {count} ascending indices below {elements}")
    return indices


@lru_cache(maxsize=1024)
def _low_bits(elements: int, count: int) -> int:
    """Return how many lower bits make the encoding the shortest."""
    return min(range(_INDEX_BITS), key=lambda low_bits: sum(_sizes_bits(elements, count, low_bits)))


def _sizes_bits(elements: int, count: int, low_bits: int) -> tuple[int, int]:
    return count + ((elements - count) >> low_bits), count * low_bits


def _sizes_words(elements: int, count: int, low_bits: int) -> tuple[int, int]:
    upper_bits, lower_bits = _sizes_bits(elements, count, low_bits)
    return -(-upper_bits // _WORD_BITS), -(-lower_bits // _WORD_BITS)


@compiled("boolean(int32[::1], int64, int64, uint64[::1], uint64[::1])")
def _encode(indices: IndexArray, elements: int, low_bits: int, upper: Words, lower: Words) -> bool:
    one, shift = np.uint64(1), np.uint64(low_bits)
    mask = (one << shift) - one
    word, used, position = np.uint64(0), np.uint64(0), 0
    previous = np.int64(-1)
    for number in range(len(indices)):
        index = np.int64(indices[number])
        if index <= previous or index >= elements:
            return False
        previous = index
        value = np.uint64(index - number)
        bit = (value >> shift) + np.uint64(number)
        upper[bit >> np.uint64(6)] |= one << (bit & np.uint64(63))
        if low_bits:
            low = value & mask
            word |= low << used
            used += shift
            if used >= np.uint64(64):
                lower[position] = word
                position += 1
                used -= np.uint64(64)
                word = low >> (shift - used)
    if used:
        lower[position] = word
    return True


@compiled("boolean(uint64[::1], uint64[::1], int64, int64, int32[::1])")
def _decode(upper: Words, lower: Words, low_bits: int, elements: int, indices: IndexArray) -> bool:
    one, shift = np.uint64(1), np.uint64(low_bits)
    mask = (one << shift) - one
    start = np.uint64(0)
    previous = np.int64(-1)
    number = 0
    for position in range(len(upper)):
        word = upper[position]
        while word:
            if number == len(indices):
                return False
            value = (np.uint64(64 * position - number) + trailing_zeros(word)) << shift
            word &= word - one
            if low_bits:
                offset = start & np.uint64(63)
                low = lower[start >> np.uint64(6)] >> offset
                if offset + shift > np.uint64(64):
                    low |= lower[(start >> np.uint64(6)) + one] << (np.uint64(64) - offset)
                start += shift
                value |= low & mask
            index = np.int64(value) + number
            if index <= previous or index >= elements:
                return False
            previous = index
            indices[number] = index
            number += 1
    return number == len(indices)
