"""Top-k: the elements of the largest magnitude, exactly as many as asked for.

A sample gives a threshold that a few more elements than wanted will reach (Lin et al. 2018, "Deep Gradient
Compression", section 5). One pass over the vector collects those, and the exact threshold is found among them. Where
too many reach the sampled threshold it rises during the pass; where too few do, a second pass does without. So the
choice never depends on the sample: it is the largest magnitudes, of equal ones those with the lowest index, and no
zeros.

The same pass adds the gradient to what earlier steps left out, with momentum correction where there is a velocity.
Magnitudes are compared as the bits of floats without their sign, which have the same order as the numbers.
"""

import numpy as np
from numpy.typing import NDArray

from hostlib.compression.codecs.errors import NonFiniteError
from hostlib.compression.codecs.machine_code import compiled, inlined, trailing_zeros

FloatArray = NDArray[np.float32]
IndexArray = NDArray[np.int32]

MAX_ELEMENTS = (1 << 31) - 1
"""Indices have 32 bits, with a sign."""

_MAGNITUDE = 0x7FFFFFFF
_INFINITY = 0x7F800000
_LARGEST = np.float32(np.finfo(np.float32).max)
_LEAST = 1
"""The least magnitude that is not zero."""

_SAMPLES = 16_384
_GOLDEN = 2_654_435_769
"""2^32 over the golden ratio: its multiples spread evenly over 32 bits, whatever period the vector has."""
_CHUNK = 4096
"""Elements that are updated and then searched while they are in the nearest cache."""
_SPARE = 4096

_NOTHING = np.empty(0, np.float32)


def largest(vector: FloatArray, count: int) -> IndexArray:
    """Return the ascending indices of the elements of the largest magnitude.

    Args:
        vector: Contiguous and finite; it is not changed.
        count: How many. If fewer are not zero, those are returned.

    Raises:
        NonFiniteError: The vector has NaN or an infinity.
    """
    _check_finite(vector)
    return _select(vector, _NOTHING, _NOTHING, np.float32(0), _checked(vector, count))


def accumulate(
    residual: FloatArray, gradient: FloatArray, count: int, velocity: FloatArray | None = None, momentum: float = 0.0
) -> IndexArray:
    """Add a gradient to what was not sent before, and return the ascending indices of the largest magnitudes.

    Without a velocity: residual += gradient. With one, momentum correction (Lin et al. 2018, section 3.2):
    velocity = momentum x velocity + gradient; residual += velocity. Sums that overflow stay at the largest float.

    Args:
        residual: Contiguous and finite, as are the other arrays, of the same length.
        gradient: It is not changed.
        count: How many indices. If fewer elements are not zero, theirs are returned.
        velocity: What the momentum has accumulated.
        momentum: Its factor, 0 to below 1.

    Raises:
        NonFiniteError: The gradient has NaN or an infinity. Nothing is changed then.
        ValueError: The lengths differ.
    """
    velocity = _NOTHING if velocity is None else velocity
    if len(gradient) != len(residual) or len(velocity) not in (0, len(residual)):
        raise ValueError(
            f"gradient, velocity: expected {len(residual)} elements as in the residual, got {len(gradient)} and "
            f"{len(velocity)}"
        )
    _check_finite(gradient)
    return _select(residual, gradient, velocity, np.float32(momentum), _checked(residual, count))


def take(vector: FloatArray, indices: IndexArray, velocity: FloatArray | None = None) -> FloatArray:
    """Return the values at ascending indices that lie in the vector, and set them to 0 there and in the velocity."""
    return _take(vector, _NOTHING if velocity is None else velocity, indices)


def _checked(vector: FloatArray, count: int) -> int:
    if len(vector) > MAX_ELEMENTS:
        raise ValueError(f"vector: expected at most {MAX_ELEMENTS} elements, got {len(vector)}")
    if not 0 <= count <= len(vector):
        raise ValueError(f"count: must lie between 0 and {len(vector)}, not {count}")
    return count


def _check_finite(vector: FloatArray) -> None:
    if not _is_finite(vector):
        raise NonFiniteError("gradient: there is NaN or an infinity in it")


@compiled("boolean(float32[::1])")
def _is_finite(vector: FloatArray) -> bool:
    bits = vector.view(np.int32)
    for start in range(0, len(bits), _CHUNK):
        part = bits[start : start + _CHUNK]
        highest = np.int32(0)
        for index in range(len(part)):
            highest = np.int32(max(highest, np.int32(part[index] & _MAGNITUDE)))
        if highest >= _INFINITY:
            return False
    return True


@inlined
def _saturated(value: np.float32) -> np.float32:
    return min(max(value, -_LARGEST), _LARGEST)


@inlined
def _bits(value: np.float32) -> np.int32:
    return np.float32(value).view(np.int32) & np.int32(_MAGNITUDE)


