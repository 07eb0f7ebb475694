"""Plain, slow references of the codecs, and the vectors that they are tried with."""

import math

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]

ULP = 2.0**-23
TINY = 2.0**-149
"""The least positive float."""

ROUNDING = {"fp32": 0, "bf16": 2**-8, "fp16": 2**-11, "int8": 1 / 127, "int4": 1 / 7}
"""By which share of the largest magnitude a value may be off, by precision."""

FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)


def vectors(most: int = 300) -> st.SearchStrategy[FloatArray]:
    """Return vectors of any finite values, with many equal ones and zeros among them."""
    elements = st.one_of(FINITE, st.sampled_from([0.0, -0.0, 1.0, -1.0, TINY]), st.floats(-1, 1, width=32))
    return arrays.arrays(np.float32, st.integers(0, most), elements=elements)


def pairs(most: int = 300) -> st.SearchStrategy[tuple[FloatArray, int]]:
    """Return vectors, each with a count that is possible for it."""
    return vectors(most).flatmap(lambda vector: st.tuples(st.just(vector), st.integers(0, len(vector))))


def large_vectors(size: int) -> dict[str, FloatArray]:
    """Return vectors that are large enough to be sampled, by what is special about them."""
    random = np.random.default_rng(1)
    normal = random.standard_normal(size).astype(np.float32)
    return {
        "normal": normal,
        "heavy tails": random.standard_cauchy(size).astype(np.float32),
        "equal": np.full(size, -0.5, np.float32),
        "zeros": np.zeros(size, np.float32),
        "ascending": np.arange(size, dtype=np.float32),
        "denormal": (random.integers(-1000, 1000, size) * TINY).astype(np.float32),
        "mostly zero": np.where(random.random(size) < 0.001, normal, np.float32(0)),
        "few values": random.integers(-3, 4, size).astype(np.float32),
        "largest": np.where(normal > 0, np.finfo(np.float32).max, normal),
    }


def largest(vector: FloatArray, count: int) -> NDArray[np.int64]:
    """Return the ascending indices of the largest magnitudes but zeros; of equal ones the first."""
    order = np.argsort(-np.abs(vector.astype(np.float64)), kind="stable")[:count]
    return np.sort(order[vector[order] != 0])


def accumulated(residual: FloatArray, gradient: FloatArray, velocity: FloatArray | None, momentum: float) -> FloatArray:
    """Return the residual after it has got a gradient, and update the velocity."""
    most = np.finfo(np.float32).max
    with np.errstate(over="ignore"):
        if velocity is None:
            return np.clip(residual + gradient, -most, most)
        velocity[:] = np.clip(np.float32(momentum) * velocity + gradient, -most, most)
        return np.clip(residual + velocity, -most, most)


def entropy_bytes(elements: int, count: int) -> float:
    """Return log2 C(elements, count) in bytes."""
    nats = math.lgamma(elements + 1) - math.lgamma(count + 1) - math.lgamma(elements - count + 1)
    return nats / math.log(2) / 8
