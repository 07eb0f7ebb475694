"""Stages of a pipeline from PyTorch functions: forward, backward and update, each a compiled function.

A stage may have **replicas**, one on each device of its slice. Each replica takes its block of a micro-batch, and sums
the gradients of its own blocks. The update adds these sums over the replicas by one collective, so all replicas hold
the same parameters, bit by bit. A model of one stage is data parallelism alone.

Backward passes compute the forward pass of their stage again, as GPipe does, so that only inputs of stages are kept.
Import it only where PyTorch is there.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.client.slices import VirtualSlice
from runtime.collectives import all_reduce
from runtime.functions import function
from runtime.mapping import pmap
from runtime.pipelines import Stage

Tensors = Sequence[torch.Tensor]


def stages_of(
    layers: Sequence[Callable[[Tensors, torch.Tensor], torch.Tensor]],
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    parameters: Sequence[Sequence[Any]],
    slices: Sequence[VirtualSlice],
    *,
    learning_rate: float,
    micro_batches: int,
) -> list[Stage]:
    """Return the stages of a model that is trained by gradient descent on the mean loss of the batch.

    Inputs of all stages, and targets, are cut along their first axis into a block for each replica.

    Args:
        layers: For each stage a function of its parameters and its input; each must be able to travel (``sources``).
        loss: Takes the output of the last stage and the targets, and returns the mean over the examples, a scalar.
        parameters: For each stage what it starts from; every replica gets a copy.
        slices: One for each stage, with a device for each of its replicas.
        learning_rate: Of plain gradient descent.
        micro_batches: Of each step.

    Raises:
        ValueError: There is not one slice for each stage, of one size, or a stage has no parameters.
    """
    if not len(layers) == len(parameters) == len(slices):
        counts = f"{len(layers)} layers, {len(parameters)} lists of parameters and {len(slices)} slices"
        raise ValueError(f"expected a layer, parameters and a slice for each stage, got {counts}")
    sizes = [each.size for each in slices]
    if len(set(sizes)) > 1:
        raise ValueError(f"slices: expected as many replicas of each stage, got {', '.join(map(str, sizes))}")
    replicas = sizes[0]
    share = 1 / (micro_batches * replicas)
    made = []
    for number, (layer, own, devices) in enumerate(zip(layers, parameters, slices, strict=True)):
        if not own:
            raise ValueError(f"parameters: stage {number} has none")
        is_last, count = number == len(layers) - 1, len(own)
        made.append(
            Stage(
                _placed(_forward(layer), f"forward-{number}", devices, count),
                _placed(
                    _backward(layer, loss if is_last else None, count, number == 0),
                    f"backward-{number}",
                    devices,
                    count,
                ),
                _placed(
                    _descent(count, replicas, learning_rate, share), f"update-{number}", devices, count, is_update=True
                ),
            )
        )
    return made


def _placed(
    call: Callable[..., Any], name: str, devices: VirtualSlice, parameters: int, *, is_update: bool = False
) -> Callable[..., Any]:
    """Place a function of parameters, of which each replica has a copy, and of arrays that are cut."""
    compiled = function(name=name, collective=is_update and devices.size > 1)(call)

    def placed(*arrays: Any) -> Any:
        in_axes = [None] * parameters + [0] * (len(arrays) - parameters)
        return pmap(compiled, devices=devices, in_axes=in_axes, out_axes=None if is_update else 0)(*arrays)

    return placed


def _forward(layer: Callable[..., Any]) -> Callable[..., Any]:
    def forward(*arrays: torch.Tensor) -> Any:
        with torch.no_grad():
            return layer(arrays[:-1], arrays[-1])

    return forward


def _backward(
    layer: Callable[..., Any], loss: Callable[..., Any] | None, count: int, is_first: bool
) -> Callable[..., Any]:
    """Return the backward pass of a stage; with the loss, of the last one.

    Sums have one row: those of all replicas are the rows of one array.
    """

    def backward(*arrays: torch.Tensor) -> Any:
        parameters, given = [each.detach().requires_grad_() for each in arrays[:count]], arrays[count]
        if not is_first:
            given = given.detach().requires_grad_()
        wanted = parameters if is_first else [given, *parameters]
        made = layer(parameters, given)
        if loss is None:
            gradients = list(torch.autograd.grad(made, wanted, arrays[count + 1]))
            news = []
        else:
            value = loss(made, arrays[count + 1])
            gradients = list(torch.autograd.grad(value, wanted))
            news = [value.detach()]
        of_input = torch.zeros(1) if is_first else gradients.pop(0)
        news = [each.unsqueeze(0) for each in (*news, *gradients)]
        sums = arrays[count + 2 :]
        return of_input, *([old + new for old, new in zip(sums, news, strict=True)] if sums else news)

    return backward


def _descent(count: int, replicas: int, learning_rate: float, share: float) -> Callable[..., Any]:
    """Return the update: gradient descent on the mean, which is the ``share`` of the sums of all replicas."""

    def update(*arrays: torch.Tensor) -> Any:
        means = [each[0] * share for each in arrays[count:]]
        if replicas > 1:
            means = summed(means)
        losses, gradients = means[:-count], means[-count:]
        return *losses, *(
            parameter - learning_rate * gradient for parameter, gradient in zip(arrays[:count], gradients, strict=True)
        )

    return update


def summed(tensors: Tensors) -> list[torch.Tensor]:
    """Return the sums of tensors over all shards of the call, found by one collective."""
    flat = all_reduce(torch.cat([each.reshape(-1) for each in tensors]))
    parts = flat.split([each.numel() for each in tensors])
    return [part.view_as(each).to(each.dtype) for part, each in zip(parts, tensors, strict=True)]
