"""What ranks train in these programs: small models, deterministic, each rank on data of its own."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import nn

from hostlib.compression.choice import Choice, Collective, Precision
from hostlib.compression.control.cost import Bucket, MeasuredCosts
from hostlib.compression.controllers import Controllers

DENSE = Choice(1, Precision.FP32, Collective.ALL_REDUCE)


class Fixed:
    """A controller that always chooses the same."""

    reason = "It is fixed."

    def __init__(self, choice: Choice, remainder: Choice | None, buckets: Sequence[Bucket]) -> None:
        self.choices = tuple(choice for _ in buckets)
        self.remainder = remainder if buckets[-1].has_remainder else None

    def decide(self, sent: Any, agreed: Any, remainder: Any = None) -> None:
        """Stay."""


class Turning:
    """A controller that begins with one choice, and turns to another after so many decisions."""

    reason = "It turns."
    remainder = None

    def __init__(self, first: Choice, then: Choice, decisions: int, buckets: Sequence[Bucket]) -> None:
        self.choices = tuple(first for _ in buckets)
        self._then = then
        self._left = decisions

    def decide(self, sent: Any, agreed: Any, remainder: Any = None) -> None:
        """Count."""
        del sent, agreed, remainder
        self._left -= 1
        if not self._left:
            self.choices = tuple(self._then for _ in self.choices)


def turning(first: Choice, then: Choice, decisions: int) -> Controllers:
    def made(buckets: Sequence[Bucket], _measured: MeasuredCosts) -> Turning:
        return Turning(first, then, decisions, buckets)

    return made


def fixed(choice: Choice, remainder: Choice | None = None) -> Controllers:
    def made(buckets: Sequence[Bucket], _measured: MeasuredCosts) -> Fixed:
        return Fixed(choice, remainder, buckets)

    return made


def perceptron(width: int = 64) -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(20, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))


def batches(rank: int, steps: int, dtype: torch.dtype = torch.float32) -> Iterable[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(rank)
    for _ in range(steps):
        data = torch.randn(16, 20, generator=generator)
        yield data.to(dtype), (3 * data[:, 0] + data[:, 1]).round().clamp(0, 9).long()


def loss_of(model: Callable[[torch.Tensor], torch.Tensor], batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    data, labels = batch
    return nn.functional.cross_entropy(model(data).float(), labels)


def digest(tensors: Iterable[torch.Tensor | None]) -> str:
    """A hash of all bits."""
    flat = [each.detach().contiguous().view(-1).view(torch.uint8) for each in tensors if each is not None]
    return hashlib.sha256(torch.cat(flat).numpy().tobytes()).hexdigest()