@inlined
def _kth_largest(magnitudes: IndexArray, found: int, count: int) -> int:
    """Return the k-th largest of the first magnitudes, k at least 1 and at most their number.

    It counts them by their upper 11 bits, then those in the right class by the next 10, and by the last 10.
    """
    counts = np.zeros(2048, np.int64)
    prefix, left = 0, count
    for shift, mask in ((20, 0x7FF), (10, 0x3FF), (0, 0x3FF)):
        counts[:] = 0
        above = shift + 10
        for position in range(found):
            magnitude = magnitudes[position]
            if shift == 20 or magnitude >> above == prefix >> above:
                counts[(magnitude >> shift) & mask] += 1
        digit = mask
        while counts[digit] < left:
            left -= counts[digit]
            digit -= 1
        prefix |= digit << shift
    return prefix


@inlined
def _keep_largest(indices: IndexArray, magnitudes: IndexArray, found: int, count: int) -> int:
    """Move the largest magnitudes, of equal ones the first, to the front, in order; return the least of them."""
    threshold = _kth_largest(magnitudes, found, count)
    equal = count
    for position in range(found):
        equal -= magnitudes[position] > threshold
    kept = 0
    for position in range(found):
        magnitude = magnitudes[position]
        if magnitude == threshold:
            equal -= 1
        if magnitude > threshold or (magnitude == threshold and equal >= 0):
            indices[kept], magnitudes[kept] = indices[position], magnitude
            kept += 1
    return threshold


@inlined
def _sampled_floor(
    residual: FloatArray, gradient: FloatArray, velocity: FloatArray, momentum: np.float32, count: int
) -> int:
    """Return a magnitude that somewhat more than ``count`` elements will reach, after the update."""
    size = len(residual)
    if size < 4 * _SAMPLES:
        return _LEAST
    expected = _SAMPLES * count / size
    rank = int(expected + 4 * np.sqrt(expected) + 2)
    if rank >= _SAMPLES:
        return _LEAST
    magnitudes = np.empty(_SAMPLES, np.int32)
    for sample in range(_SAMPLES):
        index = (((sample * _GOLDEN) & 0xFFFFFFFF) * size) >> 32
        value = residual[index]
        if len(velocity):
            value += momentum * velocity[index]
        if len(gradient):
            value += gradient[index]
        magnitudes[sample] = _bits(value)
    return max(_kth_largest(magnitudes, _SAMPLES, rank), _LEAST)


@inlined
def _add(residual: FloatArray, added: FloatArray) -> None:
    for index in range(len(residual)):
        residual[index] = _saturated(residual[index] + added[index])


@inlined
def _add_with_momentum(residual: FloatArray, gradient: FloatArray, velocity: FloatArray, momentum: np.float32) -> None:
    for index in range(len(residual)):
        velocity[index] = _saturated(momentum * velocity[index] + gradient[index])
        residual[index] = _saturated(residual[index] + velocity[index])


@inlined
def _mark(bits: IndexArray, floor: int, is_reached: NDArray[np.uint8]) -> None:
    """Say of each magnitude whether it reaches the floor; of elements beyond the vector's end, that they do not."""
    least = np.int32(floor)
    is_reached[len(bits) :] = 0
    for index in range(len(bits)):
        is_reached[index] = np.int32(bits[index] & _MAGNITUDE) >= least


@compiled("int32[::1](float32[::1], float32[::1], float32[::1], float32, int64)")
def _select(
    residual: FloatArray, gradient: FloatArray, velocity: FloatArray, momentum: np.float32, count: int
) -> IndexArray:
    size = len(residual)
    bits = residual.view(np.int32)
    capacity = min(size, 2 * count + _SPARE)
    indices = np.empty(capacity, np.int32)
    magnitudes = np.empty(capacity, np.int32)
    is_reached = np.empty(_CHUNK, np.uint8)
    reached_words = is_reached.view(np.uint64)
    floor = _sampled_floor(residual, gradient, velocity, momentum, count)
    is_updated, is_complete, found = False, False, 0
    while not is_complete:
        is_complete = floor <= _LEAST
        for start in range(0, size, _CHUNK):
            stop = start + _CHUNK
            if not is_updated and len(velocity):
                _add_with_momentum(residual[start:stop], gradient[start:stop], velocity[start:stop], momentum)
            elif not is_updated and len(gradient):
                _add(residual[start:stop], gradient[start:stop])
            _mark(bits[start:stop], floor, is_reached)
            for number in range(len(reached_words)):
                word = reached_words[number]
                while word:
                    index = start + 8 * number + np.int64(trailing_zeros(word) >> np.uint64(3))
                    word &= word - np.uint64(1)
                    if found == capacity:
                        floor = _keep_largest(indices, magnitudes, found, count) + 1
                        found = count
                    magnitude = bits[index] & _MAGNITUDE
                    if magnitude >= floor:
                        indices[found], magnitudes[found] = index, magnitude
                        found += 1
        if found >= count:
            is_complete = True
        elif not is_complete:
            is_updated, floor, found = True, _LEAST, 0
    if found > count:
        _keep_largest(indices, magnitudes, found, count)
        found = count
    return indices[:found].copy()


@compiled("float32[::1](float32[::1], float32[::1], int32[::1])")
def _take(vector: FloatArray, velocity: FloatArray, indices: IndexArray) -> FloatArray:
    values = np.empty(len(indices), np.float32)
    for position in range(len(indices)):
        index = indices[position]
        values[position] = vector[index]
        vector[index] = 0
        if len(velocity):
            velocity[index] = 0
    return values
