"""Values in 8 bits: blocks of 256 with a scale each, and stochastic rounding.

The scale makes the block's largest magnitude 127; fewer bits have the same code with fewer steps. A value between two
steps goes to the upper one with the probability of its distance from the lower one, so that the expected error is 0
(Alistarh et al. 2017, "QSGD", section 3). The random numbers are a hash of seed and position (SplitMix64: Steele, Lea
and Flood 2014): the same input and seed give the same bytes, compiled or as operations of PyTorch.

A coded vector is the scales in fp32, then the steps, one byte each. A block with NaN or an infinity has the scale NaN,
and every value of it is decoded as NaN.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from hostlib.compression.codecs.machine_code import compiled, inlined

BLOCK = 256
"""Values that share a scale."""

STEPS = 127
"""To either side of 0."""
_GAMMA, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_GAMMA_WORD, _FIRST_WORD, _SECOND_WORD = (np.uint64(constant) for constant in (_GAMMA, _FIRST, _SECOND))
_LARGEST = np.finfo(np.float32).max
_UNIT = np.float32(2.0**-24)
_WORD = (1 << 64) - 1
_MAGNITUDE, _INFINITY = 0x7FFFFFFF, 0x7F800000
"""Of the bits of a float: all but its sign, and those of infinity. Magnitudes have the order of their bits."""

FloatArray = NDArray[np.float32]
StepArray = NDArray[np.int8]


def size_bytes(count: int) -> int:
    """Return in how many bytes that many values are coded."""
    return count + scales_bytes(count)


def encode(values: torch.Tensor, seed: int, coded: torch.Tensor, unsent: torch.Tensor | None) -> None:
    """Code fp32 values to ``size_bytes`` bytes, and write each value less its coded one to ``unsent``.

    Args:
        values: Contiguous, one dimension.
        seed: Of the random numbers; any integer.
        coded: Of ``uint8``.
        unsent: Like ``values``, may be the same.
    """
    scales, steps = _parts(coded, len(values))
    encode_steps(values, seed, STEPS, scales, steps, unsent)


def add(coded: torch.Tensor, into: torch.Tensor) -> None:
    """Add coded values to an fp32 vector of as many elements."""
    scales, steps = _parts(coded, len(into))
    add_steps(scales, steps, into)


def scales_bytes(count: int) -> int:
    """Return how many bytes the scales of that many values take."""
    return 4 * -(-count // BLOCK)


def encode_steps(
    values: torch.Tensor, seed: int, most: int, scales: torch.Tensor, steps: torch.Tensor, unsent: torch.Tensor | None
) -> None:
    """Write a scale for each block, and a step from -most to most, in 8 bits, for each value; see ``encode``."""
    seed &= _WORD
    if values.device.type == "cpu":
        errors = np.empty(0, np.float32) if unsent is None else unsent.numpy()
        _encode(values.numpy(), np.uint64(seed), np.float32(most), scales.numpy(), steps.numpy(), errors)
    else:
        encode_by_operations(values, seed, most, scales, steps, unsent)


def add_steps(scales: torch.Tensor, steps: torch.Tensor, into: torch.Tensor) -> None:
    """Add what ``encode_steps`` wrote to an fp32 vector of as many elements."""
    if into.device.type == "cpu":
        _add(scales.numpy(), steps.numpy(), into.numpy())
    else:
        add_by_operations(scales, steps, into)


def encode_by_operations(
    values: torch.Tensor, seed: int, most: int, scales: torch.Tensor, steps: torch.Tensor, unsent: torch.Tensor | None
) -> None:
    """Do the same as ``encode_steps`` by operations of PyTorch, on any device."""
    each = _of_blocks(values.abs()).amax(dim=1)
    scales.copy_(torch.where(each.isfinite(), (each / most).clamp(max=float(_most_scale(most))), torch.nan))
    scale = scales.repeat_interleave(BLOCK)[: len(values)]
    exact = torch.where(scale > 0, values / scale, 0)
    lower = exact.floor()
    steps.copy_((lower + (_uniform_of(len(values), seed, values.device) < exact - lower)).clamp(-most, most))
    if unsent is not None:
        torch.sub(values, steps * scale, out=unsent)


def add_by_operations(scales: torch.Tensor, steps: torch.Tensor, into: torch.Tensor) -> None:
    """Do the same as ``add_steps`` by operations of PyTorch, on any device."""
    into += steps * scales.repeat_interleave(BLOCK)[: len(into)]


def _parts(coded: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the scales and the steps of coded values, as views."""
    start = scales_bytes(count)
    return coded[:start].view(torch.float32), coded[start : size_bytes(count)].view(torch.int8)


