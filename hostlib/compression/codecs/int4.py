"""Values in 4 bits: as ``codecs.int8``, with 7 steps to either side of 0.

Each byte has two of them, the first in its lower half.
"""

import torch

from hostlib.compression.codecs import int8

STEPS = 7


def size_bytes(count: int) -> int:
    """Return in how many bytes that many values are coded."""
    return int8.scales_bytes(count) + -(-count // 2)


def encode(values: torch.Tensor, seed: int, coded: torch.Tensor, unsent: torch.Tensor | None) -> None:
    """Code fp32 values to ``size_bytes`` bytes; arguments are those of ``int8.encode``."""
    start = int8.scales_bytes(len(values))
    steps = torch.zeros(len(values) + len(values) % 2, dtype=torch.int8, device=values.device)
    int8.encode_steps(values, seed, STEPS, coded[:start].view(torch.float32), steps[: len(values)], unsent)
    pairs = steps.view(torch.uint8).view(-1, 2)
    torch.bitwise_or(pairs[:, 0] & 15, pairs[:, 1] << 4, out=coded[start : size_bytes(len(values))])


def add(coded: torch.Tensor, into: torch.Tensor) -> None:
    """Add coded values to an fp32 vector of as many elements."""
    start = int8.scales_bytes(len(into))
    pairs = coded[start : size_bytes(len(into))].view(torch.int8)
    # A shift to the right keeps the sign.
    steps = torch.stack(((pairs << 4) >> 4, pairs >> 4), dim=1).view(-1)[: len(into)]
    int8.add_steps(coded[:start].view(torch.float32), steps, into)
