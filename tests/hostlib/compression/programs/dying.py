"""A job of which one rank dies in the middle of a backward pass."""

import os
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from hostlib.compression.choice import Choice, Collective, Precision
from hostlib.compression.netsense import NetSense
from tests.hostlib.compression.programs.training import batches, fixed, loss_of, perceptron


class _Dies(torch.autograd.Function):
    """Ends the process, or raises, in the backward pass."""

    @staticmethod
    def forward(context: Any, data: torch.Tensor, how: str) -> torch.Tensor:
        context.how = how
        return data.clone()

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> Any:
        if context.how == "exit":
            os._exit(3)
        if context.how == "raise":
            raise ArithmeticError("this rank has had enough")
        return gradient, None


class _Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = perceptron()
        self.how = ""

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.layers[2:](_Dies.apply(self.layers[:2](data), self.how))
        return out


def main(rank: int, size: int, how: str, collective: str) -> Any:
    """Train; the last rank dies in the fourth step, when its first buckets are under way."""
    ddp = DistributedDataParallel(_Model(), bucket_cap_mb=0.01)
    ratio = 1 if collective == "all-reduce" else 0.1
    NetSense(fixed(Choice(ratio, Precision.FP16, Collective(collective)))).attach(ddp)
    for number, batch in enumerate(batches(rank, 6)):
        if rank == size - 1 and number == 3:
            ddp.module.how = how
        loss_of(ddp, batch).backward()
        ddp.zero_grad()
    return "it has ended well"
