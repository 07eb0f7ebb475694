"""Vectors of fp32 values as bytes, in each precision. Sparse and dense payloads have such bytes in them.

fp16 and bf16 are rounded to nearest, after multiplication by a power of two that puts the largest magnitude just below
the largest of fp16: nothing overflows, and gradients far below 1 keep their bits. ``int8`` and ``int4`` have scales of
their own.
"""

import math

import numpy as np
import torch

from hostlib.compression.choice import Precision
from hostlib.compression.codecs import int4, int8

_TYPES = {Precision.FP32: torch.float32, Precision.BF16: torch.bfloat16, Precision.FP16: torch.float16}
_INTEGERS = {Precision.INT8: int8, Precision.INT4: int4}
_SAFE_EXPONENT = 15
"""Below the overflow of fp16 at 65,520."""
_MAX_SCALE_EXPONENT = 126
_LARGEST_POWER = 2.0**127
"""Of two, that a float can be."""
_CACHED = 1 << 16
"""Elements whose intermediate results stay in a core's cache."""


def size_bytes(count: int, precision: Precision) -> int:
    """Return in how many bytes that many values are coded."""
    if precision is Precision.INT8:
        return int8.size_bytes(count)
    if precision is Precision.INT4:
        return int4.size_bytes(count)
    item_bytes: int = _TYPES[precision].itemsize
    return count * item_bytes


def safe_scale(largest: float) -> float:
    """Return a power of two by which values of at most this magnitude are multiplied before they are fp16."""
    if not math.isfinite(largest):
        return 1.0
    exponent = _SAFE_EXPONENT - math.frexp(largest)[1]
    return math.ldexp(1.0, min(max(exponent, -_MAX_SCALE_EXPONENT), _MAX_SCALE_EXPONENT))


def encode(
    values: torch.Tensor, precision: Precision, seed: int, coded: torch.Tensor, unsent: torch.Tensor | None
) -> float:
    """Code values, and return the scale that ``add`` needs.

    Args:
        values: Of fp32, contiguous, one dimension. NaN and infinities are coded as NaN or infinities.
        precision: Of the coded values.
        seed: Of stochastic rounding, for ``int8`` and ``int4`` alone.
        coded: ``size_bytes`` bytes to write to, aligned to 4.
        unsent: Like ``values``, may be the same; it gets the values less what was coded. None: nobody wants it.
    """
    if precision in _INTEGERS:
        _INTEGERS[precision].encode(values, seed, coded, unsent)
        return 1.0
    rounded = coded.view(_TYPES[precision])
    if precision is Precision.FP32:
        rounded.copy_(values)
        if unsent is not None:
            unsent.zero_()
        return 1.0
    largest = largest_magnitude(values)
    scale = safe_scale(largest)
    most = _LARGEST_POWER * (2 - torch.finfo(rounded.dtype).eps)
    sendable = values.clamp(-most, most) if most < largest < math.inf else values  # rounding would make infinities
    for part in _parts(values):
        scaled = sendable[part] * scale
        rounded[part] = scaled
        if unsent is not None:
            torch.add(values[part], scaled.copy_(rounded[part]), alpha=-1 / scale, out=unsent[part])
    return scale


def add(coded: torch.Tensor, precision: Precision, scale: float, into: torch.Tensor) -> None:
    """Add coded values to an fp32 vector of as many elements."""
    if precision in _INTEGERS:
        _INTEGERS[precision].add(coded, into)
        return
    rounded = coded.view(_TYPES[precision])
    if precision is Precision.FP32:
        into.add_(rounded)
    else:
        for part in _parts(into):
            into[part].add_(rounded[part].to(torch.float32), alpha=1 / scale)


def _parts(vector: torch.Tensor) -> list[slice]:
    """Cut a vector so that what is computed of a part stays in the cache: PyTorch is slow where types are mixed."""
    size = _CACHED if vector.device.type == "cpu" else max(len(vector), 1)
    return [slice(start, start + size) for start in range(0, len(vector), size)]


def largest_magnitude(values: torch.Tensor) -> float:
    """Return the largest magnitude, 0 of an empty vector; NaN if one is in it."""
    if not len(values):
        return 0.0
    least, most = (float(each) for each in torch.aminmax(values))
    return float(np.maximum(-least, most))
