"""A model of real shapes whose layers sleep for as long as they would compute: what DDP sees of ResNet18 or VGG16.

Gradients are random numbers, the same in each step. They become ready as virtual time has it: each layer takes the
share of the backward pass that it has of the multiply-adds.
"""

import time
from typing import Any

import torch

from experiments.compression.real_models import Layer, RealModel
from experiments.compression.timeline import FORWARD_SHARE


class _Sleep(torch.autograd.Function):
    """Passes its input on, later; the gradients of the parameters are given."""

    @staticmethod
    def forward(ctx: Any, inputs: Any, forward_s: float, backward_s: float, gradients: Any, *_weights: Any) -> Any:
        """Sleep for ``forward_s``."""
        ctx.backward_s, ctx.gradients = backward_s, gradients
        time.sleep(forward_s)
        return inputs.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """Sleep for ``backward_s``."""
        time.sleep(ctx.backward_s)
        return gradient, None, None, None, *ctx.gradients


class _StandInLayer(torch.nn.Module):
    def __init__(self, layer: Layer, compute_s: float) -> None:
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.zeros(shape) for shape in layer.parameters)
        self._gradients = [torch.randn(shape) for shape in reversed(layer.parameters)]
        self._seconds = compute_s * FORWARD_SHARE, compute_s * (1 - FORWARD_SHARE)

    def forward(self, inputs: Any) -> Any:
        return _Sleep.apply(inputs, *self._seconds, self._gradients, *reversed(self.weights))


def stand_in(model: RealModel, compute_s: float) -> torch.nn.Module:
    """Return a model with these parameters, of which a step computes for so many seconds."""
    total = sum(layer.multiply_adds for layer in model.layers)
    layers = (_StandInLayer(layer, compute_s * layer.multiply_adds / total) for layer in model.layers)
    return torch.nn.Sequential(*layers)


def step(model: Any) -> None:
    """Run a forward and a backward pass."""
    model(torch.zeros(1, requires_grad=True)).sum().backward()
    model.zero_grad()