def _most_scale(most: int) -> np.float32:
    """Return a scale of which so many times are finite."""
    return np.float32(np.nextafter(np.finfo(np.float32).max / np.float32(most), np.float32(0)))


def _of_blocks(values: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.pad(values, (0, -len(values) % BLOCK)).view(-1, BLOCK)


def _uniform_of(count: int, seed: int, device: torch.device) -> torch.Tensor:
    """Return what ``_uniform`` draws for each position; the words of 64 bits are signed here."""
    word = torch.arange(1, count + 1, device=device) * _signed(_GAMMA) + _signed(seed)
    word = (word ^ _shifted(word, 30)) * _signed(_FIRST)
    word = (word ^ _shifted(word, 27)) * _signed(_SECOND)
    return _shifted(word ^ _shifted(word, 31), 40).to(torch.float32) * float(_UNIT)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _shifted(word: torch.Tensor, bits: int) -> torch.Tensor:
    return (word >> bits) & ((1 << (64 - bits)) - 1)


@inlined
def _uniform(position: int, seed: np.uint64) -> np.float32:
    """Return a number from 0 to below 1 with 24 random bits."""
    word = np.uint64(position + 1) * _GAMMA_WORD + seed
    word = (word ^ (word >> np.uint64(30))) * _FIRST_WORD
    word = (word ^ (word >> np.uint64(27))) * _SECOND_WORD
    return np.float32(np.int64((word ^ (word >> np.uint64(31))) >> np.uint64(40))) * _UNIT


@compiled("void(float32[::1], uint64, float32, float32[::1], int8[::1], float32[::1])")
def _encode(
    values: FloatArray, seed: np.uint64, most: np.float32, scales: FloatArray, steps: StepArray, unsent: FloatArray
) -> None:
    most_scale = np.nextafter(_LARGEST / most, np.float32(0))
    for block in range(len(scales)):
        start, stop = block * BLOCK, (block + 1) * BLOCK
        part, coded, errors = values[start:stop], steps[start:stop], unsent[start:stop]
        bits = part.view(np.int32)
        highest = np.int32(0)
        for offset in range(len(part)):
            highest = np.int32(max(highest, np.int32(bits[offset] & _MAGNITUDE)))
        scale = min(np.int32(highest).view(np.float32) / most, most_scale)
        if highest >= _INFINITY:
            scale = np.float32(np.nan)
        scales[block] = scale
        for offset in range(len(part)):
            exact = part[offset] / scale if scale > 0 else np.float32(0)
            lower = np.floor(exact)
            step = lower + np.float32(_uniform(start + offset, seed) < exact - lower)
            step = min(max(step, -most), most)
            coded[offset] = np.int8(step)
            if len(errors):
                errors[offset] = part[offset] - step * scale


@compiled("void(float32[::1], int8[::1], float32[::1])")
def _add(scales: FloatArray, steps: StepArray, into: FloatArray) -> None:
    for block in range(len(scales)):
        part = into[block * BLOCK : (block + 1) * BLOCK]
        coded = steps[block * BLOCK : (block + 1) * BLOCK]
        for offset in range(len(part)):
            part[offset] += np.float32(coded[offset]) * scales[block]
