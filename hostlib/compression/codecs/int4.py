"""Values in 4 bits: as ``codecs.int8``, with 7 steps to either side of 0.

Each byte has two of them, the first in its lower half.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from hostlib.compression.codecs import int8
from hostlib.compression.codecs.int8 import BLOCK, FloatArray, StepArray
from hostlib.compression.codecs.machine_code import compiled, inlined

STEPS = 7

PairArray = NDArray[np.uint8]


def size_bytes(count: int) -> int:
    """Return in how many bytes that many values are coded."""
    return int8.scales_bytes(count) + -(-count // 2)


def encode(values: torch.Tensor, seed: int, coded: torch.Tensor, unsent: torch.Tensor | None) -> None:
    """Code fp32 values to ``size_bytes`` bytes; arguments are those of ``int8.encode``."""
    count = values.numel()
    scales, pairs = _parts(coded, count)
    steps = torch.empty(count, dtype=torch.int8, device=values.device)
    int8.encode_steps(values, seed, STEPS, scales, steps, unsent)
    if values.device.type == "cpu":
        _pack(steps.numpy(), pairs.numpy())
    else:
        pack_by_operations(steps, pairs)


def add(coded: torch.Tensor, into: torch.Tensor) -> None:
    """Add coded values to an fp32 vector of as many elements."""
    scales, pairs = _parts(coded, into.numel())
    if into.device.type == "cpu":
        _add(scales.numpy(), pairs.numpy(), into.numpy())
    else:
        int8.add_by_operations(scales, unpack_by_operations(pairs, into.numel()), into)


def pack_by_operations(steps: torch.Tensor, pairs: torch.Tensor) -> None:
    """Write two steps to each byte, by operations of PyTorch on any device."""
    pairs.copy_(steps[::2].view(torch.uint8) & 15)
    pairs[: steps.numel() // 2] |= steps[1::2].view(torch.uint8) << 4


def unpack_by_operations(pairs: torch.Tensor, count: int) -> torch.Tensor:
    """Return so many steps."""
    signed = pairs.view(torch.int8)
    # A shift to the right keeps the sign.
    return torch.stack(((signed << 4) >> 4, signed >> 4), dim=1).view(-1)[:count]


def _parts(coded: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the scales and the pairs of coded values, as views."""
    start = int8.scales_bytes(count)
    return coded[:start].view(torch.float32), coded[start : size_bytes(count)]


@inlined
def _lower(byte: int) -> np.float32:
    """Return the step in the lower half of a byte."""
    return np.float32(((byte & 15) ^ 8) - 8)


@compiled("void(int8[::1], uint8[::1])")
def _pack(steps: StepArray, pairs: PairArray) -> None:
    nibbles = steps.view(np.uint8)
    for pair in range(len(nibbles) // 2):
        pairs[pair] = (nibbles[2 * pair] & 15) | (nibbles[2 * pair + 1] & 15) << 4
    if len(nibbles) % 2:
        pairs[-1] = nibbles[-1] & 15


@compiled("void(float32[::1], uint8[::1], float32[::1])")
def _add(scales: FloatArray, pairs: PairArray, into: FloatArray) -> None:
    for block in range(len(scales)):
        part = into[block * BLOCK : (block + 1) * BLOCK]
        coded = pairs[block * BLOCK // 2 : (block + 1) * BLOCK // 2]
        scale = scales[block]
        for pair in range(len(part) // 2):
            part[2 * pair] += _lower(coded[pair]) * scale
            part[2 * pair + 1] += _lower(coded[pair] >> 4) * scale
        if len(part) % 2:
            part[-1] += _lower(coded[-1]) * scale
