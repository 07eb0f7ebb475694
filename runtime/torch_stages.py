"""Stages of a pipeline from PyTorch functions: forward, backward and update, each a compiled function.

Backward passes compute the forward pass of their stage again, as GPipe does, so that only inputs of stages are kept.
Import it only where PyTorch is there.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.client.slices import VirtualSlice
from runtime.functions import function
from runtime.pipelines import Stage
from runtime.tracing import pmap

Tensors = Sequence[torch.Tensor]


def stages_of(
    layers: Sequence[Callable[[Tensors, torch.Tensor], torch.Tensor]],
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    slices: Sequence[VirtualSlice],
    *,
    learning_rate: float,
    micro_batches: int,
) -> list[Stage]:
    """Return the stages of a model that is trained by gradient descent on the mean of its micro-batches' losses.

    Args:
        layers: For each stage a function of its parameters and its input; each must be able to travel (``sources``).
        loss: Takes the output of the last stage and the targets, and returns a scalar.
        slices: One of a single device for each stage.
        learning_rate: Of plain gradient descent.
        micro_batches: Of each step.

    Raises:
        ValueError: There is not one slice of one device for each stage.
    """
    if len(layers) != len(slices) or any(each.size != 1 for each in slices):
        raise ValueError("slices: expected one of a single device for each stage")
    rate = learning_rate / micro_batches
    made = []
    for number, (layer, devices) in enumerate(zip(layers, slices, strict=True)):
        is_last, is_first = number == len(layers) - 1, number == 0
        backward = _last_backward(layer, loss, is_first) if is_last else _backward(layer, is_first)

        def placed(call: Callable[..., Any], name: str, devices: VirtualSlice = devices) -> Any:
            return pmap(function(name=name)(call), devices=devices, in_axes=None, out_axes=None)

        made.append(
            Stage(
                placed(_forward(layer), f"forward-{number}"),
                placed(backward, f"backward-{number}"),
                placed(_descent(rate), f"update-{number}"),
            )
        )
    return made


def _forward(layer: Callable[..., Any]) -> Callable[..., Any]:
    def forward(*arrays: torch.Tensor) -> Any:
        with torch.no_grad():
            return layer(arrays[:-1], arrays[-1])

    return forward


def _backward(layer: Callable[..., Any], is_first: bool) -> Callable[..., Any]:
    def backward(*arrays: torch.Tensor) -> Any:
        count = len(arrays) // 2 - 1  # parameters, input, gradient, sums
        parameters, given = [each.detach().requires_grad_() for each in arrays[:count]], arrays[count]
        if not is_first:
            given = given.detach().requires_grad_()
        made = layer(parameters, given)
        wanted = parameters if is_first else [given, *parameters]
        gradients = list(torch.autograd.grad(made, wanted, arrays[count + 1]))
        of_input = torch.zeros(()) if is_first else gradients.pop(0)
        return of_input, *(old + new for old, new in zip(arrays[count + 2 :], gradients, strict=True))

    return backward


def _last_backward(layer: Callable[..., Any], loss: Callable[..., Any], is_first: bool) -> Callable[..., Any]:
    def backward(*arrays: torch.Tensor) -> Any:
        count = (len(arrays) - 3) // 2  # parameters, input, targets, summed loss, sums
        parameters, given = [each.detach().requires_grad_() for each in arrays[:count]], arrays[count]
        if not is_first:
            given = given.detach().requires_grad_()
        value = loss(layer(parameters, given), arrays[count + 1])
        wanted = parameters if is_first else [given, *parameters]
        gradients = list(torch.autograd.grad(value, wanted))
        of_input = torch.zeros(()) if is_first else gradients.pop(0)
        summed = arrays[count + 2] + value.detach()
        return of_input, summed, *(old + new for old, new in zip(arrays[count + 3 :], gradients, strict=True))

    return backward


def _descent(rate: float) -> Callable[..., Any]:
    def update(*arrays: torch.Tensor) -> Any:
        count = len(arrays) // 2
        return tuple(
            parameter - rate * gradient for parameter, gradient in zip(arrays[:count], arrays[count:], strict=True)
        )

    return update
