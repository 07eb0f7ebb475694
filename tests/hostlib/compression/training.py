"""What ranks train in tests: small models, deterministic, each rank on data of its own."""

import hashlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from hostlib.compression.choice import Choice, Collective, Precision
from hostlib.compression.control.cost import Bucket
from hostlib.compression.netsense import NetSense


class Fixed:
    """A controller that always chooses the same."""

    def __init__(self, choice: Choice, buckets: tuple[Bucket, ...]) -> None:
        self.choices = tuple(choice for _ in buckets)
        self.reason = "It is fixed."

    def decide(self, sent: Any, agreed: Any) -> None:
        """Stay."""


def fixed(ratio: float, precision: str, collective: str) -> Callable[[tuple[Bucket, ...]], Fixed]:
    choice = Choice(ratio, Precision(precision), Collective(collective))
    return lambda buckets, _: Fixed(choice, buckets)


def perceptron(dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to(dtype)


def digest(tensors: Any) -> str:
    return hashlib.sha256(
        b"".join(each.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes() for each in tensors)
    ).hexdigest()


def train(rank: int, size: int, *, choice: list[Any] | None, steps: int = 6, dtype: str = "float32", **ddp: Any) -> Any:
    """Train with DDP; ``choice`` None: without a hook. Returns digests of the gradients of each step, and the losses."""
    model = DistributedDataParallel(perceptron(getattr(torch, dtype)), bucket_cap_mb=0.01, **ddp)
    if choice is not None:
        net = NetSense(choice if isinstance(choice, str) else fixed(*choice))
        net.attach(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    generator = torch.Generator().manual_seed(rank)
    digests, losses = [], []
    for _ in range(steps):
        data = torch.randn(16, 20, generator=generator).to(getattr(torch, dtype))
        labels = (data[:, 0] > 0).long()
        loss = nn.functional.cross_entropy(model(data).float(), labels)
        loss.backward()
        digests.append(digest(parameter.grad for parameter in model.parameters()))
        losses.append(loss.item())
        optimizer.step()
        optimizer.zero_grad()
    return {"digests": digests, "losses": losses, "stats": str(net.stats()) if choice is not None else None}
